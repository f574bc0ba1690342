// Jobs of one lane run one at a time in arrival order: of its unfinished jobs at most one may be claimed or runs.
import type { Database, SqlValue } from './driver.ts'

/**
 * Lets the earliest unfinished job of a lane go, unless one of them runs. Call it after a job of the lane ended or was
 * given back with its gate at 1. One that was never tried is due whatever the clock says: it may have been set back.
 */
export function openLane(db: Database, lane: SqlValue, at: number): void {
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
export function closeLane(db: Database, lane: SqlValue): void {
  if (lane === null) return
  db.run(`UPDATE jobs SET gate = 1 WHERE lane = ? AND ended_at IS NULL AND state = 'queued' AND gate <> 1`, lane)
}
