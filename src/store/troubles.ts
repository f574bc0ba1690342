// The runs that need a person: those that are dead, and those whose last attempt failed, by the error that they share. Read from the rows themselves, so
// that no number of newer deliveries hides them.
import type { Job } from '../model/job.ts'
import { reopenKeys } from './flow.ts'
import { column, type Row } from './rows.ts'
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
   * one error. So an error with thousands of runs hides no other error. Reads all such runs.
   */
  troubles(query: { limit: number; each: number }): Promise<Trouble[]>
}

/** The condition of the index `jobs_failing`. */
const whereFailing = `state = 'queued' AND (attempts > 0 OR failing_since IS NOT NULL)`

/** The key `k` is in a quiet period, and `j` is a job of the delivery `$1` in it that waits for nothing else. */
const whereQuiet = `k.state = 'later' AND k.due_at > $now AND j.flow = k.id AND j.delivery_seq = (SELECT seq FROM deliveries WHERE id = $1)
  AND j.ended_at IS NULL AND j.state = 'queued' AND j.budget IS NULL AND (j.run_at <= $now OR j.run_at = j.created_at)`

/** A run that another gateway has locked is about to leave the queue. */
export function* tryNow(deliveryId: string, { skipLocked }: Dialect): Script<string[]> {
  const quiet = yield* run(`SELECT j.id, k.id AS key_id FROM jobs j, flow_keys k WHERE ${whereQuiet}`, deliveryId)
  for (const keyId of new Set(quiet.map(({ key_id: id = null }) => id)))
    yield* run('UPDATE flow_keys SET due_at = $now, rank = rank - due_at + $now WHERE id = $1', keyId)
  const tried = yield* run(
    `WITH tried AS (SELECT seq FROM jobs WHERE ${whereFailing} AND run_at > $now AND budget IS NULL
        AND delivery_seq = (SELECT seq FROM deliveries WHERE id = $1) ORDER BY seq ${skipLocked})
      UPDATE jobs SET run_at = $now FROM tried WHERE jobs.seq = tried.seq RETURNING id, flow, run_at`,
    deliveryId,
  )
  yield* reopenKeys(tried)
  return [...tried, ...quiet].map(({ id }) => String(id))
}

const selectJobs = (condition: string) =>
  `SELECT state, substr(coalesce(last_error, ''), 1, ${comparedChars}) AS error, delivery_seq, created_at FROM jobs
    WHERE ${condition} AND delivery_seq IS NOT NULL`

/** One aggregate over all failed runs, and then the ids of the few that are returned: a sort of all of them would take twice as long. */
export function* readTroubles({ limit, each }: { limit: number; each: number }, { list }: Dialect): Script<Trouble[]> {
  const groups = yield* run(`WITH failed AS (${selectJobs(`state = 'dead'`)} UNION ALL ${selectJobs(whereFailing)})
    SELECT f.state, f.error, d.hook, string_agg(CAST(d.seq AS text) || ' ' || CAST(f.created_at AS text), ',') AS runs
      FROM failed f JOIN deliveries d ON d.seq = f.delivery_seq GROUP BY f.state, f.error, d.hook`)
  const chosen = groups
    .flatMap((group) => listNewest(group, each))
    .toSorted((one, other) => one.place - other.place || other.seq - one.seq)
    .slice(0, limit)
  const seqs = JSON.stringify(chosen.map(({ seq }) => seq))
  const rows = yield* run(`SELECT seq, id FROM deliveries WHERE seq IN (${list('$1')})`, seqs)
  const ids = new Map(rows.map((row) => [Number(row['seq']), column<string>(row, 'id')]))
  return chosen.flatMap(({ seq, trouble }): Trouble[] => {
    const deliveryId = ids.get(seq)
    return deliveryId === undefined ? [] : [{ ...trouble, deliveryId }]
  })
}

type Chosen = { readonly seq: number; readonly place: number; readonly trouble: Omit<Trouble, 'deliveryId'> }

/** The newest deliveries of a group. `runs` has the seq of the delivery of each run, and when the run was stored. */
function listNewest(row: Row, each: number): Chosen[] {
  const firstRuns = new Map<number, number>()
  for (const pair of column<string>(row, 'runs').split(',')) {
    const [seq = 0, at = 0] = pair.split(' ').map(Number)
    firstRuns.set(seq, Math.min(at, firstRuns.get(seq) ?? at))
  }
  const group = {
    state: column<Trouble['state']>(row, 'state'),
    error: column<string>(row, 'error'),
    hook: column<string>(row, 'hook'),
    count: firstRuns.size,
    since: [...firstRuns.values()].reduce((first, at) => Math.min(first, at)),
  }
  const newest = [...firstRuns].toSorted(([one], [other]) => other - one).slice(0, each)
  return newest.map(([seq, at], place) => ({ seq, place, trouble: { ...group, at } }))
}
