// The secrets of subscriptions are encrypted in the store, with a key that is derived from the token of the subscriber, which only the configuration has.
import { createSealKeys, openSealed, sealParts } from '../shared/kit.ts'

const salt = 'hookloom mcp-events 1'

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
  const keys = createSealKeys(salt)
  return {
    keyId: async () => (await keys(token)).id,
    seal: async (secret, about) => sealParts([Buffer.from(secret)], about, await keys(token)).toString('base64'),
    async open(sealed, about) {
      const key = await keys(token)
      try {
        return openSealed(Buffer.from(sealed, 'base64'), about, key).toString()
      } catch {
        return undefined
      }
    },
  }
}
