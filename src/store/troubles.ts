// The runs that need a person: those that are dead, and those whose last attempt failed, by the error that they share. Read from the rows themselves, so
// that no number of newer deliveries hides them.
import type { Job } from '../model/job.ts'
import { reopenKeys } from './flow.ts'
import { type Dialect, run, type Script } from './script.ts'

/** Errors are compared by their beginning. */
const comparedChars = 500

/** A delivery with a run that is dead or failing. */
export type Trouble = {
  /** `queued`: the last attempt failed, and another one is due. */
  readonly state: 'dead' | 'queued'
  /** The beginning of the error of the run; empty if it has none. */
  readonly error: string
  readonly hook: string
  readonly deliveryId: string
  /** When its first such run was stored. */
  readonly at: number
  /** The number of deliveries with the same state, hook and error, and when the first such run of them was stored. */
  readonly count: number
  readonly since: number
}

export interface TroubleReader {
  /**
   * The newest `limit` dead jobs, oldest first, tasks included. `before` (a job's id): only those that arrived before it; none if
   * the store has no such job.
   */
  deadJobs(query: { limit: number; before?: string | undefined }): Promise<Job[]>
  /** The same for the queued and running jobs of deliveries. */
  openJobs(query: { limit: number; before?: string | undefined }): Promise<Job[]>
  /**
   * The deliveries with dead or failing runs: the newest of each state, hook and error first, then the second newest of each, and so on, with at most `each` of
   * one error. So an error with thousands of runs hides no other error. Reads an entry of each such run, but no row of a job or a delivery.
   */
  troubles(query: { limit: number; each: number }): Promise<Trouble[]>
}

export const whereDead = (run: string) => `${run}.state = 'dead'`
/** The condition of the index `jobs_failing`. */
export const whereFailing = (run: string) =>
  `${run}.state = 'queued' AND (${run}.attempts > 0 OR ${run}.failing_since IS NOT NULL)`
export const whereTroubled = (run: string) =>
  `${run}.delivery_seq IS NOT NULL AND (${whereDead(run)} OR ${whereFailing(run)})`
export const selectErrorOf = (run: string) => `substr(coalesce(${run}.last_error, ''), 1, ${comparedChars})`

/** The key `k` is in a quiet period, and `j` is a job of the delivery `$1` in it that waits for nothing else. */
const whereQuiet = `k.state = 'later' AND k.due_at > $now AND j.flow = k.id AND j.delivery_seq = (SELECT seq FROM deliveries WHERE id = $1)
  AND j.ended_at IS NULL AND j.state = 'queued' AND j.budget IS NULL AND (j.run_at <= $now OR j.run_at = j.created_at)`

/** A run that another gateway has locked is about to leave the queue. */
export function* tryNow(deliveryId: string, { skipLocked }: Dialect): Script<string[]> {
  const quiet = yield* run(`SELECT j.id, k.id AS key_id FROM jobs j, flow_keys k WHERE ${whereQuiet}`, deliveryId)
  for (const keyId of new Set(quiet.map(({ key_id: id = null }) => id)))
    yield* run('UPDATE flow_keys SET due_at = $now, rank = rank - due_at + $now WHERE id = $1', keyId)
  const tried = yield* run(
    `WITH tried AS (SELECT seq FROM jobs WHERE ${whereFailing('jobs')} AND run_at > $now AND budget IS NULL
        AND delivery_seq = (SELECT seq FROM deliveries WHERE id = $1) ORDER BY seq ${skipLocked})
      UPDATE jobs SET run_at = $now FROM tried WHERE jobs.seq = tried.seq RETURNING id, flow, run_at`,
    deliveryId,
  )
  yield* reopenKeys(tried)
  return [...tried, ...quiet].map(({ id }) => String(id))
}
