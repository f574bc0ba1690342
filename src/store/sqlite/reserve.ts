// Reserves the amount that a turn may use of its budgets. A job that finds no room is queued again.
import { findShortage, pollingWithinMs, type ReserveResult, describeShortage } from '../budgets.ts'
import { isReserved, readAccounts, toSpendingValues } from './budgets.ts'
import type { Database, SqlValue } from './driver.ts'
import { returnToFlow } from './flow.ts'
import { endAsAsked } from './jobs.ts'
import { openLane } from './lanes.ts'
import type { OperationOf } from './operations.ts'

const countPolling = `SELECT count(*) AS count FROM jobs WHERE budget = ? AND state = 'queued' AND run_at <= ?`
const forgetEnded = `DELETE FROM reservations AS r WHERE name = ? AND NOT ${isReserved})`
const insertReservation = `INSERT INTO reservations (name, job_id, fence, starts_at, nanos, tokens, turns) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (name, job_id) DO UPDATE SET fence = excluded.fence, starts_at = excluded.starts_at, nanos = excluded.nanos,
    tokens = excluded.tokens, turns = excluded.turns`

export function reserve(db: Database, { id, fence, at, reservations }: OperationOf<'reserve'>): ReserveResult {
  const job = db.get(`SELECT seq, lane FROM jobs WHERE id = ? AND fence = ? AND state = 'running'`, id, fence)
  if (job === undefined) return { kind: 'lost' }
  const { seq = null, lane = null } = job
  const shortage = findShortage(reservations, readAccounts(db, reservations, { at, besides: id }))
  if (shortage !== undefined) {
    const { name: budget } = shortage.reservation
    const polling = Number(db.get(countPolling, budget, at + pollingWithinMs)?.['count'])
    const { kind, reason, afterMs } = describeShortage(shortage, { now: at, polling })
    if (kind === 'waits') queueAgain(db, { seq, lane, at }, { afterMs, reason, budget })
    return { kind, reason, budget }
  }
  db.run('UPDATE jobs SET budget = NULL, last_error = NULL WHERE seq = ? AND budget IS NOT NULL', seq)
  for (const { name, startsAt, most } of reservations) {
    db.run(forgetEnded, name)
    db.run(insertReservation, name, id, fence, startsAt, ...toSpendingValues(most))
  }
  return { kind: 'reserved' }
}

/** Queues the job again without counting an attempt. A job that must end is ended instead. */
function queueAgain(
  db: Database,
  { seq, lane, at }: { readonly seq: SqlValue; readonly lane: SqlValue; readonly at: number },
  { afterMs, reason, budget }: { readonly afterMs: number; readonly reason: string; readonly budget: string },
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
  returnToFlow(db, seq)
  openLane(db, lane, at)
}
