// Shortens the transcript of a session: see `TranscriptKeeper`.
import type { SqlValue } from './rows.ts'
import { countChanged, type Dialect, run, type Script } from './script.ts'
import type { TranscriptBounds } from './transcripts.ts'

type SessionName = { readonly agentId: SqlValue; readonly sessionKey: SqlValue }

/** Deletes all messages before the oldest exchange that stays, or all if none stays. Returns how many. */
export function deleteMessages(
  { agentId, sessionKey }: SessionName,
  { messages, bytes }: TranscriptBounds,
  { ofSession }: Dialect,
): Script<number> {
  const sql = `DELETE FROM messages WHERE ${ofSession} AND seq < coalesce((SELECT min(seq) FROM (
    SELECT seq, role, count(*) OVER newest AS messages, sum(octet_length(text)) OVER newest AS bytes
      FROM messages WHERE ${ofSession} WINDOW newest AS (ORDER BY seq DESC)) counted
    WHERE role = 'user' AND messages <= CAST($3 AS bigint) AND bytes <= CAST($4 AS bigint)), ${Number.MAX_SAFE_INTEGER})`
  return countChanged(sql, agentId, sessionKey, messages, bytes)
}

export function* trimTranscript(name: SessionName, bounds: TranscriptBounds, dialect: Dialect): Script<number> {
  const sql = 'UPDATE sessions SET runner_state = NULL WHERE agent_id = $1 AND session_key = $2'
  yield* run(sql, name.agentId, name.sessionKey)
  return yield* deleteMessages(name, bounds, dialect)
}
