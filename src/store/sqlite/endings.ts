// Ends jobs before their time. A running job is asked to end, because its owner must stop it first.
import type { Ending } from '../../model/job.ts'
import type { Database, Row } from './driver.ts'
import { readyColumns } from '../flow-script.ts'
import { reviewFlows } from './flow.ts'
import { endQueued } from './jobs.ts'
import { openLane } from './lanes.ts'
import type { OperationOf } from './operations.ts'

/** Ends an unfinished job, or asks its owner to end it. */
export function endJob(db: Database, { id, ending, at }: OperationOf<'end'>): 'ended' | 'ending' | undefined {
  const job = db.get(`SELECT seq, lane, state, ${readyColumns} FROM jobs WHERE id = ? AND ended_at IS NULL`, id)
  if (job === undefined) return undefined
  if (job['state'] === 'queued') {
    endQueued(db, job, { ending, at })
    reviewFlows(db, [job])
    return 'ended'
  }
  askToEnd(db, job, { ending, at })
  return 'ending'
}

/** The first reason counts. */
function askToEnd(db: Database, { seq = null }: Row, { ending, at }: { ending: Ending; at: number }): void {
  const sql = 'INSERT INTO endings (job_seq, at, state, ended_by, reason) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'
  db.run(sql, seq, at, ending.state, ending.endedBy ?? null, ending.reason)
}

/** The running jobs that must end, with the fences of their leases. CROSS JOIN: otherwise SQLite would read all jobs, and look up each. */
export const selectEndings = `SELECT j.id, j.fence FROM endings n
  CROSS JOIN jobs j ON j.seq = n.job_seq WHERE j.state = 'running'`

/** Drops queued or dead jobs, given by `seq` and `lane`; jobs of deliveries also by `state` and `readyColumns`. */
export function dropJobs(db: Database, jobs: readonly Row[], at: number): void {
  for (const { seq = null } of jobs) db.run(`UPDATE jobs SET state = 'dropped', ended_at = ? WHERE seq = ?`, at, seq)
  for (const { lane = null } of jobs) openLane(db, lane, at)
  // a dead job no longer has a key
  reviewFlows(
    db,
    jobs.filter(({ state }) => state === 'queued'),
  )
}
