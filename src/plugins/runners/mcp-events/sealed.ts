// The secrets of subscriptions are encrypted in the store, with a key that is derived from the token of the subscriber, which only the configuration has.
import { createCipheriv, createDecipheriv, randomBytes, scrypt, type ScryptOptions } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify<string, string, number, ScryptOptions, Buffer>(scrypt)
const salt = 'hookloom mcp-events 1'
/** The cost of the derivation: 16 MiB and about 50 ms, so that a copy of the store does not help to guess a weak token. */
const cost: ScryptOptions = { N: 16_384, r: 8, p: 1 }
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

export type Sealer = {
  /** Names the token. A secret that was sealed under another token cannot be opened. */
  keyId(): Promise<string>
  /** `about`: what the secret belongs to. It is opened only with the same text. */
  seal(secret: string, about: string): Promise<string>
  /** Undefined if the token is another one, or if the text was changed. */
  open(sealed: string, about: string): Promise<string | undefined>
}

/** The key is derived when it is first needed. */
export function createSealer(token: string): Sealer {
  let derived: Promise<Buffer> | undefined
  async function readKey() {
    derived ??= derive(token, salt, keyBytes + 8, cost)
    const bytes = await derived
    return { key: bytes.subarray(0, keyBytes), id: bytes.subarray(keyBytes).toString('hex') }
  }
  return {
    keyId: async () => (await readKey()).id,
    async seal(secret, about) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', (await readKey()).key, nonce).setAAD(Buffer.from(about))
      const parts = [cipher.update(secret, 'utf8'), cipher.final()]
      return Buffer.concat([nonce, cipher.getAuthTag(), ...parts]).toString('base64')
    },
    async open(sealed, about) {
      const bytes = Buffer.from(sealed, 'base64')
      const { key } = await readKey()
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), {
          authTagLength: tagBytes,
        })
        decipher.setAAD(Buffer.from(about)).setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
        return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]).toString()
      } catch {
        return undefined
      }
    },
  }
}
