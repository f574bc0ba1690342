// The minimum length of a secret. It is checked when a configuration is loaded, and not by the verifiers, because the published examples of
// senders are shorter.
import type { SecretEncoding } from '../../core/model/verify.ts'

/** 128 bits, which cannot be guessed. */
const minSecretBytes = 16

/** The bytes of a secret after its prefix. Undefined if the secret is not in its encoding. */
export function decodeSecret(secret: string, encoding: SecretEncoding = 'utf8', prefix = ''): Buffer | undefined {
  if (encoding === 'utf8') return Buffer.from(secret)
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret
  const isEncoded = encoding === 'hex' ? /^(?:[\da-f]{2})+$/i.test(text) : /^[A-Za-z0-9+/_-]+={0,2}$/.test(text)
  return isEncoded ? Buffer.from(text, encoding) : undefined
}

/** Why a secret of this length is refused: the rest of a sentence that begins with its path. Undefined if it is long enough. */
export function explainShortSecret(
  found: number,
  { min = minSecretBytes, encoding = 'utf8', part }: { min?: number; encoding?: SecretEncoding; part?: string } = {},
): string | undefined {
  if (found >= min) return undefined
  const bytes = `at least ${min} bytes${encoding === 'utf8' ? '' : ` after decoding (${encoding})`}`
  const what = part === undefined ? bytes : `${part} of ${bytes}`
  const kind = encoding === 'base64' ? 'base64' : 'hex'
  return `must have ${what}, found ${found}: it can be guessed. Make one with: openssl rand -${kind} 32`
}
