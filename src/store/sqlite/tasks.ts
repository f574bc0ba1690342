// Jobs that are queued without a new delivery: tasks, which no delivery caused, and dead jobs that are queued again.
import { runTaskKinds, toRunTaskName } from '../rules.ts'
import type { Database } from './driver.ts'
import { toGate } from './jobs.ts'
import { closeLane, openLane } from './lanes.ts'
import type { OperationOf } from './operations.ts'

const insertTask = `INSERT INTO jobs (id, planned, lane, stands_for, created_at, run_at, state, steps, labels, gate)
  SELECT ?1, ?2, ?3, ?4, ?5, ?5, 'queued', '[]', ?7, EXISTS (SELECT 1 FROM jobs WHERE lane = ?3 AND ended_at IS NULL)
  WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE stands_for = ?4 AND state = 'queued' AND lane IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE stands_for = ?4 AND created_at > ?5 - ?6 AND created_at <= ?5)`

export function addTask(db: Database, task: OperationOf<'addTask'>): boolean {
  const { at, id, planned, lane, standsFor, labels, unlessWithinMs } = task
  return db.run(insertTask, id, planned, lane, standsFor, at, unlessWithinMs, labels).changes > 0
}

const sentPosts = `(SELECT json_group_array(json(value) ORDER BY key) FROM json_each(posts) WHERE value ->> '$.state' = 'sent')`

export function requeue(db: Database, { id, at }: OperationOf<'requeue'>): boolean {
  const job = db.get(`SELECT seq, lane, flow FROM jobs WHERE id = ? AND state = 'dead'`, id)
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
  openLane(db, lane, at)
  for (const kind of runTaskKinds) restartTask(db, toRunTaskName(kind, id), at)
  return true
}

/** The fence becomes 0, so a report of the last claim of the task is refused. */
function restartTask(db: Database, standsFor: string, at: number): void {
  for (const { seq = null, lane = null } of db.all('SELECT seq, lane FROM jobs WHERE stands_for = ?', standsFor)) {
    db.run('DELETE FROM endings WHERE job_seq = ?', seq)
    db.run(
      `UPDATE jobs SET state = 'queued', steps = '[]', fence = 0, attempts = 0, lane = NULL, gate = 0, created_at = ?1, run_at = ?1,
        locked_until = NULL, failing_since = NULL, failures = NULL, last_error = NULL, ended_at = NULL, ended_by = NULL WHERE seq = ?2`,
      at,
      seq,
    )
    openLane(db, lane, at)
  }
}
