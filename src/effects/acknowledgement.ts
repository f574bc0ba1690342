// A reply that only says "nothing to report" is never posted to people.

/** No reply this long is an acknowledgement: keeps the patterns below away from a model's endless output. */
const maxChars = 12_000

// the token once or several times, each with at most four characters behind it that are no word: "HEARTBEAT_OK.", "HEARTBEAT_OK 👍"
const leading = /^(?:HEARTBEAT_OK[^\p{L}\p{N}_]{0,4})+/u
const trailing = /(?:HEARTBEAT_OK[^\p{L}\p{N}_]{0,4})+$/u

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
  const rest = text.replace(leading, '').replace(trailing, '').trim()
  const isMarked = rest.length < text.length
  const allowed = heartbeat?.ackMaxChars ?? 0
  return isMarked && rest.length <= allowed ? 'The reply is only an acknowledgement (HEARTBEAT_OK).' : undefined
}
