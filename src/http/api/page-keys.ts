// The keys of the page. `hookloom open` gets a code that works once and for a minute; the page exchanges it for a key of twelve hours.
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../store/store.ts'

const codeMs = 60_000
const keyMs = 12 * 3_600_000
/** Codes and keys that are remembered; the oldest are forgotten first. */
const mostCodes = 20
const mostKeys = 100

/** 256 random bits: no guess needs to be counted. */
const keyForm = /^hlk_[\w-]{43}$/

type IssuedSecret = { readonly text: string; /** Milliseconds since the epoch. */ readonly until: number }

export type PageKeys = {
  issueCode(): IssuedSecret
  /** Undefined if the code is unknown, was used before, or is older than a minute. */
  exchange(code: string): IssuedSecret | undefined
  /** Whether a text has the form of a key, valid or not. */
  isForm(text: string): boolean
  isValid(key: string): boolean
}

/**
 * In memory only: a restart ends all keys. They are remembered as digests, and a look-up by digest takes the same time for every
 * wrong text. A new gateway token ends the keys that were made under the old one.
 */
export function createPageKeys({ clock, token }: { clock: Clock; token: () => string | undefined }): PageKeys {
  const codes = new Map<string, number>()
  const keys = new Map<string, number>()
  let issuedUnder = token()

  function issue(
    among: Map<string, number>,
    { prefix, ms, most }: { prefix: string; ms: number; most: number },
  ): IssuedSecret {
    const text = `${prefix}${randomBytes(32).toString('base64url')}`
    const until = clock() + ms
    among.set(toDigest(text), until)
    for (const oldest of among.keys()) {
      if (among.size <= most) break
      among.delete(oldest)
    }
    return { text, until }
  }

  function forgetOldKeys(): void {
    if (issuedUnder === token()) return
    issuedUnder = token()
    codes.clear()
    keys.clear()
  }

  return {
    issueCode() {
      forgetOldKeys()
      return issue(codes, { prefix: '', ms: codeMs, most: mostCodes })
    },
    exchange(code) {
      forgetOldKeys()
      const digest = toDigest(code)
      const until = codes.get(digest)
      codes.delete(digest)
      if (until === undefined || clock() >= until) return undefined
      return issue(keys, { prefix: 'hlk_', ms: keyMs, most: mostKeys })
    },
    isForm: (text) => keyForm.test(text),
    isValid(key) {
      forgetOldKeys()
      const until = keys.get(toDigest(key))
      return until !== undefined && clock() < until
    },
  }
}

function toDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
