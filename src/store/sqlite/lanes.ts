// The gates of the queued jobs of a lane: only the first of them may be open.
import type { Database, SqlValue } from './driver.ts'

/** The job of a lane whose gate is not 1, or else its earliest unfinished job. The query reads one row of the index `jobs_lane`. */
const firstOfLane = `(SELECT seq FROM jobs WHERE lane = ?1 AND ended_at IS NULL
  ORDER BY CASE gate WHEN 1 THEN seq ELSE 0 END LIMIT 1)`

/**
 * Opens the gate of a lane's earliest unfinished job, unless another gate of the lane is open. Call it after a job of the lane ended or was queued
 * again with gate 1. A job that was never tried is due even if the clock was set back since.
 */
export function openLane(db: Database, lane: SqlValue, at: number): void {
  if (lane === null) return
  db.run(
    `UPDATE jobs SET gate = CASE WHEN run_at <= ?2 OR run_at = created_at THEN 0 ELSE 2 END
      WHERE seq = ${firstOfLane} AND gate = 1`,
    lane,
    at,
  )
}

/** Closes the gate of a lane's queued job, because an earlier job is queued again. */
export function closeLane(db: Database, lane: SqlValue): void {
  if (lane === null) return
  db.run(`UPDATE jobs SET gate = 1 WHERE seq = ${firstOfLane} AND state = 'queued'`, lane)
}
