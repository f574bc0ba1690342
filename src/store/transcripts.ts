// What stays of the transcript of a session: whole exchanges. An exchange is a prompt with its reply.
import type { Session } from '../model/job.ts'

/** The newest exchanges with at most so many messages and bytes in all stay. */
export type TranscriptBounds = { readonly messages: number; readonly bytes: number }

/** The part of the store that shortens transcripts. */
export interface TranscriptKeeper {
  /**
   * Deletes the messages of a session beyond the bounds, and the state of its runner, which may name a longer session. Its events stay. Returns how
   * many messages were deleted.
   */
  trimTranscript(name: Pick<Session, 'agentId' | 'sessionKey'>, bounds: TranscriptBounds): Promise<number>
}

type Statement = {
  /** The condition for the messages of the session. */
  readonly ofSession: string
  /** The number of bytes of the column `text`. */
  readonly textBytes: string
  readonly maxMessages: string
  readonly maxBytes: string
}

/** Deletes all messages before the oldest exchange that stays, or all if none stays. */
export const deleteBeyond = ({ ofSession, textBytes, maxMessages, maxBytes }: Statement) => `DELETE FROM messages
  WHERE ${ofSession} AND seq < coalesce((SELECT min(seq) FROM (
    SELECT seq, role, count(*) OVER newest AS messages, sum(${textBytes}) OVER newest AS bytes
      FROM messages WHERE ${ofSession} WINDOW newest AS (ORDER BY seq DESC)) counted
    WHERE role = 'user' AND messages <= ${maxMessages} AND bytes <= ${maxBytes}), ${Number.MAX_SAFE_INTEGER})`
