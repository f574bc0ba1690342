// The operations on sessions: events, transcripts and runner states. They run inside the writer's transaction.
import type { Database, SqlValue } from './driver.ts'
import type { EventValues, OperationOf } from './operations.ts'

const insertEvent = `INSERT INTO events (agent_id, session_key, text, source, trusted, wakes, at, delivery_id)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const insertMessage = `INSERT INTO messages (agent_id, session_key, at, role, run_id, text) VALUES (?, ?, ?, ?, ?, ?)`

const touchSession = `INSERT INTO sessions (agent_id, session_key, updated_at) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at WHERE excluded.updated_at > updated_at`

const consume = `UPDATE events SET consumed_at = ?
  WHERE agent_id = ? AND session_key = ? AND consumed_at IS NULL AND seq IN (SELECT value FROM json_each(?))`

/** The session of a turn. */
type SessionId = { readonly agentId: SqlValue; readonly sessionKey: SqlValue }

type Cause = { readonly deliveryId: SqlValue; readonly at: number }

export function insertEvents(db: Database, events: readonly EventValues[], { deliveryId, at }: Cause): void {
  for (const event of events) {
    db.run(insertEvent, ...event, at, deliveryId)
    noteTouchedSession(db, event, at)
  }
}

type TouchedSession = { readonly agentId: string; readonly sessionKey: string; readonly at: number }

/** What the transaction of a connection has touched: most events of a batch are for the same session. */
const touched = new WeakMap<Database, Map<string, TouchedSession>>()

function noteTouchedSession(db: Database, [agentId, sessionKey]: EventValues, at: number): void {
  const sessions = touched.get(db) ?? new Map<string, TouchedSession>()
  touched.set(db, sessions)
  const name = `${agentId}\0${sessionKey}`
  if ((sessions.get(name)?.at ?? 0) < at) sessions.set(name, { agentId, sessionKey, at })
}

/** Writes the sessions that got events in this transaction. Call it before the commit. */
export function touchSessions(db: Database): void {
  for (const { agentId, sessionKey, at } of touched.get(db)?.values() ?? [])
    db.run(touchSession, agentId, sessionKey, at)
  touched.delete(db)
}

/** Call it when a transaction begins: one before it may have been rolled back. */
export function forgetTouchedSessions(db: Database): void {
  touched.delete(db)
}

/** Writes the parts of a report that belong to the job's session and to the main session of its agent. */
export function writeTurn(db: Database, operation: OperationOf<'report'>, { agentId, sessionKey }: SessionId): void {
  const { id, at, messages, consumed, runnerState, recipient } = operation
  for (const { role, text } of messages) db.run(insertMessage, agentId, sessionKey, at, role, id, text)
  if (consumed.length > 0) db.run(consume, at, agentId, sessionKey, JSON.stringify(consumed))
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
