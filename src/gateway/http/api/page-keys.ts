// The keys of the page. `hookloom open` gets a code that works once, within a minute; the page exchanges it for a key of twelve hours.
//
//   key        hlk_ base64url( public part, signature )
//   public     6 bytes: end of the key in milliseconds since the epoch · 10 random bytes · the id of the token that it was exchanged for, if any
//   signature  HMAC-SHA-256 of the public part, by a secret that is derived from the gateway token
//
// No key is stored. So a key outlives a restart, and dies with the gateway token. A key that was exchanged for a token with few rights has the rights
// of this token, and dies with it too.
import { createHash, createHmac, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../store/store.ts'

const codeMs = 60_000
const keyMs = 12 * 3_600_000
/** The maximum number of codes that are remembered. The oldest are forgotten first. */
const maxCodes = 20

const keyForm = /^hlk_([\w-]{64,128})$/
/** Also matches keys of older versions. */
const anyKeyForm = /^hlk_[\w-]{43,128}$/
const timeBytes = 6
/** The public part of a key without a token. */
const publicBytes = 16
const signatureBytes = 32

type IssuedSecret = { readonly text: string; /** Milliseconds since the epoch. */ readonly until: number }

export type PageKeys = {
  issueCode(): IssuedSecret
  /** A new key for a code; undefined if the code is unknown, was used before, or is older than a minute. */
  exchange(code: string): IssuedSecret | undefined
  /** Whether a text is meant as a key, valid or not. */
  hasKeyForm(text: string): boolean
  /** A key for the owner of a token, until the token ends, at the latest in twelve hours. */
  issueFor(token: {
    readonly id: string
    /** Milliseconds since the epoch. */ readonly until: number | undefined
  }): IssuedSecret
  /** What a valid key opens: all, or what the token with `tokenId` opens. Undefined for a key that is not valid. */
  read(key: string): { readonly tokenId: string | undefined } | undefined
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

  function issue(tokenId: string, until: number): IssuedSecret {
    const publicPart = Buffer.concat([
      Buffer.alloc(timeBytes),
      randomBytes(publicBytes - timeBytes),
      Buffer.from(tokenId),
    ])
    publicPart.writeUIntBE(until, 0, timeBytes)
    return { text: `hlk_${Buffer.concat([publicPart, sign(publicPart)]).toString('base64url')}`, until }
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
      return issue('', clock() + keyMs)
    },
    issueFor: ({ id, until = Number.POSITIVE_INFINITY }) => issue(id, Math.min(until, clock() + keyMs)),
    hasKeyForm: (text) => anyKeyForm.test(text),
    read(key) {
      const text = keyForm.exec(key)?.[1] ?? ''
      const bytes = Buffer.from(text, 'base64url')
      // a text that decodes to the same bytes is another text
      if (bytes.byteLength === 0 || bytes.toString('base64url') !== text) return undefined
      const publicPart = bytes.subarray(0, -signatureBytes)
      // the signature is checked before the time: the time in a forged key means nothing
      if (!timingSafeEqual(sign(publicPart), bytes.subarray(-signatureBytes))) return undefined
      if (clock() >= publicPart.readUIntBE(0, timeBytes)) return undefined
      return { tokenId: publicPart.subarray(publicBytes).toString() || undefined }
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
