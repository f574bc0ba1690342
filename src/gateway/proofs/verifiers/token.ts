// A secret in a header, unchanged.
import {
  createSecretSet,
  coversNothing,
  toSettingProblem,
  refuseMissingHeader,
  requireSetting,
  type Proof,
  type ProofTools,
  validProof,
  readHeader,
  refuseProof,
} from './proof.ts'
import type { BasicScheme, TokenScheme } from '../../../model/scheme.ts'

export function createTokenProof(scheme: TokenScheme, { settings, secrets }: ProofTools): Proof {
  const header =
    settings.header ??
    scheme.header ??
    requireSetting(settings, 'header', 'the header in which the sender sends the secret')
  const isSecret = createSecretSet(secrets())
  return {
    secretHeaders: [header],
    covers: coversNothing,
    isClaimed: (headers) => Object.hasOwn(headers, header),
    verify({ headers }) {
      const value = readHeader(headers, header)
      if (value === undefined || value === '') return refuseMissingHeader(header)
      const bare = header === 'authorization' ? value.replace(/^bearer +/i, '') : value
      // the whole value counts too: some senders let their users write the whole header
      return isSecret(bare) || (bare !== value && isSecret(value))
        ? validProof
        : refuseProof(`The secret in ${header} is wrong.`)
    },
  }
}

/** A user has no colon. https://www.rfc-editor.org/rfc/rfc7617#section-2 */
export const basicSecret = /^[^:]+:(.+)$/s

/** The secret is `user:password`, as the user wrote it into the URL of the webhook. */
export function createBasicProof(_scheme: BasicScheme, { settings, secrets }: ProofTools): Proof {
  if (!secrets().every((secret) => basicSecret.test(secret)))
    throw toSettingProblem(settings, 'needs a secret of the form user:password, with a user and a password.')
  const isSecret = createSecretSet(secrets())
  const { header = 'authorization' } = settings
  return {
    secretHeaders: [header],
    covers: coversNothing,
    isClaimed: (headers) => /^basic /i.test(readHeader(headers, header) ?? ''),
    verify({ headers }) {
      const found = /^basic +([\w+/=-]+)$/i.exec(readHeader(headers, header) ?? '')
      if (found === null) return refuseMissingHeader(`${header} with Basic`)
      const given = Buffer.from(found[1] ?? '', 'base64').toString()
      return isSecret(given) ? validProof : refuseProof('The user or the password is wrong.')
    },
  }
}
