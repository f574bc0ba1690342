// Reads from a request where its event happened, so that the channel of its sender can reply there, and whether its text is a comment that
// Hookloom posted. A channel that answers a sender has the same name.
import type { EventPlace } from '../../core/model/action.ts'
import { isOwnComment, isOwnCommentId } from '../../model/comment.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import type { PayloadReader } from '../../core/model/sender.ts'
import type { SentValue } from '../../base/json.ts'
import { isNumber } from '../../base/sent-number.ts'
import { readPayload } from '../../core/model/body.ts'
import { readPath } from '../../core/model/path.ts'

/** A part of the marker in the text of each comment that has one, in every encoding. A request without it need not be parsed. */
const mark = Buffer.from('hookloom')

/**
 * Where the event of a delivery happened. Undefined without a proof of its sender: otherwise, a caller that has only a hook token could choose any
 * repository that the credential of the channel can write to.
 */
export function readPlace({ sender, body }: Pick<Delivery, 'sender' | 'body'>): EventPlace | undefined {
  if (sender?.shownBy !== 'proof' || sender.facts.answers === undefined) return undefined
  const { answers, name } = sender.facts
  const read = createReader(readPayload(body))
  return { channel: name, to: answers.place(read), commit: answers.commit?.(read) }
}

/** Whether the request is about a comment that a channel of Hookloom posted. It needs no proof, because an agent must not wake itself without end. */
export function isAboutOwnComment({ sender, body }: Pick<Delivery, 'sender' | 'body'>): boolean {
  if (sender === undefined || sender.shownBy === 'payload') return false
  const { commentText, commentId } = sender.facts.answers ?? {}
  if (commentText === undefined && commentId === undefined) return false
  // a payload that only a transform reads is parsed in the thread of the transform
  const { bytes, parsed } = body
  const isUnread = commentId === undefined && parsed === undefined
  if (isUnread && !Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(mark)) return false
  const read = createReader(readPayload(body))
  return isOwnComment(commentText?.(read) ?? '') || isOwnCommentId(commentId?.(read) ?? '')
}

function createReader(payload: SentValue): PayloadReader {
  return (...paths) => {
    for (const path of paths) {
      const value = readPath(payload, path.split('.'))
      if (isNumber(value)) return String(value)
      if (typeof value === 'string' && value !== '') return value
    }
    return undefined
  }
}
