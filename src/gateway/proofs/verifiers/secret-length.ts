// Whether a secret of a mapping is long enough for its scheme.
import { decodeSecret, explainShortSecret } from '../../../model/config/secret-length.ts'
import type { SecretEncoding, VerifySettings } from '../../../core/model/verify.ts'
import type { KnownSchemes } from '../senders.ts'
import type { Scheme } from '../../../model/scheme.ts'
import { basicSecret } from './token.ts'

/**
 * The reason why a secret of these settings is refused, as the rest of a sentence that begins with its path. Undefined if it is long
 * enough, or if `createVerifier` reports that it is not in the form of its scheme.
 */
export function findSecretFault(
  secret: string,
  { scheme: id, secretEncoding }: Pick<VerifySettings, 'scheme' | 'secretEncoding'>,
  { senders, verifiers = [] }: KnownSchemes,
): string | undefined {
  const scheme = senders.findScheme(id)
  const own = verifiers.find((one) => one.scheme === id)
  const min = own?.kind === 'sound' ? own.definition.minSecretBytes : readMinSecretBytes(scheme)
  const options = min === undefined ? {} : { min }
  if (id === 'basic' || scheme?.kind === 'basic') {
    const password = basicSecret.exec(secret)?.[1]
    return password && explainShortSecret(Buffer.byteLength(password), { ...options, part: 'a password' })
  }
  const [encoding, prefix] =
    scheme === undefined ? [id === 'generic-hmac' ? secretEncoding : undefined] : toForm(scheme)
  if (id === 'url-secret') return explainUrlSecret(secret)
  const bytes = decodeSecret(secret, encoding, prefix)
  return bytes && explainShortSecret(bytes.length, { ...options, ...(encoding && { encoding }) })
}

function readMinSecretBytes(scheme: Scheme | undefined): number | undefined {
  return scheme?.minSecretBytes ?? (scheme?.kind === 'code' ? scheme.code.minSecretBytes : undefined)
}

function toForm(scheme: Scheme): [encoding?: SecretEncoding | undefined, prefix?: string | undefined] {
  if (scheme.kind === 'hmac') return [scheme.secretEncoding, scheme.secretPrefix]
  return scheme.kind === 'code' ? [scheme.secretEncoding] : []
}

/** The text is a part of a URL, and alone lets a request in: only what was made at random has its 128 bits. */
function explainUrlSecret(secret: string): string | undefined {
  const isRandom = /^[\w~-]+$/.test(secret) && new Set(secret).size >= 8
  if (isRandom && secret.length >= (/^[\da-f]+$/i.test(secret) ? 32 : 22)) return undefined
  return `must be made at random, of at least 32 hexadecimal digits, or 22 letters, digits, "-", "_" and "~": it is in the URL, and nothing else lets a request in. Make one with: openssl rand -hex 32`
}
