// Makes keys from settings. An invalid key is reported when it is loaded, not with the first delivery.
import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto'
import { decodeSecret } from '../../../model/config/secret-length.ts'
import type { SecretEncoding, VerifySettings } from '../../../core/model/verify.ts'
import { toSettingProblem } from './proof.ts'
import type { AsymmetricScheme } from '../../../model/scheme.ts'

const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/** The secrets of a mapping. Throws `config-invalid` if it has none and its sender does not give one. */
export function readSecrets(settings: VerifySettings, handsOver = false): readonly string[] {
  const { secret, secrets } = settings
  if (secret !== undefined && secrets !== undefined)
    throw toSettingProblem(settings, 'has both verify.secret and verify.secrets. Remove one of them.')
  const all = secrets ?? (secret === undefined ? [] : [secret])
  if (all.length === 0 && !handsOver) {
    throw toSettingProblem(settings, 'needs verify.secret: the secret that you share with the sender.')
  }
  return all
}

/** The key in a secret. Throws `config-invalid` if the secret is not in the encoding of its scheme. */
export function parseSecretKey(
  secret: string,
  settings: VerifySettings,
  { encoding = 'utf8', prefix = '' }: { encoding?: SecretEncoding | undefined; prefix?: string | undefined },
): KeyObject {
  const bytes = decodeSecret(secret, encoding, prefix)
  if (bytes === undefined) {
    throw toSettingProblem(
      settings,
      `needs a secret in ${encoding}${prefix === '' ? '' : `, with or without ${prefix} before it`}.`,
    )
  }
  return createSecretKey(bytes)
}

/** The keys of the current secrets. They are made again only after a handshake added a secret. */
export function createKeyring(
  secrets: () => readonly string[],
  toKey: (secret: string) => KeyObject,
): () => readonly KeyObject[] {
  let made: readonly string[] = secrets()
  let keys = made.map(toKey)
  return () => {
    const current = secrets()
    if (current !== made) {
      keys = current.map(toKey)
      made = current
    }
    return keys
  }
}

/** Throws `config-invalid` if the key is not in the form that the sender shows to its customers. */
export function parsePublicKey(text: string, settings: VerifySettings, scheme: AsymmetricScheme): KeyObject {
  const prefix = scheme.keyPrefix ?? ''
  const plain = (text.startsWith(prefix) ? text.slice(prefix.length) : text).trim()
  try {
    if (scheme.keyForm === 'spki-base64') {
      const key = plain.startsWith('-----') ? createPublicKey(plain) : importSpki(plain)
      if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('not P-256')
      return key
    }
    const raw = Buffer.from(plain, scheme.keyForm === 'raw-hex' ? 'hex' : 'base64')
    const isWritten = scheme.keyForm === 'raw-hex' ? /^[\da-f]{64}$/i.test(plain) : base64.test(plain)
    if (!isWritten || raw.length !== 32) throw new Error('not 32 bytes')
    return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }, format: 'jwk' })
  } catch (cause) {
    const form = {
      'raw-hex': '64 hex digits',
      'raw-base64': '32 bytes in base64',
      'spki-base64': 'a P-256 key in base64',
    }
    const problem = toSettingProblem(settings, `needs verify.publicKey as ${form[scheme.keyForm]}.`)
    problem.cause = cause
    throw problem
  }
}

function importSpki(text: string): KeyObject {
  return createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' })
}
