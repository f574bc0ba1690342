// Reserves the amount that a turn may use of its budgets, as in SQLite: ../accounts.ts. The row of an account is the lock of its budget in a period.
import { type BudgetWait, reserveRoom, settleTurns, toTaskUsage } from '../accounts.ts'
import type { AccountName, Reservation, ReserveResult, SettledTurn, TaskUsage, TaskUsageQuery } from '../budgets.ts'
import { dialect, lockFlows, runScript } from './flow.ts'
import { endAsAskedSql, isEnding, leaveLane, returnToFlow } from './holds.ts'
import type { Query } from './pool.ts'

/** The run is the first step of a task that has one. */
const selectTaskUsage = (now: string) => `SELECT count(*) AS turns, count(run -> 'usage') AS counted,
    sum((run #>> '{usage,inputTokens}')::bigint)::bigint AS input_tokens,
    sum((run #>> '{usage,outputTokens}')::bigint)::bigint AS output_tokens
  FROM (SELECT p.steps::jsonb -> 0 AS run FROM jobs j JOIN job_parts p ON p.job_seq = j.seq
    WHERE j.stands_for = ANY ($1::text[]) AND j.created_at > ${now} - $2::bigint) t
  WHERE run ->> 'name' = 'run' AND run ->> 'state' <> 'skipped'`
/** Locks the rows in a fixed order, so that two turns with the same budgets do not wait for each other in a circle. */
const lockAccounts = `INSERT INTO accounts (name, starts_at)
  SELECT name, starts_at FROM unnest($1::text[], $2::bigint[]) AS given (name, starts_at) ORDER BY name COLLATE "C", starts_at
  ON CONFLICT (name, starts_at) DO UPDATE SET nanos = accounts.nanos`

async function lock(query: Query, names: readonly AccountName[]): Promise<void> {
  if (names.length === 0) return
  await query(
    lockAccounts,
    names.map(({ name }) => name),
    names.map(({ startsAt }) => startsAt),
  )
}

export async function readTaskUsage(
  query: Query,
  { names, withinMs }: TaskUsageQuery,
  now: string,
): Promise<TaskUsage> {
  return toTaskUsage((await query(selectTaskUsage(now), names, withinMs))[0])
}

type ReserveCall = {
  readonly job: { readonly id: string; readonly fence: number }
  readonly reservations: readonly Reservation[]
  readonly now: string
}

export async function reserve(
  query: Query,
  { job: { id, fence }, reservations, now }: ReserveCall,
): Promise<ReserveResult> {
  const find = `SELECT seq FROM jobs WHERE id = $1 AND fence = $2 AND state = 'running' FOR UPDATE`
  const [job] = await query(find, id, fence)
  if (job === undefined) return { kind: 'lost' }
  const seq = Number(job['seq'])
  await lock(query, reservations)
  const { result, wait } = await runScript(query, reserveRoom({ seq, id, fence }, reservations, dialect), now)
  if (wait !== undefined) await queueAgain(query, seq, { ...wait, now })
  return result
}

async function queueAgain(
  query: Query,
  seq: number,
  { afterMs, reason, budget, now }: BudgetWait & { readonly now: string },
): Promise<void> {
  if (await isEnding(query, seq)) return void (await query(endAsAskedSql(now, 'j.seq = $1'), seq))
  await query(
    `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, locked_until = NULL, last_error = $2, run_at = ${now} + $3::bigint,
      budget = $4, ${leaveLane} WHERE seq = $1`,
    seq,
    reason,
    afterMs,
    budget,
  )
  await returnToFlow(query, seq, now)
}

type Settlement = {
  readonly id: string
  readonly settled: readonly SettledTurn[]
  readonly now: string
}

/** Call it before a budget wakes jobs, and before the job of a report is locked: the jobs have other keys. */
export async function lockWaiting(query: Query, names: readonly string[]): Promise<void> {
  if (names.length > 0) await lockFlows(query, `state = 'queued' AND budget = ANY ($1::text[])`, names)
}

export async function settleSpending(query: Query, { id, settled, now }: Settlement): Promise<void> {
  await lock(query, settled)
  await runScript(query, settleTurns(id, settled, dialect), now)
}
