// Jobs in the writer's transaction: leased under a fence, reported by whoever still holds the lease, never twice a step.
import { clockSetBackMs, leaseLost, rowDamaged } from '../rules.ts'
import type { Database, Row, SqlValue } from './driver.ts'
import type { JobValues, OperationOf } from './operations.ts'
import { insertEvents, keepTurn } from './sessions.ts'

const insertJob = `INSERT INTO jobs (id, delivery_seq, planned, lane, state, steps, created_at, run_at, ended_at, gate)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, CASE WHEN ?4 IS NULL OR ?8 IS NOT NULL THEN 0
    ELSE EXISTS (SELECT 1 FROM jobs WHERE lane = ?4 AND ended_at IS NULL) END)`

const insertTask = `INSERT INTO jobs (id, planned, lane, stands_for, created_at, run_at, state, steps, gate)
  SELECT ?1, ?2, ?3, ?4, ?5, ?5, 'queued', '[]', EXISTS (SELECT 1 FROM jobs WHERE lane = ?3 AND ended_at IS NULL)
  WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE stands_for = ?4 AND state = 'queued')`

/** Jobs as records are made of them, each with the id of its delivery, if it has one. */
export const selectJob = `SELECT j.id, j.planned, j.state, j.attempts, j.created_at, j.run_at, j.locked_until,
    j.last_error, j.steps, j.posts, j.fence, j.delivery_seq, d.id AS delivery_id
  FROM jobs j LEFT JOIN deliveries d ON d.seq = j.delivery_seq`

/** One that cannot be read must not keep those back that are claimed with it. */
const selectDue = `SELECT seq, lane, json_valid(planned) AND json_valid(steps) AND json_valid(posts) AS readable
  FROM jobs WHERE state = 'queued' AND gate = 0 ORDER BY seq LIMIT ?`

const selectHeld = `SELECT j.seq, j.lane, d.id AS delivery_id,
    j.planned ->> '$.agentId' AS agent_id, j.planned ->> '$.sessionKey' AS session_key,
    EXISTS (SELECT 1 FROM json_each(j.steps) WHERE value ->> '$.name' = ?3) AS recorded
  FROM jobs j LEFT JOIN deliveries d ON d.seq = j.delivery_seq
  WHERE j.id = ?1 AND j.fence = ?2 AND j.state = 'running'`

const sentPosts = `(SELECT json_group_array(json(value) ORDER BY key) FROM json_each(posts) WHERE value ->> '$.state' = 'sent')`

/** Named: left alone, SQLite takes jobs_queued and reads every job that waits for its retry. */
const openLater = `UPDATE jobs INDEXED BY jobs_later SET gate = 0 WHERE state = 'queued' AND gate = 2`

type Batch = { deliverySeq: number; deliveryId: string; at: number; jobs: readonly JobValues[] }

export function insertJobs(db: Database, { deliverySeq, deliveryId, at, jobs }: Batch): void {
  for (const { id, planned, lane, state, steps, events } of jobs) {
    db.run(insertJob, id, deliverySeq, planned, lane, state, steps, at, state === 'done' ? at : null)
    insertEvents(db, events, { deliveryId, at })
  }
}

export function addTask(db: Database, { at, id, planned, lane, standsFor }: OperationOf<'addTask'>): boolean {
  return db.run(insertTask, id, planned, lane, standsFor, at).changes > 0
}

export function claim(db: Database, { at, limit, leaseMs }: OperationOf<'claim'>): Row[] {
  takeBack(db, db.all(`SELECT seq, lane FROM jobs WHERE state = 'running' AND locked_until <= ?`, at), at)
  db.run(`${openLater} AND run_at <= ?`, at)
  db.run(`${openLater} AND run_at > ?`, at + clockSetBackMs)
  const due = db.all(selectDue, limit)
  for (const { seq = null, lane = null } of due.filter(({ readable }) => readable === 0)) {
    db.run(`UPDATE jobs SET state = 'dead', ended_at = ?, last_error = ? WHERE seq = ?`, at, rowDamaged, seq)
    openLane(db, lane, at)
  }
  const seqs = due.filter(({ readable }) => readable === 1).map(({ seq = null }) => seq)
  for (const seq of seqs) {
    db.run(`UPDATE jobs SET state = 'running', fence = fence + 1, locked_until = ? WHERE seq = ?`, at + leaseMs, seq)
  }
  return db.all(`${selectJob} WHERE j.seq IN (SELECT value FROM json_each(?)) ORDER BY j.seq`, JSON.stringify(seqs))
}

/** The jobs of a dead owner are due at once. To be called by a new owner only: its own jobs hold their leases. */
export function recover(db: Database, at: number): void {
  takeBack(db, db.all(`SELECT seq, lane FROM jobs WHERE state = 'running'`), at)
}

/** Counts: a job that takes its gateway down with it must come to an end. */
function takeBack(db: Database, running: readonly Row[], at: number): void {
  for (const { seq = null, lane = null } of running) {
    db.run(
      `UPDATE jobs SET state = 'queued', locked_until = NULL, attempts = attempts + 1, last_error = ?, run_at = ?, gate = ?
        WHERE seq = ?`,
      leaseLost,
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
  const { id, fence, step, posts, at } = operation
  const job = db.get(selectHeld, id, fence, step?.name ?? null)
  if (!job) return false
  if (job['recorded'] === 0) record(db, operation, job)
  if (posts !== undefined) db.run('UPDATE jobs SET posts = ? WHERE seq = ?', posts, job['seq'] ?? null)
  end(db, operation, { seq: job['seq'] ?? null, lane: job['lane'] ?? null, at })
  return true
}

function record(db: Database, operation: OperationOf<'report'>, job: Row): void {
  const { at, step, events } = operation
  const { seq = null, delivery_id: deliveryId = null, agent_id: agentId = null, session_key: sessionKey = null } = job
  if (step) db.run(`UPDATE jobs SET steps = json_insert(steps, '$[#]', json(?)) WHERE seq = ?`, step.json, seq)
  insertEvents(db, events, { deliveryId, at })
  keepTurn(db, operation, { agentId, sessionKey })
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
        `UPDATE jobs SET state = ?, locked_until = NULL, attempts = attempts + ?, ended_at = ?, last_error = coalesce(?, last_error)
          WHERE seq = ?`,
        outcome.kind,
        outcome.kind === 'dead' && !outcome.counted ? 0 : 1,
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
    `UPDATE jobs SET state = 'queued', attempts = 0, ended_at = NULL, posts = ${sentPosts}, run_at = ?, gate = ? WHERE seq = ?`,
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
  endJobs(db, queued, at)
  return queued.length
}

/** Ends queued jobs, given by `seq` and `lane`, as dead. */
export function endJobs(db: Database, queued: readonly Row[], at: number): void {
  for (const { seq = null } of queued) {
    db.run(`UPDATE jobs SET state = 'dead', ended_at = ?, last_error = 'dropped' WHERE seq = ?`, at, seq)
  }
  for (const { lane = null } of queued) openLane(db, lane, at)
}

/**
 * Lets the earliest unfinished job of a lane go, unless one of them runs. Call it after a job of the lane ended or was
 * given back with its gate at 1. One that was never tried is due whatever the clock says: it may have been set back.
 */
function openLane(db: Database, lane: SqlValue, at: number): void {
  if (lane === null) return
  db.run(
    `UPDATE jobs SET gate = CASE WHEN run_at <= ?2 OR run_at = created_at THEN 0 ELSE 2 END
      WHERE seq = (SELECT seq FROM jobs WHERE lane = ?1 AND ended_at IS NULL ORDER BY seq LIMIT 1)
        AND state = 'queued' AND gate = 1
        AND NOT EXISTS (SELECT 1 FROM jobs WHERE lane = ?1 AND ended_at IS NULL AND state = 'running')`,
    lane,
    at,
  )
}

/** Puts whoever is at the head of a lane behind its gate again, unless it runs: an earlier job has come back. */
function closeLane(db: Database, lane: SqlValue): void {
  if (lane === null) return
  db.run(`UPDATE jobs SET gate = 1 WHERE lane = ? AND ended_at IS NULL AND state = 'queued' AND gate <> 1`, lane)
}
