// How holds keep jobs back: ../holds.ts.
import { clockSetBackMs } from '../rules.ts'
import type { Database } from './driver.ts'

/** The labels of the holds that apply now. The usual case reads one empty table. */
export function findHeldLabels(db: Database, at: number): string[] {
  return db.all('SELECT label FROM holds WHERE until IS NULL OR until > ?', at).map(({ label }) => String(label))
}

const isHeld = `EXISTS (SELECT 1 FROM json_each(?1) held WHERE held.value IN (SELECT value FROM json_each(CASE WHEN json_valid(labels) THEN labels END))
    OR (held.value = 'all' AND delivery_seq IS NOT NULL))`
const closeGates = `UPDATE jobs SET gate = 4 WHERE seq IN (
    SELECT seq FROM jobs WHERE state = 'queued' AND gate = 0 AND ended_at IS NULL ORDER BY seq LIMIT ?2) AND ${isHeld}`

/** The maximum number of due jobs that one statement and one operation visit after a held job was found. */
const heldAtOnce = 500
const heldInOperation = 2_000

/** Closes the gates of due jobs that a hold keeps back. Returns false if such a job may be left among the first `limit` due jobs: call it again. */
export function holdBack(db: Database, held: readonly string[], limit: number): boolean {
  const labels = JSON.stringify(held)
  // usually the first due jobs are not held
  if (db.run(closeGates, labels, limit).changes === 0) return true
  for (let visited = heldAtOnce; visited < heldInOperation; visited += heldAtOnce)
    if (db.run(closeGates, labels, Math.max(limit, heldAtOnce)).changes === 0) return true
  return false
}

/** The queued tasks that another job of their lane precedes. There are few. */
export const precededTasks = `jobs INDEXED BY jobs_preceded WHERE gate = 1 AND stands_for IS NOT NULL AND state = 'queued'`
const selectPreceded = `SELECT seq, lane FROM ${precededTasks}
  AND (run_at <= ?2 OR run_at = created_at OR run_at > ?2 + ${clockSetBackMs}) AND NOT ${isHeld}`
/** Closes the gate of the first job of the lane `?2` if it belongs to a delivery and waits for a hold, a budget or its next attempt. */
const closeWaiting = `UPDATE jobs SET gate = 1 WHERE seq = (SELECT seq FROM jobs WHERE lane = ?2 AND ended_at IS NULL
    ORDER BY CASE gate WHEN 1 THEN seq ELSE 0 END LIMIT 1) AND state = 'queued' AND stands_for IS NULL AND (gate IN (2, 4) OR (gate = 0 AND ${isHeld}))`

/**
 * Lets tasks, such as heartbeats, start before a job of a delivery in their lane that waits for something of its own. This job is the next one of the lane again
 * when the task has ended.
 */
export function letTasksPass(db: Database, held: readonly string[], at: number): void {
  const labels = JSON.stringify(held)
  for (const { seq = null, lane = null } of db.all(selectPreceded, labels, at))
    if (db.run(closeWaiting, labels, lane).changes > 0) db.run('UPDATE jobs SET gate = 0 WHERE seq = ?', seq)
}
