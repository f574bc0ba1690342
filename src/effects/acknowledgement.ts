// HEARTBEAT_OK: how an agent says that it has nothing to report. The word is never posted to people; a reply that says no more than it is not posted at all.

/** No reply this long is an acknowledgement: keeps the patterns below away from a model's endless output. */
const maxChars = 12_000

// the token once or several times, each with at most four characters behind it that are no word: "HEARTBEAT_OK.", "HEARTBEAT_OK 👍"
const leading = /^(?:HEARTBEAT_OK(?![\p{L}\p{N}_])[^\p{L}\p{N}_]{0,4})+/u
const trailing = /(?:(?<![\p{L}\p{N}_])HEARTBEAT_OK[^\p{L}\p{N}_]{0,4})+$/u

/** Markdown emphasis, code and quote marks, and HTML tags around the token say nothing. */
function unwrap(text: string): string {
  return text
    .replace(/<[^<>]*>|&nbsp;/gi, ' ')
    .trim()
    .replace(/^[*`~_>#\s]+|[*`~_\s]+$/g, '')
}

/**
 * Why a reply is not posted, or undefined when it is. The reply of a hook run is an acknowledgement when nothing stands
 * beside the token; that of a heartbeat also with a remark of at most `ackMaxChars` UTF-16 units before or behind it.
 */
export function whyNotPosted(reply: string, heartbeat?: { readonly ackMaxChars: number }): string | undefined {
  if (reply.trim() === '') return 'The reply is empty.'
  if (reply.length > maxChars || !reply.includes('HEARTBEAT_OK')) return undefined
  const text = unwrap(reply)
  const unmarked = text.replace(leading, '').replace(trailing, '').trim()
  const remark = Math.min(unmarked.length, unwrap(withoutToken(reply)).length)
  const allowed = heartbeat?.ackMaxChars ?? 0
  return remark < text.length && remark <= allowed ? 'The reply is only an acknowledgement (HEARTBEAT_OK).' : undefined
}

/** The reply without the token at its beginning and at its end. In the middle of a text it is a word like any other. */
export function toPosted(reply: string): string {
  const text = withoutToken(reply)
  // what has no word in it says nothing without the token
  return /[\p{L}\p{N}]/u.test(text) ? text : reply
}

function withoutToken(reply: string): string {
  let text = reply
  for (let round = 0; round < mostTokens; round++) {
    const rest = withoutTrailing(withoutLeading(text))
    if (rest === text) break
    text = rest
  }
  return text
}

/** Tokens at one end that are taken away. */
const mostTokens = 20
/** UTF-16 units at the end of a text that are searched for the token. */
const endChars = 200

const opened = /^(?:[>#\s]|&nbsp;)*(?<tags>(?:<[a-z][^<>]{0,100}>\s*)*)(?<marks>[*_`~([]*)\s*HEARTBEAT_OK/i
const closed =
  /(?:[\s\-–—:|>#]|\*[ \t])*(?<![\p{L}\p{N}_])(?<tags>(?:<[a-z][^<>]*>)*)(?<marks>[*_`~([]*)\s*HEARTBEAT_OK\s*(?<ends>[*_`~)\]]*)(?<endTags>(?:\s*<\/[^<>]*>)*)[^\p{L}\p{N}_]{0,4}$/u

/** Marks that the token closes go with it; those that go on behind it stay. */
function withoutLeading(text: string): string {
  const found = opened.exec(text)
  if (found === null || !found[0].endsWith('HEARTBEAT_OK')) return text
  const { tags = '', marks = '' } = found.groups ?? {}
  const behind = text.slice(found[0].length)
  const end = toEnd(marks)
  const isClosed = behind.trimStart().startsWith(end)
  const rest = isClosed ? (end === '' ? behind : behind.trimStart().slice(end.length)) : behind
  if (/^[\p{L}\p{N}_]/u.test(rest)) return text
  const said = rest
    .replace(tags === '' ? /^/ : /^(?:\s*<\/[^<>]{0,100}>)*/, '')
    .replace(/^[.!…,;:]{0,4}(?:[ \t]+[–—-][ \t]+)?/, '')
    .trim()
  return isClosed ? said : marks + said
}

function withoutTrailing(text: string): string {
  const end = text.trimEnd()
  const from = Math.max(0, end.length - endChars)
  const found = closed.exec(end.slice(from))
  if (found === null) return text
  const { tags = '', marks = '', ends = '', endTags = '' } = found.groups ?? {}
  return `${end.slice(0, from + found.index)}${marks === '' ? ends : ''}${tags === '' ? endTags : ''}`.trimEnd()
}

/** What closes these marks: `**_` is closed by `_**`. */
function toEnd(marks: string): string {
  return [...marks]
    .toReversed()
    .map((mark) => (mark === '(' ? ')' : mark === '[' ? ']' : mark))
    .join('')
}
