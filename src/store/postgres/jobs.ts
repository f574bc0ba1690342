// Claims and tasks. The clock is the database's. No statement waits for a job that another gateway has locked.
import { type Row, toClaimedJob } from '../rows.ts'
import { clockSetBackMs, leaseLost } from '../rules.ts'
import type { NewTask } from '../records.ts'
import type { ClaimedJob } from '../../model/job.ts'
import type { Query } from './pool.ts'

/** The columns that `toJob` reads, with the id of the job's delivery. */
const jobColumns = `j.id, p.planned, j.state, j.attempts, j.created_at, j.run_at, j.locked_until, j.last_error,
  j.failing_since, p.steps, p.posts, j.fence, j.seq, j.delivery_seq, d.id AS delivery_id`
const jobTables = 'job_parts p ON p.job_seq = j.seq LEFT JOIN deliveries d ON d.seq = j.delivery_seq'
export const selectJob = `SELECT ${jobColumns} FROM jobs j JOIN ${jobTables}`

/** 52 random bits, and never 0, which no claim has. */
export const newFence = '1 + floor(random() * 4503599627370496)::bigint'

/** The queued jobs that arrived first. Usually enough of them can run. */
const windowSize = 200
const firstQueued = `SELECT seq FROM (SELECT seq FROM jobs WHERE state = 'queued' ORDER BY seq LIMIT ${windowSize}) w`

/** The first unfinished job of each lane, found by one index read a lane, however many jobs wait in it. */
export const heads = `heads AS (
    (SELECT lane, seq FROM jobs WHERE lane IS NOT NULL AND ended_at IS NULL ORDER BY lane, seq LIMIT 1)
    UNION ALL
    SELECT next.lane, next.seq FROM heads, LATERAL (SELECT lane, seq FROM jobs
      WHERE lane IS NOT NULL AND ended_at IS NULL AND lane > heads.lane ORDER BY lane, seq LIMIT 1) next)`
/** The jobs that wait for no other job: the first job of each lane, and all jobs without a lane. */
export const eachHead = `SELECT seq FROM heads UNION ALL SELECT seq FROM jobs WHERE lane IS NULL AND state = 'queued'`

/** Queued, with no earlier job and no running job in its lane. */
export const isFree = `j.state = 'queued' AND (j.lane IS NULL OR NOT EXISTS (SELECT 1 FROM jobs o
  WHERE o.lane = j.lane AND o.ended_at IS NULL AND o.seq <> j.seq AND (o.seq < j.seq OR o.state = 'running')))`

/** A job that was never tried is due, and so is one that would wait for longer than any retry: the clock was set back. */
export const isDue = (now: string) =>
  `(j.run_at <= ${now} OR j.run_at = j.created_at OR j.run_at > ${now} + ${clockSetBackMs})`

/** The head of each free lane is chosen before the limit. A job whose lease expired is claimed directly, and the attempt counts. */
const claimFrom = (candidates: string, now: string) => `
  WITH RECURSIVE ${heads},
  candidates AS MATERIALIZED (${candidates}),
  expired AS MATERIALIZED (SELECT seq FROM jobs WHERE state = 'running' AND locked_until <= ${now}),
  picked AS MATERIALIZED (
    SELECT j.seq, j.state AS was, j.fence AS was_fence FROM jobs j
    WHERE j.seq = ANY (ARRAY(SELECT seq FROM candidates UNION SELECT seq FROM expired))
      AND ((${isFree} AND ${isDue(now)}) OR (j.state = 'running' AND j.locked_until <= ${now}))
    ORDER BY j.seq LIMIT $1 FOR UPDATE OF j SKIP LOCKED),
  claimed AS (UPDATE jobs SET state = 'running', fence = ${newFence}, locked_until = ${now} + $2::bigint,
      attempts = attempts + CASE WHEN was = 'running' THEN 1 ELSE 0 END,
      run_at = CASE WHEN was = 'running' THEN ${now} ELSE run_at END,
      last_error = CASE WHEN was = 'running' THEN $3 ELSE last_error END
    FROM picked WHERE jobs.seq = picked.seq RETURNING jobs.*, nullif(picked.was_fence, 0) AS lapsed)
  SELECT ${jobColumns}, j.lapsed, ${now} AS now FROM claimed j JOIN ${jobTables} ORDER BY j.seq`

type Claim = { readonly limit: number; readonly leaseMs: number; readonly now: string }

/** Runs in one transaction: two gateways that claim two jobs of a lane at once conflict in a unique index, and one begins again. */
export async function claim(query: Query, { limit, leaseMs, now }: Claim): Promise<ClaimedJob[]> {
  const from = async (candidates: string, most: number) =>
    (await query(claimFrom(candidates, now), most, leaseMs, leaseLost)).map((row) =>
      toClaimedJob(row, Number(row['now'])),
    )
  const first = await from(firstQueued, limit)
  if (first.length >= limit) return first
  const [backlog] = await query(`SELECT count(*) AS count FROM (${firstQueued}) w`)
  if (Number(backlog?.['count']) < windowSize) return first
  return [...first, ...(await from(eachHead, limit - first.length))]
}

export async function extend(
  query: Query,
  { jobs, leaseMs, now }: { jobs: readonly { id: string; fence: number }[]; leaseMs: number; now: string },
): Promise<string[]> {
  const rows = await query(
    `UPDATE jobs SET locked_until = ${now} + $3::bigint FROM unnest($1::text[], $2::bigint[]) AS held (id, fence)
      WHERE jobs.id = held.id AND jobs.fence = held.fence AND state = 'running' RETURNING jobs.id`,
    jobs.map(({ id }) => id),
    jobs.map(({ fence }) => fence),
    leaseMs,
  )
  return rows.map(({ id }) => String(id))
}

export async function addTask(query: Query, task: NewTask, now: string): Promise<boolean> {
  const { id, planned, lane, standsFor, unlessWithinMs = 0 } = task
  // one statement: a sweep may delete the name between two
  const lockName = `INSERT INTO task_names VALUES ($1) ON CONFLICT (stands_for) DO UPDATE SET stands_for = excluded.stands_for`
  await query(lockName, standsFor)
  const text = JSON.stringify(planned)
  const added = await query(
    `WITH added AS (INSERT INTO jobs (id, lane, state, agent_id, session_key, stands_for, bytes, created_at, run_at)
        SELECT $1, $2, 'queued', $3, $4, $5, $6, ${now}, ${now}
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
  )
  return added.length > 0
}

export async function requeue(query: Query, id: string, now: string): Promise<boolean> {
  const [job] = await query(
    `UPDATE jobs SET state = 'queued', fence = 0, attempts = 0, failing_since = NULL, ended_at = NULL, run_at = ${now}
      WHERE id = $1 AND state = 'dead' RETURNING seq`,
    id,
  )
  if (job === undefined) return false
  const seq = Number(job['seq'])
  const [parts] = await query('SELECT posts FROM job_parts WHERE job_seq = $1', seq)
  await query('UPDATE job_parts SET posts = $2 WHERE job_seq = $1', seq, toSentPosts(parts))
  return true
}

/** In JavaScript, not in SQL: the JSON functions of Postgres refuse texts with NUL. */
function toSentPosts(parts: Row | undefined): string {
  // as: only reports write it
  const posts = JSON.parse(String(parts?.['posts'] ?? '[]')) as readonly { readonly state: string }[]
  return JSON.stringify(posts.filter(({ state }) => state === 'sent'))
}
