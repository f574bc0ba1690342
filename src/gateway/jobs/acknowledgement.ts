// HEARTBEAT_OK is the reply of an agent with nothing to report. A reply with nothing else is not posted. From any other reply, the token is
// removed at the beginning and at the end.

/** A longer reply is never an acknowledgement. The limit also protects the patterns below from endless output. */
const maxChars = 12_000

// the token, once or repeated, each time followed by at most four non-word characters: "HEARTBEAT_OK.", "HEARTBEAT_OK 👍"
const leadingTokens = /^(?:HEARTBEAT_OK(?![\p{L}\p{N}_])[^\p{L}\p{N}_]{0,4})+/u
const trailingTokens = /(?:(?<![\p{L}\p{N}_])HEARTBEAT_OK[^\p{L}\p{N}_]{0,4})+$/u

/** Replaces HTML tags by spaces, and removes the Markdown marks of emphasis, code and quotes at both ends. */
function unwrap(text: string): string {
  return text
    .replace(/<[^<>]*>|&nbsp;/gi, ' ')
    .trim()
    .replace(/^[*`~_>#\s]+|[*`~_\s]+$/g, '')
}

/**
 * Why a reply is not posted; undefined if it is posted. The reply of a hook run is an acknowledgement if it has only the token; the reply of a
 * heartbeat may also have a remark of at most `ackMaxChars` UTF-16 units before or after it.
 */
export function explainSilence(reply: string, heartbeat?: { readonly ackMaxChars: number }): string | undefined {
  if (reply.trim() === '') return 'The reply is empty.'
  if (reply.length > maxChars || !reply.includes('HEARTBEAT_OK')) return undefined
  const text = unwrap(reply)
  const unmarked = text.replace(leadingTokens, '').replace(trailingTokens, '').trim()
  const remark = Math.min(unmarked.length, unwrap(removeTokens(reply)).length)
  const allowed = heartbeat?.ackMaxChars ?? 0
  return remark < text.length && remark <= allowed ? 'The reply is only an acknowledgement (HEARTBEAT_OK).' : undefined
}

/** The reply without the token at its beginning and end. In the middle of a text the token is an ordinary word. */
export function removeAcknowledgement(reply: string): string {
  const text = removeTokens(reply)
  // a text without a word means nothing if the token is removed
  return /[\p{L}\p{N}]/u.test(text) ? text : reply
}

function removeTokens(reply: string): string {
  let text = reply
  for (let round = 0; round < maxTokens; round++) {
    const rest = removeTrailingToken(removeLeadingToken(text))
    if (rest === text) break
    text = rest
  }
  return text
}

/** The maximum number of tokens that are removed at each end. */
const maxTokens = 20
/** The number of UTF-16 units at each end of a text that are searched for the token. On a longer text, the patterns could take minutes. */
const endChars = 200

const leadingToken = /^(?:[>#\s]|&nbsp;)*(?<tags>(?:<[a-z][^<>]{0,100}>\s*)*)(?<marks>[*_`~([]*)\s*HEARTBEAT_OK/i
const trailingToken =
  /(?:[\s\-–—:|>#]|\*[ \t])*(?<![\p{L}\p{N}_])(?<tags>(?:<[a-z][^<>]*>)*)(?<marks>[*_`~([]*)\s*HEARTBEAT_OK\s*(?<ends>[*_`~)\]]*)(?<endTags>(?:\s*<\/[^<>]*>)*)[^\p{L}\p{N}_]{0,4}$/u

/** Marks that close right after the token are removed with it; marks that close later stay. */
function removeLeadingToken(text: string): string {
  const start = text.trimStart()
  const found = leadingToken.exec(start.slice(0, endChars))
  if (found === null || !found[0].endsWith('HEARTBEAT_OK')) return text
  const { tags = '', marks = '' } = found.groups ?? {}
  const behind = start.slice(found[0].length)
  const end = closeMarks(marks)
  const isClosed = behind.trimStart().startsWith(end)
  const rest = isClosed ? (end === '' ? behind : behind.trimStart().slice(end.length)) : behind
  if (/^[\p{L}\p{N}_]/u.test(rest)) return text
  const said = rest
    .replace(tags === '' ? /^/ : /^(?:\s*<\/[^<>]{0,100}>)*/, '')
    .replace(/^[.!…,;:]{0,4}(?:[ \t]+[–—-][ \t]+)?/, '')
    .trim()
  return isClosed ? said : marks + said
}

function removeTrailingToken(text: string): string {
  const end = text.trimEnd()
  const from = Math.max(0, end.length - endChars)
  const found = trailingToken.exec(end.slice(from))
  if (found === null) return text
  const { tags = '', marks = '', ends = '', endTags = '' } = found.groups ?? {}
  return `${end.slice(0, from + found.index)}${marks === '' ? ends : ''}${tags === '' ? endTags : ''}`.trimEnd()
}

/** The closing marks for some opening marks: `**_` is closed by `_**`. */
function closeMarks(marks: string): string {
  return [...marks]
    .toReversed()
    .map((mark) => (mark === '(' ? ')' : mark === '[' ? ']' : mark))
    .join('')
}
