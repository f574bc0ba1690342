// Ends jobs before their time.
import type { Database, Row } from './driver.ts'
import { endJob as endJobScript } from '../endings.ts'
import { dialect, reviewFlows, runScript } from './flow.ts'
import { openLane } from './lanes.ts'
import type { OperationOf, Results } from './operations.ts'

export function endJob(db: Database, { id, ending, at }: OperationOf<'end'>): Results['end'] {
  const { result, lane = null } = runScript(db, endJobScript(id, ending, dialect), at)
  openLane(db, lane, at)
  return result
}

/** Drops queued or dead jobs, given by `seq` and `lane`; jobs of deliveries also by `state` and `readyColumns`. */
export function dropJobs(db: Database, jobs: readonly Row[], at: number): void {
  for (const { seq = null } of jobs) db.run(`UPDATE jobs SET state = 'dropped', ended_at = ? WHERE seq = ?`, at, seq)
  for (const { lane = null } of jobs) openLane(db, lane, at)
  // a dead job no longer has a key
  reviewFlows(
    db,
    jobs.filter(({ state }) => state === 'queued'),
    at,
  )
}
