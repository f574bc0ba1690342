// Reserves the amount that a turn may use of its budgets: ../accounts.ts. A job that finds no room is queued again.
import { type BudgetWait, reserveRoom } from '../accounts.ts'
import type { ReserveResult } from '../budgets.ts'
import type { Database, Row } from './driver.ts'
import { dialect, returnToFlow, runScript } from './flow.ts'
import { endAsAsked } from './jobs.ts'
import { openLane } from './lanes.ts'
import type { OperationOf } from './operations.ts'

/** ?1: the names of the tasks. ?2: when they were added at the earliest. The run is the first step of a task that has one. */
export const selectTaskUsage = `SELECT count(*) AS turns, count(tokens) AS counted, sum(tokens) AS input_tokens, sum(output) AS output_tokens FROM
  (SELECT steps ->> '$[0].usage.inputTokens' AS tokens, steps ->> '$[0].usage.outputTokens' AS output FROM jobs
    WHERE stands_for IN (SELECT value FROM json_each(?1)) AND created_at > ?2
      AND steps ->> '$[0].name' = 'run' AND steps ->> '$[0].state' <> 'skipped')`

export function reserve(db: Database, { id, fence, at, reservations }: OperationOf<'reserve'>): ReserveResult {
  const job = db.get(`SELECT seq, lane FROM jobs WHERE id = ? AND fence = ? AND state = 'running'`, id, fence)
  if (job === undefined) return { kind: 'lost' }
  const script = reserveRoom({ seq: Number(job['seq']), id, fence }, reservations, dialect)
  const { result, wait } = runScript(db, script, at)
  if (wait !== undefined) queueAgain(db, job, { ...wait, at })
  return result
}

/** Queues the job again without counting an attempt. A job that must end is ended instead. */
function queueAgain(
  db: Database,
  { seq = null, lane = null }: Row,
  { afterMs, reason, budget, at }: BudgetWait & { readonly at: number },
): void {
  if (db.get('SELECT 1 FROM endings WHERE job_seq = ?', seq) !== undefined) return endAsAsked(db, { seq, lane }, at)
  db.run(
    `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, locked_until = NULL, last_error = ?, run_at = ?, gate = ?, budget = ? WHERE seq = ?`,
    reason,
    at + afterMs,
    lane === null ? 2 : 1,
    budget,
    seq,
  )
  returnToFlow(db, seq, at)
  openLane(db, lane, at)
}
