// Recognises the comments that Hookloom posts: a second attempt must not post one again, and a hook must not start a run for one.
import { createHash, createHmac } from 'node:crypto'

/** Matches the marker if it is the last line of a comment: in a quotation, it follows `>` or precedes other lines. */
const marker = /(?:^|\n)<!-- hookloom:[\da-f]{25} -->\s*$/

/**
 * The nonce that a comment shows. Everybody can read the id of a run in a commit status, and compute the nonces of its messages from it. If a
 * comment showed such a nonce unsigned, a stranger could post it first, and that comment would count as the reply. `credential`: that of the
 * channel.
 */
export function signNonce(nonce: string, credential: string): string {
  return createHmac('sha256', credential).update(nonce).digest('hex').slice(0, 25)
}

/** An HTML comment with the nonce, which no reader sees. `nonce`: 25 lower-case hex digits, as `signNonce` returns them. */
export function toMarker(nonce: string): string {
  return `<!-- hookloom:${nonce} -->`
}

/**
 * Whether the text ends with the marker of a comment of Hookloom. Anybody can copy the marker, and so hide a comment from every agent: the
 * marker stops loops, and proves nothing about the author.
 */
export function isOwnComment(text: string): boolean {
  return marker.test(text)
}

/**
 * The id of a comment of Linear, which the client may choose: a UUID of version 4, the same for each attempt. Its second half follows from the
 * first, so that a hook recognises it without a marker, which Linear would show.
 */
export function toCommentId(nonce: string): string {
  return joinCommentId(hashToHex(`nonce ${nonce}`))
}

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Whether `toCommentId` made the id. */
export function isOwnCommentId(id: string): boolean {
  // the ids of most senders are no UUIDs, and need no hash
  if (!uuid.test(id)) return false
  const hex = id.replaceAll('-', '').toLowerCase()
  return id.toLowerCase() === joinCommentId(`${hex.slice(0, 12)}${hex.slice(13, 16)}`)
}

function joinCommentId(first: string): string {
  const second = hashToHex(`hookloom comment ${first}`)
  const groups = [
    first.slice(0, 8),
    first.slice(8, 12),
    `4${first.slice(12)}`,
    `8${second.slice(0, 3)}`,
    second.slice(3),
  ]
  return groups.join('-')
}

/** The first 60 bits of the hash, as 15 hex digits. */
function hashToHex(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 15)
}
