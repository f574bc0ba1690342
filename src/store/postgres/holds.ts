// Holds, which keep jobs back by their labels, and endings, which end a job before its time. The clock is the database's.
import { reopenKeys } from '../flow.ts'
import { makeKeysReady } from '../flow-script.ts'
import type { Row } from '../rows.ts'
import { dialect, runScript } from './flow.ts'
import type { Query } from './pool.ts'

/** The changes to a job that is queued again: a job with a flow leaves its lane, and its gate is 3. A job without a flow keeps its lane. */
export const leaveLane = 'gate = CASE WHEN flow IS NULL THEN 0 ELSE 3 END, lane = CASE WHEN flow IS NULL THEN lane END'

/** Checks the keys of queued jobs that were ended: see `makeKeysReady`. */
export async function reviewFlows(query: Query, ended: readonly Row[], now: string): Promise<void> {
  await runScript(query, makeKeysReady(ended, dialect), now)
}

export async function returnToFlow(query: Query, seq: number, now: string): Promise<void> {
  const jobs = await query('SELECT flow, run_at FROM jobs WHERE seq = $1 AND flow IS NOT NULL', seq)
  await runScript(query, reopenKeys(jobs), now)
}

/** Whether the lease of the running job `j` with a flow expired. A job that must end does not run again. */
export const whereLapsed = (now: string) => `j.state = 'running' AND j.locked_until <= ${now}
  AND j.flow IS NOT NULL AND NOT EXISTS (SELECT 1 FROM endings e WHERE e.job_seq = j.seq)`

/** Whether a hold applies to the job `j`. Labels are compared as JSON texts, which `JSON.stringify` and `to_json` write alike. */
export const whereHeld = (
  now: string,
  job = 'j',
) => `EXISTS (SELECT 1 FROM holds h WHERE (h.until IS NULL OR h.until > ${now})
  AND (strpos(${job}.labels, to_json(h.label)::text) > 0 OR (h.label = 'all' AND ${job}.delivery_seq IS NOT NULL)))`

/** Call it under the lock of the job: a claim may have written the ending while its caller waited for the lock. */
export async function isEnding(query: Query, seq: number): Promise<boolean> {
  return (await query('SELECT 1 AS one FROM endings WHERE job_seq = $1', seq)).length > 0
}

/** Ends running jobs as `endings` says. `which`: the condition for the job `j`, for example that its lease has expired. */
export const endAsAskedSql = (
  now: string,
  which: string,
) => `WITH gone AS (DELETE FROM endings e USING jobs j WHERE j.seq = e.job_seq
    AND j.state = 'running' AND ${which} RETURNING e.*)
  UPDATE jobs SET state = gone.state, ended_at = ${now}, locked_until = NULL, last_error = gone.reason, ended_by = gone.ended_by
  FROM gone WHERE jobs.seq = gone.job_seq`
