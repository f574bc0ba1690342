// Shortens the transcript of a session.
import type { Session } from '../../model/job.ts'
import { deleteBeyond, type TranscriptBounds } from '../transcripts.ts'
import type { Query } from './pool.ts'

type Trim = Pick<Session, 'agentId' | 'sessionKey'> & { readonly bounds: TranscriptBounds }

const deleteOldMessages = `${deleteBeyond({
  ofSession: 'agent_id = $1 AND session_key = $2',
  textBytes: 'octet_length(text)',
  maxMessages: '$3::bigint',
  maxBytes: '$4::bigint',
})} RETURNING seq`

/** Returns how many messages were deleted. */
export async function deleteMessages(query: Query, { agentId, sessionKey, bounds }: Trim): Promise<number> {
  const { messages, bytes } = bounds
  const deleted = await query(deleteOldMessages, agentId, sessionKey, messages, bytes)
  return deleted.length
}

export async function trimTranscript(query: Query, trim: Trim): Promise<number> {
  const { agentId, sessionKey } = trim
  await query('UPDATE sessions SET runner_state = NULL WHERE agent_id = $1 AND session_key = $2', agentId, sessionKey)
  return await deleteMessages(query, trim)
}
