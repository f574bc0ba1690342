// Encrypts what the store keeps in secret, with a key that is derived from a token of the configuration: every gateway of a store has it, and a copy of
// the store does not.
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type KeyObject,
  randomBytes,
  scrypt,
  type ScryptOptions,
} from 'node:crypto'
import { promisify } from 'node:util'

/** `id`: names the token. */
export type SealKey = { readonly id: string; readonly secret: KeyObject }

const derive = promisify<string, string, number, ScryptOptions, Buffer>(scrypt)
/** The cost of the derivation: 16 MiB and about 50 ms, so that a copy of the store does not help to guess a weak token. */
const cost: ScryptOptions = { N: 16_384, r: 8, p: 1 }
const keyBytes = 32
const keyIdBytes = 8
const nonceBytes = 12
const tagBytes = 16

/**
 * The key that belongs to a token, derived once for each token, outside of the main thread. The token is the secret. Gateways of one store have no other
 * value in common, so the salt is the same everywhere.
 */
export function createSealKeys(salt: string): (token: string) => Promise<SealKey> {
  let known: { readonly token: string; readonly key: Promise<SealKey> } | undefined
  return (token) => {
    if (known?.token === token) return known.key
    const derived = { token, key: deriveKey(token, salt) }
    known = derived
    // after a failure, the next request tries again
    derived.key.catch(() => {
      if (known === derived) known = undefined
    })
    return derived.key
  }
}

async function deriveKey(token: string, salt: string): Promise<SealKey> {
  const bytes = await derive(token, salt, keyBytes + keyIdBytes, cost)
  return {
    id: bytes.subarray(keyBytes).toString('hex'),
    secret: createSecretKey(bytes.subarray(0, keyBytes)),
  }
}

/** The nonce, the tag and the encrypted parts, as one. `about`: what it belongs to, which is authenticated and not encrypted. */
export function sealParts(parts: readonly Uint8Array[], about: string, { secret }: SealKey): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(Buffer.from(about))
  const sealed = [...parts.map((part) => cipher.update(part)), cipher.final()]
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed])
}

/** The parts as one. Throws if the key or `about` is another one, or if somebody changed a byte. */
export function openSealed(sealed: Uint8Array, about: string, { secret }: SealKey): Buffer {
  const nonce = sealed.subarray(0, nonceBytes)
  const decipher = createDecipheriv('aes-256-gcm', secret, nonce, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(about))
  decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes))
  return Buffer.concat([decipher.update(sealed.subarray(nonceBytes + tagBytes)), decipher.final()])
}
