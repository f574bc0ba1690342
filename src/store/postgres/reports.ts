// Reports of steps that end together: one transaction for all of them, with as many statements as for one.
import type { JobReport } from '../records.ts'
import type { Row } from '../rows.ts'
import {
  type Columns,
  declareColumns,
  joinNames,
  newEventColumns,
  toColumns,
  toEventValues,
  unnest,
} from './columns.ts'
import { channel } from './listener.ts'
import { planOnce } from './naming.ts'
import type { Query } from './pool.ts'

export type ReportCall = { readonly job: { readonly id: string; readonly fence: number }; readonly what: JobReport }

/** `payload`: a notification to the other gateways, or empty. */
type Reporting = { readonly calls: readonly ReportCall[]; readonly now: string; readonly payload?: string | undefined }

const reportColumns = declareColumns(`id text, new_names text, new_steps text, new_posts text,
  leaves_lane smallint, lease_ms bigint, is_done smallint, touches smallint`)
const eventColumns: Columns = [['report', 'bigint'], ...newEventColumns]
const messageColumns = declareColumns('report bigint, role text, text text')
const consumedColumns = declareColumns('report bigint, seq bigint')

const eventNames = joinNames(newEventColumns)
const firstEvent = reportColumns.length + 1
const firstMessage = firstEvent + eventColumns.length
const firstConsumed = firstMessage + messageColumns.length
const told = `$${firstConsumed + consumedColumns.length}`
const lockedSeqs = `$${firstConsumed + consumedColumns.length + 1}`

/** Whether the running job `j` must end. */
export const mustEnd = 'EXISTS (SELECT 1 FROM endings e WHERE e.job_seq = j.seq)'
/** A job that another transaction has locked is left out: nobody else waits for that transaction. */
const lockJobs = `${planOnce} SELECT j.seq FROM unnest($1::text[], $2::bigint[]) AS input (id, fence)
  JOIN jobs j ON j.id = input.id AND j.fence = input.fence WHERE j.state = 'running' AND NOT ${mustEnd} FOR UPDATE OF j SKIP LOCKED`

/** The statement begins under the locks of the jobs, so it sees what was written before. Sessions are locked until the commit, in a fixed order. */
const insertReports = (now: string) => `${planOnce} WITH given AS MATERIALIZED (
    SELECT input.*, j.seq, j.agent_id, j.session_key, (SELECT d.id FROM deliveries d WHERE d.seq = j.delivery_seq) AS delivery_id,
      p.step_names && string_to_array(input.new_names, ',') AS recorded
    FROM ${unnest(reportColumns, 1)} JOIN jobs j ON j.id = input.id JOIN job_parts p ON p.job_seq = j.seq
    WHERE j.seq = ANY (${lockedSeqs}::bigint[])),
  fresh AS (SELECT * FROM given WHERE NOT recorded),
  jobs_out AS (UPDATE jobs SET state = CASE WHEN g.is_done = 1 THEN 'done' ELSE state END,
      failing_since = CASE WHEN g.recorded OR g.new_names = '' THEN failing_since END, lane = CASE WHEN g.leaves_lane = 0 THEN lane END,
      attempts = attempts + g.is_done, ended_at = CASE WHEN g.is_done = 1 THEN ${now} ELSE ended_at END,
      locked_until = CASE WHEN g.is_done = 0 THEN coalesce(${now} + g.lease_ms, locked_until) END
    FROM given g WHERE jobs.seq = g.seq),
  parts_out AS (UPDATE job_parts SET posts = coalesce(g.new_posts, posts),
      step_names = CASE WHEN g.recorded THEN step_names ELSE step_names || string_to_array(g.new_names, ',') END,
      steps = CASE WHEN g.recorded OR g.new_names = '' THEN steps
        ELSE CASE WHEN steps = '[]' THEN '[' ELSE left(steps, -1) || ',' END || g.new_steps || ']' END
    FROM given g WHERE job_seq = g.seq AND (g.new_posts IS NOT NULL OR g.new_names <> '')),
  events_in AS (SELECT input.*, f.delivery_id FROM ${unnest(eventColumns, firstEvent)} JOIN fresh f ON f.place = input.report),
  events_out AS (INSERT INTO events (delivery_id, ${eventNames}, at)
    SELECT delivery_id, ${eventNames}, ${now} FROM events_in ORDER BY place),
  messages_out AS (INSERT INTO messages (agent_id, session_key, at, role, run_id, text)
    SELECT f.agent_id, f.session_key, ${now}, input.role, f.id, input.text
    FROM ${unnest(messageColumns, firstMessage)} JOIN fresh f ON f.place = input.report ORDER BY input.place),
  consumed_out AS (UPDATE events SET consumed_at = ${now} FROM ${unnest(consumedColumns, firstConsumed)} JOIN fresh f ON f.place = input.report
    WHERE events.seq = input.seq AND events.agent_id = f.agent_id AND events.session_key = f.session_key AND consumed_at IS NULL),
  sessions_out AS (INSERT INTO sessions (agent_id, session_key, updated_at)
    SELECT agent_id COLLATE "C", session_key COLLATE "C", ${now} FROM events_in
    UNION SELECT agent_id, session_key, ${now} FROM fresh WHERE touches = 1 ORDER BY 1, 2
    ON CONFLICT (agent_id, session_key) DO UPDATE SET updated_at = greatest(sessions.updated_at, excluded.updated_at))
  SELECT place, recorded::int, CASE WHEN ${told} <> '' THEN pg_notify(${channel}, ${told})::text END AS told FROM given`

/** Whether `reportAll` can write a report: the usual ones, which neither queue a job again nor change more than rows of the job. */
export function isUsual({ outcome, settled, keeps, runnerState, recipient }: JobReport): boolean {
  const isUsualEnd = outcome === undefined || outcome.kind === 'done'
  return isUsualEnd && [settled, keeps, runnerState, recipient].every((part) => part === undefined)
}

/**
 * Writes usual reports, and returns the places of those that it wrote. The others are to be reported one by one: their lease was lost, their job
 * must end or is locked, or an earlier commit of the same report had an unknown result.
 */
export async function reportAll(query: Query, { calls, now, payload }: Reporting): Promise<ReadonlySet<number>> {
  const jobs = calls.map(({ job }) => job)
  const locked = await query(
    lockJobs,
    jobs.map(({ id }) => id),
    jobs.map(({ fence }) => fence),
  )
  if (locked.length === 0) return new Set()
  const seqs = locked.map(({ seq }) => Number(seq))
  const written = await writeReports(query, { calls, seqs, now, payload })
  return new Set(written.map(({ place }) => Number(place) - 1))
}

/**
 * Writes the reports on the locked jobs `seqs`: their steps with what belongs to them, and the end of those that are done. Returns a row for each
 * report. The other outcomes are the caller's.
 */
export async function writeReports(
  query: Query,
  { calls, seqs, now, payload = '' }: Reporting & { readonly seqs: readonly number[] },
): Promise<Row[]> {
  return await query(insertReports(now), ...toParams(calls), payload, seqs)
}

function toParams(calls: readonly ReportCall[]) {
  const listAll = <Part>(pick: (what: JobReport) => readonly Part[] | undefined) =>
    calls.flatMap(({ what }, index) => (pick(what) ?? []).map((part) => [index + 1, part] as const))
  const reports = calls.map(({ job, what: { steps = [], ...what } }) => [
    job.id,
    steps.map(({ name }) => name).join(','),
    steps.map((step) => JSON.stringify(step)).join(','),
    what.posts && JSON.stringify(what.posts),
    what.leavesLane === true ? 1 : 0,
    what.outcome === undefined ? what.leaseMs : null,
    what.outcome?.kind === 'done' ? 1 : 0,
    (what.messages ?? []).length > 0 || what.runnerState !== undefined ? 1 : 0,
  ])
  const events = listAll((what) => what.events)
  const messages = listAll((what) => what.messages)
  return [
    ...toColumns(reports, reportColumns),
    ...toColumns(
      events.map(([report, event]) => [report, ...toEventValues(event)]),
      eventColumns,
    ),
    ...toColumns(
      messages.map(([report, { role, text }]) => [report, role, text]),
      messageColumns,
    ),
    ...toColumns(
      listAll((what) => what.consumed).map(([report, { id }]) => [report, id]),
      consumedColumns,
    ),
  ]
}
