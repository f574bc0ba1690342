// What senders share: short forms of marks and of the places of facts, and a comparison.
import { hash, timingSafeEqual } from 'node:crypto'
import type { Fact, Mark } from '../../define.ts'

export const sent = (header: string, beside?: string): Mark => (beside === undefined ? { header } : { header, beside })
export const userAgent = (like: RegExp): Mark => ({ header: 'user-agent', like })
export const header = (name: string): Fact => ({ in: 'header', name })
/** `path`: names of fields and indexes of arrays, such as `value.0.changeType`. */
export const body = (path: string): Fact => ({
  in: 'body',
  path: path.split('.').map((step) => (/^\d+$/.test(step) ? Number(step) : step)),
})
export const key = (like: RegExp): Fact => ({ in: 'key', like })
export const all = (...parts: Fact[]): Fact => ({ in: 'all', parts })

const noCommit = /^0*$/

/** The parts of a recipient or of a commit as one text, such as `acme/app#7`. Undefined if a part is missing, or if the commit is none. */
export function joinPlace(owner: string | undefined, sign: string, rest: string | undefined): string | undefined {
  return owner === undefined || rest === undefined || noCommit.test(rest) ? undefined : `${owner}${sign}${rest}`
}

/** Compares in constant time. Digests are compared, so that even the length of a secret stays unknown. */
export const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'))
