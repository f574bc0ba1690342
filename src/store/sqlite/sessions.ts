// The operations on sessions: events, transcripts and runner states. They run inside the writer's transaction.
import type { Database, SqlValue } from './driver.ts'
import type { EventValues, OperationOf } from './operations.ts'

const insertEvent = `INSERT INTO events (agent_id, session_key, text, source, trusted, wakes, at, delivery_id)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const insertMessage = `INSERT INTO messages (agent_id, session_key, at, role, run_id, text) VALUES (?, ?, ?, ?, ?, ?)`

const touchSession = `INSERT INTO sessions (agent_id, session_key, updated_at) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at WHERE excluded.updated_at > updated_at`

const consume = `UPDATE events SET consumed_at = ?
  WHERE agent_id = ? AND session_key = ? AND consumed_at IS NULL AND seq <= ?`

/** The session of a turn. */
export type Place = { readonly agentId: SqlValue; readonly sessionKey: SqlValue }

type Cause = { readonly deliveryId: SqlValue; readonly at: number }

export function insertEvents(db: Database, events: readonly EventValues[], { deliveryId, at }: Cause): void {
  for (const event of events) {
    db.run(insertEvent, ...event, at, deliveryId)
    db.run(touchSession, event[0], event[1], at)
  }
}

/** Writes the parts of a report that belong to the job's session and to the main session of its agent. */
export function keepTurn(db: Database, operation: OperationOf<'report'>, { agentId, sessionKey }: Place): void {
  const { id, at, messages, consumedUpTo, runnerState, recipient } = operation
  for (const { role, text } of messages) db.run(insertMessage, agentId, sessionKey, at, role, id, text)
  if (consumedUpTo !== undefined) db.run(consume, at, agentId, sessionKey, consumedUpTo)
  if (messages.length > 0 || runnerState !== undefined) db.run(touchSession, agentId, sessionKey, at)
  if (runnerState !== undefined) {
    db.run(
      'UPDATE sessions SET runner_state = ? WHERE agent_id = ? AND session_key = ?',
      runnerState,
      agentId,
      sessionKey,
    )
  }
  if (recipient !== undefined) {
    db.run(touchSession, agentId, 'main', at)
    db.run(
      `UPDATE sessions SET recipient_channel = ?, recipient_to = ? WHERE agent_id = ? AND session_key = 'main'`,
      recipient.channel,
      recipient.to,
      agentId,
    )
  }
}
