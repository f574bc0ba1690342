// Jobs that no delivery caused, in the writer's transaction: added once while one waits, swept by their own end.
import type { Database } from './driver.ts'
import { endJobs } from './jobs.ts'
import type { OperationOf } from './operations.ts'

const insertTask = `INSERT INTO jobs (id, planned, lane, stands_for, created_at, run_at, state, steps, gate)
  SELECT ?1, ?2, ?3, ?4, ?5, ?5, 'queued', '[]', EXISTS (SELECT 1 FROM jobs WHERE lane = ?3 AND ended_at IS NULL)
  WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE stands_for = ?4 AND state = 'queued')`

export function addTask(db: Database, { at, id, planned, lane, standsFor }: OperationOf<'addTask'>): boolean {
  return db.run(insertTask, id, planned, lane, standsFor, at).changes > 0
}

/** Deletes tasks that ended before `before`, and drops those that wait since then. Gives back how many. */
export function pruneTasks(db: Database, { at, before, limit }: OperationOf<'prune'>): number {
  const waiting = db.all(
    `SELECT seq, lane FROM jobs WHERE stands_for IS NOT NULL AND state = 'queued' AND created_at < ? LIMIT ?`,
    before,
    limit,
  )
  endJobs(db, waiting, at)
  const ended = db.run(
    `DELETE FROM jobs WHERE seq IN
      (SELECT seq FROM jobs WHERE stands_for IS NOT NULL AND created_at < ?1 AND ended_at < ?1 LIMIT ?2)`,
    before,
    limit,
  )
  return waiting.length + ended.changes
}
