// The text of the column `answer_body`: the body of an answer, with its content type if it has one.
import type { StoredAnswer } from './records.ts'

/** The beginning of a text with a content type, in the form of an HTTP header. A text without a content type is JSON or empty, so it never begins like this. */
const typeLine = 'content-type: '

export function toAnswerText({ body, contentType }: StoredAnswer): string {
  return contentType === undefined ? body : `${typeLine}${contentType}\n\n${body}`
}

export function readAnswerText(text: string): Omit<StoredAnswer, 'status'> {
  const end = text.startsWith(typeLine) ? text.indexOf('\n\n') : -1
  if (end < 0) return { body: text }
  return { body: text.slice(end + 2), contentType: text.slice(typeLine.length, end) }
}
