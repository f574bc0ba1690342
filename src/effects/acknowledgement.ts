// A reply that only says "nothing to report" is never posted to people. A reply with anything beside that is posted as it is.

/** No reply this long is an acknowledgement: keeps the patterns below away from a model's endless output. */
const maxChars = 1_000

// the token once or several times, each with at most four characters behind it that are no word: "HEARTBEAT_OK.", "HEARTBEAT_OK 👍"
const acknowledgement = /^(?:HEARTBEAT_OK[^\p{L}\p{N}_]{0,4})+$/u

/** Markdown emphasis, code and quote marks, and HTML tags around the token say nothing. */
function unwrap(text: string): string {
  return text
    .replace(/<[^<>]*>|&nbsp;/gi, ' ')
    .trim()
    .replace(/^[*`~_>#\s]+|[*`~_\s]+$/g, '')
}

/** Why a reply is not posted, or undefined when it is. */
export function whyNotPosted(reply: string): string | undefined {
  if (reply.trim() === '') return 'The reply is empty.'
  if (reply.length > maxChars || !reply.includes('HEARTBEAT_OK')) return undefined
  return acknowledgement.test(unwrap(reply)) ? 'The reply is only an acknowledgement (HEARTBEAT_OK).' : undefined
}
