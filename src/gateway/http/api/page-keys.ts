// The keys of the page. `hookloom open` gets a code that works once, within a minute; the page exchanges it for a key of twelve hours.
//
//   key        hlk_ base64url( public part, signature )
//   public     6 bytes: end of the key in milliseconds since the epoch · 10 random bytes
//   signature  HMAC-SHA-256 of the public part, by a secret that is derived from the gateway token
//
// No key is stored. So a key outlives a restart, and dies with the gateway token.
import { createHash, createHmac, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../store/store.ts'

const codeMs = 60_000
const keyMs = 12 * 3_600_000
/** The maximum number of codes that are remembered. The oldest are forgotten first. */
const maxCodes = 20

const keyForm = /^hlk_([\w-]{64})$/
/** Also matches keys of older versions. */
const anyKeyForm = /^hlk_[\w-]{43,64}$/
const timeBytes = 6
const publicBytes = 16

type IssuedSecret = { readonly text: string; /** Milliseconds since the epoch. */ readonly until: number }

export type PageKeys = {
  issueCode(): IssuedSecret
  /** A new key for a code; undefined if the code is unknown, was used before, or is older than a minute. */
  exchange(code: string): IssuedSecret | undefined
  /** Whether a text is meant as a key, valid or not. */
  hasKeyForm(text: string): boolean
  isValid(key: string): boolean
  /** Signs a challenge with the signature of the key that has this `publicPart`: only a gateway that could make the key can do so. */
  prove(publicPart: Uint8Array, challenge: string): string
}

/** A new gateway token ends the codes and keys that were made under the old one. */
export function createPageKeys({ clock, token }: { clock: Clock; token: () => string | undefined }): PageKeys {
  const codes = new Map<string, number>()
  let issuedUnder = token()
  let derived: { readonly token: string | undefined; readonly secret: Buffer } | undefined

  /** scrypt, once for each token: a holder of a key must not be able to try out short tokens quickly. */
  function readSecret(): Buffer {
    const current = token()
    if (derived !== undefined && derived.token === current) return derived.secret
    const secret = scryptSync(current ?? randomBytes(32), 'hookloom page keys', 32)
    derived = { token: current, secret }
    return secret
  }

  function sign(publicPart: Uint8Array): Buffer {
    return createHmac('sha256', readSecret()).update('key ').update(publicPart).digest()
  }

  function forgetOldCodes(): void {
    if (issuedUnder === token()) return
    issuedUnder = token()
    codes.clear()
  }

  return {
    issueCode() {
      forgetOldCodes()
      const text = randomBytes(32).toString('base64url')
      const until = clock() + codeMs
      codes.set(toDigest(text), until)
      for (const oldest of codes.keys()) {
        if (codes.size <= maxCodes) break
        codes.delete(oldest)
      }
      return { text, until }
    },
    exchange(code) {
      forgetOldCodes()
      const digest = toDigest(code)
      const endsAt = codes.get(digest)
      codes.delete(digest)
      if (endsAt === undefined || clock() >= endsAt) return undefined
      const until = clock() + keyMs
      const publicPart = Buffer.concat([Buffer.alloc(timeBytes), randomBytes(publicBytes - timeBytes)])
      publicPart.writeUIntBE(until, 0, timeBytes)
      return { text: `hlk_${Buffer.concat([publicPart, sign(publicPart)]).toString('base64url')}`, until }
    },
    hasKeyForm: (text) => anyKeyForm.test(text),
    isValid(key) {
      const bytes = Buffer.from(keyForm.exec(key)?.[1] ?? '', 'base64url')
      if (bytes.byteLength === 0) return false
      const publicPart = bytes.subarray(0, publicBytes)
      // the signature is checked before the time: the time in a forged key means nothing
      return (
        timingSafeEqual(sign(publicPart), bytes.subarray(publicBytes)) && clock() < publicPart.readUIntBE(0, timeBytes)
      )
    },
    prove: (publicPart, challenge) => createHmac('sha256', sign(publicPart)).update(`proof ${challenge}`).digest('hex'),
  }
}

/** A name for a key. The name reveals nothing about the key. */
export function nameKey(key: string): string {
  return `page ${toDigest(key).slice(0, 8)}`
}

/** Codes are remembered as digests: a look-up by digest takes the same time for every wrong text. */
function toDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
