// Holds, which keep jobs back by their labels, and endings, which end a job before its time. The clock is the database's.
import type { Ending } from '../../model/job.ts'
import { reopenKey } from '../flow.ts'
import { readyColumns, makeKeysReady } from '../flow-script.ts'
import type { Hold, NewHold } from '../records.ts'
import { type Row, toHold } from '../rows.ts'
import { forgetTurns } from '../turns.ts'
import { dialect, lockFlows, runScript } from './flow.ts'
import type { Query } from './pool.ts'

/** The changes to a job that is queued again: a job with a flow leaves its lane, and its gate is 3. A job without a flow keeps its lane. */
export const leaveLane = 'gate = CASE WHEN flow IS NULL THEN 0 ELSE 3 END, lane = CASE WHEN flow IS NULL THEN lane END'

/** For jobs that were queued again: makes the key of each job due when the job is due. */
export async function reopenFlows(query: Query, jobs: readonly Row[]): Promise<void> {
  for (const { flow = null, run_at: runAt = null } of jobs) if (flow !== null) await query(reopenKey, runAt, flow)
}

/** Checks the keys of queued jobs that were ended: see `makeKeysReady`. */
export async function reviewFlows(query: Query, ended: readonly Row[]): Promise<void> {
  await runScript(query, makeKeysReady(ended, dialect))
}

export async function returnToFlow(query: Query, seq: number): Promise<void> {
  await reopenFlows(query, await query('SELECT flow, run_at FROM jobs WHERE seq = $1 AND flow IS NOT NULL', seq))
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

/** Deletes the holds whose time is over, and opens the gates of held jobs. A job that another hold still keeps back is found again at the next claim. */
export async function endHolds(query: Query, now: string): Promise<void> {
  if ((await query(`DELETE FROM holds WHERE until <= ${now} RETURNING label`)).length > 0) await openHeld(query)
}

async function openHeld(query: Query): Promise<void> {
  await query(`UPDATE jobs SET gate = 0 WHERE state = 'queued' AND gate = 4`)
}

export async function hold(query: Query, { label, kind, reason, author, forMs }: NewHold, now: string): Promise<void> {
  await query(
    `INSERT INTO holds (label, kind, at, until, author, reason) VALUES ($1, $2, ${now}, ${now} + $3::bigint, $4, $5)
      ON CONFLICT (label, kind) DO UPDATE SET at = excluded.at, until = excluded.until, author = excluded.author, reason = excluded.reason`,
    label,
    kind,
    forMs,
    author,
    reason,
  )
}

export async function unhold(query: Query, { label, kind }: Pick<Hold, 'label' | 'kind'>): Promise<boolean> {
  if (kind === 'turns') await runScript(query, forgetTurns(label))
  const removed = await query('DELETE FROM holds WHERE label = $1 AND kind = $2 RETURNING label', label, kind)
  if (removed.length > 0) await openHeld(query)
  return removed.length > 0
}

export async function readHolds(query: Query, now: string): Promise<Hold[]> {
  const sql = `SELECT *, ${now} AS now FROM holds WHERE until IS NULL OR until > ${now} ORDER BY label, kind`
  return (await query(sql)).map((row) => toHold(row, Number(row['now'])))
}

export type EndJobResult = 'ended' | 'ending' | undefined

/** Ends an unfinished job, or asks its owner to end it. */
export async function endJob(
  query: Query,
  { id, ending, now }: { id: string; ending: Ending; now: string },
): Promise<EndJobResult> {
  await lockFlows(query, 'id = $1', id)
  const [job] = await query(
    `SELECT seq, state, ${readyColumns} FROM jobs WHERE id = $1 AND ended_at IS NULL FOR UPDATE`,
    id,
  )
  if (job === undefined) return undefined
  const { state, reason, endedBy } = ending
  const seq = Number(job['seq'])
  if (job['state'] === 'queued') {
    const sql = `UPDATE jobs SET state = $2, ended_at = ${now}, last_error = $3, ended_by = $4 WHERE seq = $1`
    await query(sql, seq, state, reason, endedBy)
    await reviewFlows(query, [job])
    return 'ended'
  }
  const sql = `INSERT INTO endings (job_seq, at, state, ended_by, reason) VALUES ($1, ${now}, $2, $3, $4) ON CONFLICT DO NOTHING`
  await query(sql, seq, state, endedBy, reason)
  return 'ending'
}

/** Ends running jobs as `endings` says. `which`: the condition for the job `j`, for example that its lease has expired. */
export const endAsAskedSql = (
  now: string,
  which: string,
) => `WITH gone AS (DELETE FROM endings e USING jobs j WHERE j.seq = e.job_seq
    AND j.state = 'running' AND ${which} RETURNING e.*)
  UPDATE jobs SET state = gone.state, ended_at = ${now}, locked_until = NULL, last_error = gone.reason, ended_by = gone.ended_by
  FROM gone WHERE jobs.seq = gone.job_seq`

export const selectEndings = `SELECT j.id, j.fence FROM endings e JOIN jobs j ON j.seq = e.job_seq WHERE j.state = 'running'`
