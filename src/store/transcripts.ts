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
