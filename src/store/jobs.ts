// Jobs in the writer's transaction: leased under a fence, reported by whoever still holds the lease, never twice a step.
import type { Database, Row, SqlValue } from './driver.ts'
import { closeLane, openLane } from './lanes.ts'
import type { EventValues, JobValues, OperationOf } from './operations.ts'

const insertJob = `INSERT INTO jobs (id, delivery_seq, planned, lane, state, steps, run_at, ended_at, gate)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, CASE WHEN ?4 IS NULL OR ?8 IS NOT NULL THEN 0
    ELSE EXISTS (SELECT 1 FROM jobs WHERE lane = ?4 AND ended_at IS NULL) END)`

const insertEvent = `INSERT INTO events (agent_id, session_key, text, source, trusted, at, delivery_id)
  VALUES (?, ?, ?, ?, ?, ?, ?)`

const touchSession = `INSERT INTO sessions (agent_id, session_key, updated_at) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET updated_at = max(updated_at, excluded.updated_at)`

/** The columns of a job as records are made of them; `d` is its delivery. */
export const jobColumns = `j.id, j.planned, j.state, j.attempts, j.run_at, j.locked_until, j.last_error, j.steps,
  j.fence, j.delivery_seq, d.id AS delivery_id`

type Batch = { deliverySeq: number; deliveryId: string; at: number; jobs: readonly JobValues[] }

export function insertJobs(db: Database, { deliverySeq, deliveryId, at, jobs }: Batch): void {
  for (const { id, planned, lane, state, steps, events } of jobs) {
    db.run(insertJob, id, deliverySeq, planned, lane, state, steps, at, state === 'done' ? at : null)
    insertEvents(db, events, deliveryId, at)
  }
}

function insertEvents(db: Database, events: readonly EventValues[], deliveryId: string, at: number): void {
  for (const event of events) {
    db.run(insertEvent, ...event, at, deliveryId)
    db.run(touchSession, event[0], event[1], at)
  }
}

export function claim(db: Database, { at, limit, leaseMs }: OperationOf<'claim'>): Row[] {
  giveBack(db, db.all(`SELECT seq, lane FROM jobs WHERE state = 'running' AND locked_until <= ?`, at), at)
  // named: left alone, SQLite takes jobs_queued and reads every job that waits for its retry
  db.run(`UPDATE jobs INDEXED BY jobs_later SET gate = 0 WHERE state = 'queued' AND gate = 2 AND run_at <= ?`, at)
  const due = db.all(`SELECT seq FROM jobs WHERE state = 'queued' AND gate = 0 ORDER BY seq LIMIT ?`, limit)
  const seqs = due.map(({ seq = null }) => seq)
  for (const seq of seqs) {
    db.run(`UPDATE jobs SET state = 'running', fence = fence + 1, locked_until = ? WHERE seq = ?`, at + leaseMs, seq)
  }
  return db.all(
    `SELECT ${jobColumns} FROM jobs j JOIN deliveries d ON d.seq = j.delivery_seq
      WHERE j.seq IN (SELECT value FROM json_each(?)) ORDER BY j.seq`,
    JSON.stringify(seqs),
  )
}

/** The jobs of a dead owner are due at once. To be called by a new owner only: its own jobs hold their leases. */
export function recover(db: Database, at: number): void {
  giveBack(db, db.all(`SELECT seq, lane FROM jobs WHERE state = 'running'`), at)
}

function giveBack(db: Database, running: readonly Row[], at: number): void {
  for (const { seq = null, lane = null } of running) {
    db.run(
      `UPDATE jobs SET state = 'queued', locked_until = NULL, run_at = ?, gate = ? WHERE seq = ?`,
      at,
      gateOf(lane),
      seq,
    )
  }
  for (const { lane = null } of running) openLane(db, lane, at)
}

/** Of a job that waits again: behind its lane until openLane says otherwise. */
function gateOf(lane: SqlValue): number {
  return lane === null ? 0 : 1
}

export function report(db: Database, operation: OperationOf<'report'>): boolean {
  const { id, fence, step, at } = operation
  const job = db.get(
    `SELECT j.seq, j.lane, d.id AS delivery_id, j.planned ->> '$.agentId' AS agent_id, j.planned ->> '$.sessionKey' AS session_key,
        EXISTS (SELECT 1 FROM json_each(j.steps) WHERE value ->> '$.name' = ?3) AS recorded
      FROM jobs j JOIN deliveries d ON d.seq = j.delivery_seq WHERE j.id = ?1 AND j.fence = ?2 AND j.state = 'running'`,
    id,
    fence,
    step?.name ?? null,
  )
  if (!job) return false
  if (job['recorded'] === 0) record(db, operation, job)
  end(db, operation, { seq: job['seq'] ?? null, lane: job['lane'] ?? null, at })
  return true
}

function record(db: Database, { id, at, step, events, messages }: OperationOf<'report'>, job: Row): void {
  const { seq = null, agent_id: agentId = null, session_key: sessionKey = null } = job
  if (step) db.run(`UPDATE jobs SET steps = json_insert(steps, '$[#]', json(?)) WHERE seq = ?`, step.json, seq)
  insertEvents(db, events, String(job['delivery_id']), at)
  for (const { role, text } of messages) {
    db.run(
      'INSERT INTO messages (agent_id, session_key, at, role, run_id, text) VALUES (?, ?, ?, ?, ?, ?)',
      agentId,
      sessionKey,
      at,
      role,
      id,
      text,
    )
  }
  if (messages.length > 0) db.run(touchSession, agentId, sessionKey, at)
}

type Place = { seq: SqlValue; lane: SqlValue; at: number }

function end(db: Database, { outcome }: OperationOf<'report'>, { seq, lane, at }: Place): void {
  switch (outcome.kind) {
    case 'goes on':
      return
    case 'release':
      db.run(
        `UPDATE jobs SET state = 'queued', locked_until = NULL, run_at = ?, gate = ? WHERE seq = ?`,
        at,
        gateOf(lane),
        seq,
      )
      break
    case 'retry':
      db.run(
        `UPDATE jobs SET state = 'queued', locked_until = NULL, attempts = attempts + ?, last_error = ?, run_at = ?, gate = ?
          WHERE seq = ?`,
        outcome.counted ? 1 : 0,
        outcome.error,
        outcome.runAt,
        lane === null ? 2 : 1,
        seq,
      )
      break
    case 'done':
    case 'dead':
      db.run(
        `UPDATE jobs SET state = ?, locked_until = NULL, attempts = attempts + 1, ended_at = ?, last_error = coalesce(?, last_error)
          WHERE seq = ?`,
        outcome.kind,
        at,
        outcome.kind === 'dead' ? outcome.error : null,
        seq,
      )
  }
  openLane(db, lane, at)
}

export function extend(db: Database, { jobs, until }: OperationOf<'extend'>): string[] {
  const held = jobs.filter(
    ({ id, fence }) =>
      db.run(`UPDATE jobs SET locked_until = ? WHERE id = ? AND fence = ? AND state = 'running'`, until, id, fence)
        .changes > 0,
  )
  return held.map(({ id }) => id)
}

export function requeue(db: Database, { id, at }: OperationOf<'requeue'>): boolean {
  const job = db.get(`SELECT seq, lane FROM jobs WHERE id = ? AND state = 'dead'`, id)
  if (!job) return false
  const { seq = null, lane = null } = job
  closeLane(db, lane)
  db.run(
    `UPDATE jobs SET state = 'queued', attempts = 0, ended_at = NULL, run_at = ?, gate = ? WHERE seq = ?`,
    at,
    gateOf(lane),
    seq,
  )
  openLane(db, lane, at)
  return true
}

/** Ends the queued jobs of a delivery as dead; gives back how many. */
export function endQueued(db: Database, deliverySeq: number, at: number): number {
  const queued = db.all(`SELECT seq, lane FROM jobs WHERE delivery_seq = ? AND state = 'queued'`, deliverySeq)
  for (const { seq = null } of queued) {
    db.run(`UPDATE jobs SET state = 'dead', ended_at = ?, last_error = 'dropped' WHERE seq = ?`, at, seq)
  }
  for (const { lane = null } of queued) openLane(db, lane, at)
  return queued.length
}
