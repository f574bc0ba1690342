// Claims and tasks. The clock is the database's. A claim leaves out the jobs that another gateway has locked.
import { type Row, toClaimedJob } from '../rows.ts'
import { clockSetBackMs, leaseLostReason, rowDamagedReason, runTaskKinds, toRunTaskName } from '../rules.ts'
import type { SharedLimits } from '../../core/model/flow.ts'
import { claimFlows, hintColumns, reopenKeys } from '../flow.ts'
import { endHolds } from '../holds.ts'
import { selectRunning } from '../flow-blockers.ts'
import { selectLines } from '../flow-turns.ts'
import type { EndedRun, NewTask } from '../records.ts'
import type { ClaimedJob } from '../../model/job.ts'
import { addFailure } from './failures.ts'
import { dialect, lockIfFlows, newFence, runScript } from './flow.ts'
import { endAsAskedSql, whereHeld, whereLapsed } from './holds.ts'
import { planOnce } from './naming.ts'
import type { Query } from './pool.ts'

/** The columns that `toClaimedJob` reads, with the id of the job's delivery. */
const jobColumns = `j.id, p.planned, j.state, j.attempts, j.created_at, j.run_at, j.locked_until, j.last_error, j.ended_by,
  j.failing_since, j.failures, p.steps, p.posts, j.fence, j.seq, j.delivery_seq, j.flow,
  (SELECT d.id FROM deliveries d WHERE d.seq = j.delivery_seq) AS delivery_id`
const jobTables = 'job_parts p ON p.job_seq = j.seq'
export const selectJob = `SELECT ${jobColumns} FROM jobs j JOIN ${jobTables}`

/** The number of queued jobs, in the order of arrival, from which a claim chooses. Usually enough of them can run. */
const windowSize = 200
const firstQueued = `SELECT seq FROM (SELECT seq FROM jobs WHERE state = 'queued' AND gate = 0 ORDER BY seq LIMIT ${windowSize}) w`

/** ORDER BY makes Postgres read the index: for EXISTS, it would read the table while its statistics are old. */
const hasQueued = `(SELECT seq FROM jobs WHERE state = 'queued' AND gate = 0 ORDER BY seq LIMIT 1) IS NOT NULL`

/** The queued jobs that no delivery caused. There are few. */
const queuedTasks = `SELECT seq FROM jobs WHERE stands_for IS NOT NULL AND state = 'queued' AND gate = 0`

/** The first unfinished job of each lane. It takes one index read for each lane, however many jobs wait in the lane. */
export const heads = `heads AS (
    (SELECT lane, seq FROM jobs WHERE lane IS NOT NULL AND ended_at IS NULL ORDER BY lane, seq LIMIT 1)
    UNION ALL
    SELECT next.lane, next.seq FROM heads, LATERAL (SELECT lane, seq FROM jobs
      WHERE lane IS NOT NULL AND ended_at IS NULL AND lane > heads.lane ORDER BY lane, seq LIMIT 1) next)`
/** The jobs that may wait for no other job: the first job of each lane, all jobs without a lane, and tasks. */
export const eachHead = `SELECT seq FROM heads UNION ALL SELECT seq FROM jobs WHERE lane IS NULL AND state = 'queued' AND gate = 0
  UNION ${queuedTasks}`

/** A job that was never tried is due, and so is one that would wait for longer than any retry: the clock was set back. */
export const whereDue = (now: string, job = 'j') =>
  `(${job}.run_at <= ${now} OR ${job}.run_at = ${job}.created_at OR ${job}.run_at > ${now} + ${clockSetBackMs})`

/** The first unfinished job of the lane of `j`. */
const firstOfLane = `(SELECT * FROM jobs l WHERE l.lane = j.lane AND l.ended_at IS NULL ORDER BY l.lane, l.seq LIMIT 1)`

/**
 * The job is queued, no job of its lane is running, and none that is unfinished is earlier. A task, such as a heartbeat, starts before an earlier job
 * of a delivery that waits for a hold, a budget or its next attempt.
 */
export const whereFree = (now: string) => `j.state = 'queued' AND j.gate = 0 AND (j.lane IS NULL OR (
  NOT EXISTS (SELECT 1 FROM jobs o WHERE o.lane = j.lane AND o.ended_at IS NULL AND o.state = 'running')
  AND EXISTS (SELECT 1 FROM ${firstOfLane} f WHERE f.seq = j.seq OR (j.stands_for IS NOT NULL AND f.stands_for IS NULL
    AND (f.gate = 4 OR NOT ${whereDue(now, 'f')} OR ${whereHeld(now, 'f')})))))`

/** The limit counts only jobs that may start now: they are due, and first in their lanes. A job whose lease expired is claimed directly, and the attempt counts. */
const claimFrom = (candidates: string, now: string) => `${planOnce}
  WITH RECURSIVE ${heads},
  candidates AS MATERIALIZED (${candidates}),
  expired AS MATERIALIZED (SELECT seq FROM jobs WHERE state = 'running' AND locked_until <= ${now}
    AND flow IS NULL AND NOT EXISTS (SELECT 1 FROM endings e WHERE e.job_seq = jobs.seq)),
  picked AS MATERIALIZED (
    SELECT j.seq, j.state AS was, j.fence AS was_fence FROM jobs j
    WHERE j.seq = ANY (ARRAY(SELECT seq FROM candidates UNION SELECT seq FROM expired))
      AND ((${whereFree(now)} AND ${whereDue(now)}) OR (j.state = 'running' AND j.locked_until <= ${now}))
      -- a job may have been stored after the gates were closed, and before this statement
      AND NOT ${whereHeld(now)}
    ORDER BY j.seq LIMIT $1 FOR UPDATE OF j SKIP LOCKED),
  claimed AS (UPDATE jobs SET state = 'running', fence = ${newFence}, locked_until = ${now} + $2::bigint,
      attempts = attempts + CASE WHEN was = 'running' THEN 1 ELSE 0 END,
      run_at = CASE WHEN was = 'running' THEN ${now} ELSE run_at END,
      last_error = CASE WHEN was = 'running' THEN $3 ELSE last_error END,
      failures = CASE WHEN was = 'running' THEN ${addFailure(now, '$3')} ELSE failures END
    FROM picked WHERE jobs.seq = picked.seq RETURNING jobs.*, nullif(picked.was_fence, 0) AS lapsed)
  SELECT ${jobColumns}, j.lapsed, ${now} AS now FROM claimed j JOIN ${jobTables} ORDER BY j.seq`

const startJob = `${planOnce} UPDATE jobs j SET state = 'running', gate = 0, lane = $2, fence = ${newFence}, locked_until = $3 FROM job_parts p
  WHERE p.job_seq = j.seq AND j.seq = $1 AND j.state = 'queued' AND j.ended_at IS NULL RETURNING ${jobColumns}`

type Claim = {
  readonly limit: number
  readonly leaseMs: number
  readonly limits: SharedLimits
  readonly only: 'tasks' | undefined
  readonly now: string
}
type Claimed = { readonly jobs: readonly ClaimedJob[]; readonly ended: readonly EndedRun[]; readonly isSorted: boolean }

/**
 * The statement that begins the transaction of a claim. It shows whether the claim must do more than usual. Unless the claim is only for tasks, it takes
 * the lock of flows if an unfinished job has a flow. Each part reads one row.
 */
export const selectHints = ({ only, now }: Pick<Claim, 'only' | 'now'>) => `
  SELECT (EXISTS (SELECT 1 FROM holds))::int AS held,
    ((SELECT locked_until FROM jobs WHERE state = 'running' ORDER BY locked_until LIMIT 1) <= ${now})::int AS expired, l.*
  FROM (${only === undefined ? lockIfFlows : 'SELECT 0 AS flows'}) l`

/**
 * Runs in one transaction, which began with `selectHints`: two gateways that claim two jobs of a lane at the same time conflict in a unique
 * index, and one begins again.
 */
export async function claim(query: Query, given: Claim, [hints = {}]: readonly Row[]): Promise<Claimed> {
  const { now } = given
  if (hints['expired'] === 1) await query(endAsAskedSql(now, `j.locked_until <= ${now}`))
  if (hints['held'] === 1) await holdBack(query, now)
  if (hints['flows'] !== 1) return { jobs: await claimPlain(query, given), ended: [], isSorted: true }
  // this transaction ends here: `startFlows` must ask running jobs to end before any key is written
  if (hints['expired'] === 1 && (await requeueExpired(query, now))) return { jobs: [], ended: [], isSorted: false }
  const flows = await startFlows(query, given)
  const plain = await claimPlain(query, { ...given, limit: given.limit - flows.jobs.length })
  return { ...flows, jobs: [...flows.jobs, ...plain] }
}

async function claimPlain(query: Query, { limit, leaseMs, only, now }: Claim): Promise<ClaimedJob[]> {
  if (limit <= 0) return []
  const from = async (candidates: string, most: number) =>
    toReadable(query, await query(claimFrom(candidates, now), most, leaseMs, leaseLostReason))
  if (only === 'tasks') return await from(queuedTasks, limit)
  const first = await from(firstQueued, limit)
  if (first.length >= limit) return first
  const [backlog] = await query(`SELECT count(*) AS count FROM (${firstQueued}) w`)
  if (Number(backlog?.['count']) < windowSize) return first
  return [...first, ...(await from(eachHead, limit - first.length))]
}

/** Queues again the jobs of flows whose leases have expired. Returns whether there were any. */
async function requeueExpired(query: Query, now: string): Promise<boolean> {
  const sql = `WITH lost AS (SELECT seq FROM jobs j WHERE ${whereLapsed(now)} FOR UPDATE SKIP LOCKED)
    UPDATE jobs SET state = 'queued', queued_again = 1, gate = 3, lane = NULL, locked_until = NULL, attempts = attempts + 1, last_error = $1,
      run_at = ${now}, failures = ${addFailure(now, '$1')}
    FROM lost WHERE jobs.seq = lost.seq RETURNING jobs.flow, jobs.run_at`
  const requeued = await query(sql, leaseLostReason)
  await runScript(query, reopenKeys(requeued), now)
  return requeued.length > 0
}

const toJson = (sql: string) => `(SELECT json_agg(r) FROM (${sql}) r)::text`

/** One claim at a time starts turns of flows: the others wait for it, and then count the turns that it started. */
async function startFlows(query: Query, { limit, leaseMs, limits, now }: Claim): Promise<Claimed> {
  // this statement begins under the lock
  const [hints = {}] = await query(
    `${planOnce} SELECT ${now} AS now, (SELECT json_agg(label) FROM holds WHERE until IS NULL OR until > ${now})::text AS held, ${hintColumns(now)},
      (${hasQueued})::int AS plain, ${toJson(selectRunning)} AS running, ${toJson(selectLines)} AS lines`,
  )
  const { now: at, held, running, lines, ...own } = hints
  const selectPlain = `SELECT j.run_at FROM jobs j WHERE j.seq IN (${firstQueued}) AND ${whereFree(now)} AND ${whereDue(now)} ORDER BY j.seq LIMIT $1`
  // as: labels are texts, and the others are rows
  const labels = JSON.parse(String(held ?? '[]')) as string[]
  const early = {
    running: JSON.parse(String(running ?? '[]')) as Row[],
    lines: JSON.parse(String(lines ?? '[]')) as Row[],
  }
  const given = { now: Number(at), limit, leaseMs, limits, held: labels, dialect, selectPlain, startJob }
  const { started, ...others } = await runScript(query, claimFlows(given, own, early), now)
  const rows = [...started.values()].toSorted((one, other) => Number(one['seq']) - Number(other['seq']))
  return {
    ...others,
    jobs: await toReadable(
      query,
      rows.map((row) => ({ ...row, now: given.now })),
    ),
  }
}

/** The claimed jobs whose rows can be read. Ends the others: a damaged row must not prevent the claim of other jobs. */
async function toReadable(query: Query, rows: readonly Row[]): Promise<ClaimedJob[]> {
  const jobs: ClaimedJob[] = []
  for (const row of rows) {
    try {
      jobs.push(toClaimedJob(row, Number(row['now'])))
    } catch {
      const sql = `UPDATE jobs SET state = 'dead', ended_at = $2, locked_until = NULL, last_error = $3 WHERE seq = $1`
      await query(sql, Number(row['seq']), Number(row['now']), rowDamagedReason)
    }
  }
  return jobs
}

/** Closes the gates of queued jobs that a hold keeps back. */
async function holdBack(query: Query, now: string): Promise<void> {
  await runScript(query, endHolds(), now)
  const sql = `WITH held AS (SELECT j.seq FROM jobs j
      WHERE j.state = 'queued' AND j.gate = 0 AND ${whereHeld(now)} ORDER BY j.seq LIMIT ${windowSize} FOR UPDATE SKIP LOCKED)
    UPDATE jobs SET gate = 4 FROM held WHERE jobs.seq = held.seq RETURNING jobs.seq`
  while ((await query(sql)).length === windowSize);
}

export async function addTask(query: Query, task: NewTask, now: string): Promise<boolean> {
  const { id, planned, lane, standsFor, labels, unlessWithinMs = 0 } = task
  // in one statement: between two, a sweep could delete the name
  const lockName = `INSERT INTO task_names VALUES ($1) ON CONFLICT (stands_for) DO UPDATE SET stands_for = excluded.stands_for`
  await query(lockName, standsFor)
  const text = JSON.stringify(planned)
  const added = await query(
    `WITH added AS (INSERT INTO jobs (id, lane, state, agent_id, session_key, stands_for, bytes, labels, created_at, run_at)
        SELECT $1, $2, 'queued', $3, $4, $5, $6, $9, ${now}, ${now}
        WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE stands_for = $5 AND state = 'queued' AND lane IS NOT NULL)
          AND NOT EXISTS (SELECT 1 FROM jobs WHERE stands_for = $5 AND created_at > ${now} - $7::bigint AND created_at <= ${now})
        RETURNING seq)
      INSERT INTO job_parts (job_seq, planned, steps) SELECT seq, $8, '[]' FROM added RETURNING job_seq`,
    id,
    lane,
    planned.agentId,
    planned.sessionKey,
    standsFor,
    Buffer.byteLength(text),
    unlessWithinMs,
    text,
    labels && JSON.stringify(labels),
  )
  return added.length > 0
}

export async function requeue(query: Query, id: string, now: string): Promise<boolean> {
  const [job] = await query(
    `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, attempts = 0, failing_since = NULL, ended_at = NULL, run_at = ${now},
      gate = CASE WHEN flow IS NULL THEN 0 ELSE 3 END, lane = CASE WHEN flow IS NULL THEN lane END, flow = CASE WHEN flow IS NULL THEN NULL ELSE 0 END
      WHERE id = $1 AND state = 'dead' RETURNING seq`,
    id,
  )
  if (job === undefined) return false
  const seq = Number(job['seq'])
  // a claim that waited for the report that made the job dead may have left an ending
  await query('DELETE FROM endings WHERE job_seq = $1', seq)
  const [parts] = await query('SELECT posts FROM job_parts WHERE job_seq = $1', seq)
  await query('UPDATE job_parts SET posts = $2 WHERE job_seq = $1', seq, toSentPosts(parts))
  const names = runTaskKinds.map((kind) => toRunTaskName(kind, id))
  // the fence of a task is not that of its last claim, so a report of that claim is refused
  const restarted = await query(
    `UPDATE jobs SET state = 'queued', fence = 0, attempts = 0, lane = NULL, gate = 0, created_at = ${now}, run_at = ${now},
      locked_until = NULL, failing_since = NULL, failures = NULL, last_error = NULL, ended_at = NULL, ended_by = NULL
      WHERE stands_for = ANY ($1::text[]) RETURNING seq`,
    names,
  )
  const seqs = restarted.map((task) => Number(task['seq']))
  await query('DELETE FROM endings WHERE job_seq = ANY ($1::bigint[])', seqs)
  await query(`UPDATE job_parts SET steps = '[]', step_names = '{}' WHERE job_seq = ANY ($1::bigint[])`, seqs)
  return true
}

/** The posts that were sent. They are chosen in JavaScript, because the JSON functions of Postgres refuse texts with NUL. */
function toSentPosts(parts: Row | undefined): string {
  // as: only reports write it
  const posts = JSON.parse(String(parts?.['posts'] ?? '[]')) as readonly { readonly state: string }[]
  return JSON.stringify(posts.filter(({ state }) => state === 'sent'))
}
