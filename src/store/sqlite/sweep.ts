// Deletes old rows, a few hundred in one operation, so that a sweep does not delay appends.
import { dropBySeq } from './deliveries.ts'
import type { Database } from './driver.ts'
import { dropJobs } from './endings.ts'
import type { OperationOf, Results } from './operations.ts'
import { expiringPrefixes } from '../cursors.ts'
import { pruneRows } from '../prune.ts'
import { dialect, runScript } from './flow.ts'

/**
 * Visits deliveries in order of arrival, from `after` on. Deletes those that ended before `before`, with their jobs, and drops
 * those that still wait. The order of arrival is close to the order of `received_at`, so the sweep ends at the first delivery
 * that is not old. An index on `received_at` would slow down every append. A delivery from the future does not end the
 * sweep: it arrived before the clock was set back. The catalog must be complete.
 */
export function sweep(db: Database, { at, before, after, limit }: OperationOf<'sweep'>): Results['sweep'] {
  const old = db.all(
    `SELECT d.seq, d.received_at, coalesce(d.settled_at < ?1, 0) AS settled,
        EXISTS (SELECT 1 FROM jobs_of o JOIN jobs j ON j.seq = o.job_seq
          WHERE o.delivery_seq = d.seq AND coalesce(j.ended_at >= ?1, 1)) AS busy
      FROM deliveries d WHERE d.seq > ?2 ORDER BY d.seq LIMIT ?3`,
    before,
    after,
    limit,
  )
  let count = 0
  for (const { seq, received_at: receivedAt, settled, busy } of old) {
    if (Number(receivedAt) > at) continue
    if (Number(receivedAt) >= before) return { count, after: undefined }
    if (settled === 1 && busy === 0) count += db.run('DELETE FROM deliveries WHERE seq = ?', seq ?? null).changes
    else if (dropBySeq(db, Number(seq), { at, jobs: `'queued'` })) count += 1
  }
  const last = old.at(-1)
  return { count, after: old.length < limit || !last ? undefined : Number(last['seq']) }
}

/** Deletes in the order of arrival. Skips rows from the future, as `sweep` does. */
const deleteOldest = (table: string) => `DELETE FROM ${table} WHERE at < ?2
  AND seq IN (SELECT seq FROM ${table} WHERE at <= ?1 ORDER BY seq LIMIT ?3)`

/** The first word of the value is a moment: CAST reads the digits at its beginning. */
const deleteExpiredCursors = `DELETE FROM cursors WHERE name IN (SELECT name FROM cursors
  WHERE (${expiringPrefixes.map((prefix) => `name GLOB '${prefix}*'`).join(' OR ')}) AND CAST(value AS INTEGER) < ?1 LIMIT ?2)`

/**
 * Deletes old tasks, events, messages, sessions, accounts and rows of flows, and expired cursors. Returns how many rows it changed; call it until
 * it returns 0.
 */
export function prune(db: Database, operation: OperationOf<'prune'>): number {
  const { at, before, limit } = operation
  return (
    pruneTasks(db, operation) +
    db.run(deleteExpiredCursors, at, limit).changes +
    db.run(deleteOldest('events'), at, before, limit).changes +
    db.run(deleteOldest('messages'), at, before, limit).changes +
    runScript(db, pruneRows({ before, limit }, dialect), at)
  )
}

/** Deletes tasks that ended before `before`, and drops those that were added before then and still wait. Returns how many. */
function pruneTasks(db: Database, { at, before, limit }: OperationOf<'prune'>): number {
  const waiting = db.all(
    `SELECT seq, lane FROM jobs WHERE stands_for IS NOT NULL AND state = 'queued' AND created_at < ? LIMIT ?`,
    before,
    limit,
  )
  dropJobs(db, waiting, at)
  const ended = db.run(
    `DELETE FROM jobs WHERE seq IN
      (SELECT seq FROM jobs WHERE stands_for IS NOT NULL AND created_at < ?1 AND ended_at < ?1 LIMIT ?2)`,
    before,
    limit,
  )
  return waiting.length + ended.changes
}
