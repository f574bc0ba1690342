// The operations on sessions: events, transcripts and runner states. They run inside the writer's transaction. The time of the last update of a
// session follows from the rows of its events and messages: see catalog.ts.
import { selectTouched, selectTouchedSessions } from './catalog.ts'
import type { Database, Row, SqlValue } from './driver.ts'
import type { EventValues, OperationOf, WakeValues } from './operations.ts'
import { deleteMessages } from '../trim.ts'
import { dialect, runScript } from './flow.ts'
import { maskSession, sumEvent, sums } from './sums.ts'

const insertEvent = `INSERT INTO events (agent_id, session_key, text, source, trusted, wakes, at, delivery_id, sum)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** The text and the source are those of the wake in the row of the delivery. */
const insertEventOfWake = `INSERT INTO events (agent_id, session_key, text, source, trusted, wakes, sum, at, delivery_seq)
  VALUES (?, ?, '', '', ?, ?, ?, ?, ?)`

/** The columns that `maskEvent` and `toSystemEvent` read. */
export const eventColumns = `e.seq, e.sum, e.agent_id, e.session_key, e.at, e.consumed_at, e.trusted, e.wakes,
  coalesce(e.delivery_id, d.id) AS delivery_id,
  CASE WHEN d.seq IS NULL THEN e.text ELSE d.plan ->> '$.action.text' END AS text,
  CASE WHEN d.seq IS NULL THEN e.source ELSE coalesce(d.plan ->> '$.origin.source', d.plan ->> '$.origin.hook') END AS source`
export const eventTables = 'events e LEFT JOIN deliveries d ON d.seq = e.delivery_seq'

const insertMessage = `INSERT INTO messages (agent_id, session_key, at, role, run_id, text, sum) VALUES (?, ?, ?, ?, ?, ?, ?)`

const touchSession = `INSERT INTO sessions (agent_id, session_key, updated_at) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at WHERE excluded.updated_at > updated_at`

/** CROSS JOIN reads the rows that are named: otherwise, SQLite would read each event that waits for the session, with the whole list for each. */
const consume = `UPDATE events SET consumed_at = ?1 WHERE seq IN (SELECT e.seq FROM json_each(?4) shown
  CROSS JOIN events e ON e.seq = shown.value ->> 0 AND e.at = shown.value ->> 1
    AND e.agent_id = ?2 AND e.session_key = ?3 AND e.consumed_at IS NULL)`

/** The session of a turn. */
type SessionId = { readonly agentId: SqlValue; readonly sessionKey: SqlValue }

type Cause = { readonly deliveryId: SqlValue; readonly at: number }

export function insertEvents(db: Database, events: readonly EventValues[], { deliveryId, at }: Cause): void {
  for (const event of events) db.run(insertEvent, ...event, at, deliveryId, sumEvent(event, deliveryId, at))
}

export function insertWakeEvent(
  db: Database,
  { wake, deliverySeq, at }: { wake: WakeValues; deliverySeq: number; at: number },
): void {
  db.run(insertEventOfWake, ...wake, at, deliverySeq)
}

/** Writes the parts of a report that belong to the job's session and to the main session of its agent. */
export function writeTurn(db: Database, operation: OperationOf<'report'>, { agentId, sessionKey }: SessionId): void {
  const { id, at, messages, keeps, consumed, runnerState, recipient } = operation
  const session = { agent_id: agentId, session_key: sessionKey }
  for (const { role, text } of messages) {
    const sum = sums.message({ ...session, at, role, run_id: id, text })
    db.run(insertMessage, agentId, sessionKey, at, role, id, text, sum)
  }
  if (keeps !== undefined) runScript(db, deleteMessages({ agentId, sessionKey }, keeps, dialect), at)
  if (consumed.length > 0) db.run(consume, at, agentId, sessionKey, JSON.stringify(consumed))
  if (runnerState !== undefined) {
    db.run(touchSession, agentId, sessionKey, at)
    db.run(
      'UPDATE sessions SET runner_state = ?, state_sum = ? WHERE agent_id = ? AND session_key = ?',
      runnerState,
      sums.state({ ...session, runner_state: runnerState }) ?? null,
      agentId,
      sessionKey,
    )
  }
  if (recipient !== undefined) {
    db.run(touchSession, agentId, 'main', at)
    db.run(
      `UPDATE sessions SET recipient_channel = ?, recipient_to = ?, recipient_sum = ? WHERE agent_id = ? AND session_key = 'main'`,
      recipient.channel,
      recipient.to,
      sums.recipient({
        agent_id: agentId,
        session_key: 'main',
        recipient_channel: recipient.channel,
        recipient_to: recipient.to,
      }),
      agentId,
    )
  }
}

const selectSession = 'SELECT * FROM sessions WHERE agent_id = ? AND session_key = ?'
/** The newest rows before a moment: at least `?2`, and all rows of the oldest moment among them. */
const selectSessions = `SELECT * FROM sessions
  WHERE updated_at < ?1 AND updated_at >= (SELECT min(updated_at) FROM
    (SELECT updated_at FROM sessions WHERE updated_at < ?1 ORDER BY updated_at DESC LIMIT ?2))
  ORDER BY updated_at, agent_id, session_key`

function readStored(db: Database, agentId: SqlValue, sessionKey: SqlValue): Row | undefined {
  const row = db.get(selectSession, agentId, sessionKey)
  return row && maskSession(row)
}

/** A session, with the rows behind the catalog. */
export function findSession(db: Database, agentId: string, sessionKey: string): Row | undefined {
  const row = readStored(db, agentId, sessionKey)
  const updatedAt = db.get(selectTouched, agentId, sessionKey)?.['updated_at'] ?? null
  return updatedAt === null ? row : touch(row, { agent_id: agentId, session_key: sessionKey, updated_at: updatedAt })
}

/** A page of sessions, with the rows behind the catalog. */
export function findSessions(db: Database, { limit, before }: { limit: number; before: number }): Row[] {
  const toName = (row: Row) => `${row['agent_id']}\0${row['session_key']}`
  const touched = db.all(selectTouchedSessions)
  const touchedNames = new Set(touched.map(toName))
  const fresh = touched.map((row) => touch(readStored(db, row['agent_id'] ?? null, row['session_key'] ?? null), row))
  const others = db
    .all(selectSessions, before, limit + touched.length)
    .map(maskSession)
    .filter((row) => !touchedNames.has(toName(row)))
  const rows = [...fresh.filter(({ updated_at: at }) => Number(at) < before), ...others].toSorted(
    (a, b) => Number(a['updated_at']) - Number(b['updated_at']) || (toName(a) < toName(b) ? -1 : 1),
  )
  const oldest = rows.at(-limit)?.['updated_at'] ?? 0
  return limit === 0 ? [] : rows.filter(({ updated_at: at }) => Number(at) >= Number(oldest))
}

const noSession: Row = { recipient_channel: null, recipient_to: null, runner_state: null, updated_at: 0 }

function touch(row: Row = noSession, touched: Row): Row {
  return { ...row, ...touched, updated_at: Math.max(Number(row['updated_at']), Number(touched['updated_at'])) }
}
