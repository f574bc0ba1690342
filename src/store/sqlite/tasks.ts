// Jobs that are queued without a new delivery: tasks, which no delivery caused, and dead jobs that are queued again.
import { runTaskKinds, toRunTaskName } from '../rules.ts'
import type { Database, Row } from './driver.ts'
import { toGate } from './jobs.ts'
import { closeLane, openLane } from './lanes.ts'
import type { OperationOf } from './operations.ts'
import { isWorkIntact, sums, unworked } from './sums.ts'

const insertTask = `INSERT INTO jobs (id, planned, lane, stands_for, created_at, run_at, state, steps, labels, sum, work_sum, gate)
  SELECT ?1, ?2, ?3, ?4, ?5, ?5, 'queued', '[]', ?7, ?8, ?9, EXISTS (SELECT 1 FROM jobs WHERE lane = ?3 AND ended_at IS NULL)
  WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE stands_for = ?4 AND state = 'queued' AND lane IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE stands_for = ?4 AND created_at > ?5 - ?6 AND created_at <= ?5)`

export function addTask(db: Database, task: OperationOf<'addTask'>): boolean {
  const { at, id, planned, lane, standsFor, labels, unlessWithinMs } = task
  const sum = sums.job({ id, delivery_seq: null, stands_for: standsFor, planned })
  return db.run(insertTask, id, planned, lane, standsFor, at, unlessWithinMs, labels, sum, unworked).changes > 0
}

const sentPosts = `(SELECT json_group_array(json(value) ORDER BY key) FROM json_each(posts) WHERE value ->> '$.state' = 'sent')`

export function requeue(db: Database, { id, at }: OperationOf<'requeue'>): boolean {
  const job = db.get(`SELECT seq, lane, flow, steps, posts, work_sum FROM jobs WHERE id = ? AND state = 'dead'`, id)
  if (!job) return false
  if (job['flow'] !== null) db.run('UPDATE jobs SET lane = NULL, flow = 0 WHERE seq = ?', job['seq'] ?? null)
  const { seq = null } = job
  const lane = job['flow'] === null ? (job['lane'] ?? null) : null
  closeLane(db, lane)
  db.run(
    `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, attempts = 0, failing_since = NULL, ended_at = NULL, posts = ${sentPosts},
      run_at = ?, gate = CASE WHEN flow IS NULL THEN ? ELSE 3 END WHERE seq = ?`,
    at,
    toGate(lane),
    seq,
  )
  writeWorkSum(db, job)
  openLane(db, lane, at)
  for (const kind of runTaskKinds) restartTask(db, toRunTaskName(kind, id), at)
  return true
}

/** The posts have changed. A job that was damaged before keeps its sum, so that its claim ends it again. */
function writeWorkSum(db: Database, before: Row): void {
  const { seq = null } = before
  const now = db.get('SELECT steps, posts FROM jobs WHERE seq = ?', seq)
  if (now !== undefined && isWorkIntact(before))
    db.run('UPDATE jobs SET work_sum = ? WHERE seq = ?', sums.work(now), seq)
}

/** The fence becomes 0, so a report of the last claim of the task is refused. */
function restartTask(db: Database, standsFor: string, at: number): void {
  for (const { seq = null, lane = null } of db.all('SELECT seq, lane FROM jobs WHERE stands_for = ?', standsFor)) {
    db.run('DELETE FROM endings WHERE job_seq = ?', seq)
    db.run(
      `UPDATE jobs SET state = 'queued', steps = '[]', work_sum = CASE posts WHEN '[]' THEN ${unworked} END, fence = 0, attempts = 0, lane = NULL, gate = 0, created_at = ?1, run_at = ?1,
        locked_until = NULL, failing_since = NULL, failures = NULL, last_error = NULL, ended_at = NULL, ended_by = NULL WHERE seq = ?2`,
      at,
      seq,
    )
    openLane(db, lane, at)
  }
}
