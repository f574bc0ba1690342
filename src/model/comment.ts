// How a comment of Hookloom is recognised: by a second attempt to post it, and by the hook that its sender then calls.
import { createHash, createHmac } from 'node:crypto'

/** The last line of a comment: a quotation of a comment has the marker after `>`, or before other lines. */
const marker = /(?:^|\n)<!-- hookloom:[\da-f]{25} -->\s*$/

/**
 * The nonce that a comment shows. Everybody can read the id of a run in a commit status, and so compute the nonces of its messages: a comment
 * with one of them, posted before, would be taken for the reply. `credential`: of the channel.
 */
export function signNonce(nonce: string, credential: string): string {
  return createHmac('sha256', credential).update(nonce).digest('hex').slice(0, 25)
}

/** An HTML comment, which no reader sees. `nonce`: of the message, 25 lower-case hex digits. */
export function toMarker(nonce: string): string {
  return `<!-- hookloom:${nonce} -->`
}

/**
 * Whether the text ends as a comment of a channel of Hookloom does. Anybody can copy the marker, and so keep a comment from every agent: the
 * rule stops loops, and proves nothing about the author.
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

/** Whether `toCommentId` made the id. */
export function isOwnCommentId(id: string): boolean {
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

/** 60 bits. */
function hashToHex(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 15)
}
