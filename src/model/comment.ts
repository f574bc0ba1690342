// How a comment of Hookloom is recognised: by a second attempt to post it, and by the hook that its sender then calls.

/** The last line of a comment: a quotation of a comment has the marker after `>`, or before other lines. */
const marker = /(?:^|\n)<!-- hookloom:[\da-f]{25} -->\s*$/

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
