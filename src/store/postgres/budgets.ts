// The accounts of budgets, as in SQLite: ../sqlite/budgets.ts. The row of an account is the lock of its budget in a period.
import type { Spending } from '../../model/spending.ts'
import {
  type Account,
  type AccountName,
  findShortage,
  pollingWithinMs,
  type Reservation,
  type ReserveResult,
  type SettledTurn,
  type TaskUsage,
  type TaskUsageQuery,
  describeShortage,
  wokenBySettling,
} from '../budgets.ts'
import { toAccount, toTaskUsage } from '../rows.ts'
import { lockFlows } from './flow.ts'
import { endAsAskedSql, leaveLane, reopenFlows, returnToFlow } from './holds.ts'
import type { Query } from './pool.ts'

export const budgetsSchema = `
CREATE TABLE accounts (
  name text COLLATE "C" NOT NULL,
  starts_at bigint NOT NULL,
  nanos bigint NOT NULL DEFAULT 0,
  tokens bigint NOT NULL DEFAULT 0,
  turns bigint NOT NULL DEFAULT 0,
  raised_nanos bigint NOT NULL DEFAULT 0,
  raised_tokens bigint NOT NULL DEFAULT 0,
  raised_turns bigint NOT NULL DEFAULT 0,
  alerted integer NOT NULL DEFAULT 0,
  PRIMARY KEY (name, starts_at)
) WITH (fillfactor = 70);
CREATE TABLE reservations (
  name text COLLATE "C" NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  starts_at bigint NOT NULL,
  nanos bigint NOT NULL,
  tokens bigint NOT NULL,
  turns bigint NOT NULL,
  PRIMARY KEY (name, job_id)
);
ALTER TABLE jobs ADD COLUMN budget text COLLATE "C";
CREATE INDEX jobs_budget ON jobs (budget, seq) WHERE budget IS NOT NULL AND state = 'queued';
`

/** Whether the job of the reservation `r` runs under its fence. The statement may add a condition for the job `j`, and closes the parenthesis. */
const isHeld = `EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job_id AND j.fence = r.fence AND j.state = 'running'`
const selectAccounts = (now: string) => `SELECT given.name, given.starts_at, a.nanos, a.tokens, a.turns,
    a.raised_nanos, a.raised_tokens, a.raised_turns, held.*,
    (SELECT count(*) FROM jobs WHERE budget = given.name AND state = 'queued') AS waiting
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS given (name, starts_at, place)
    LEFT JOIN accounts a ON a.name = given.name AND a.starts_at = given.starts_at,
    LATERAL (SELECT sum(nanos)::bigint AS held_nanos, sum(tokens)::bigint AS held_tokens, sum(turns)::bigint AS held_turns
      FROM reservations r WHERE r.name = given.name AND r.starts_at = given.starts_at AND r.job_id <> $3
        AND ${isHeld} AND j.locked_until > ${now})) held
  ORDER BY given.place`
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

function toNames(names: readonly AccountName[]) {
  return [names.map(({ name }) => name), names.map(({ startsAt }) => startsAt)] as const
}

/** `besides`: the id of a job whose own reservation does not count. */
export async function readAccounts(
  query: Query,
  names: readonly AccountName[],
  { now, besides = '' }: { readonly now: string; readonly besides?: string },
): Promise<Account[]> {
  if (names.length === 0) return []
  return (await query(selectAccounts(now), ...toNames(names), besides)).map(toAccount)
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
  const [job] = await query(
    `SELECT seq, ${now} AS now FROM jobs WHERE id = $1 AND fence = $2 AND state = 'running' FOR UPDATE`,
    id,
    fence,
  )
  if (job === undefined) return { kind: 'lost' }
  const seq = Number(job['seq'])
  await query(lockAccounts, ...toNames(reservations))
  const shortage = findShortage(reservations, await readAccounts(query, reservations, { now, besides: id }))
  if (shortage !== undefined) {
    const { name: budget } = shortage.reservation
    const countPolling = `SELECT count(*) AS count FROM jobs WHERE budget = $1 AND state = 'queued' AND run_at <= ${now} + $2::bigint`
    const [found] = await query(countPolling, budget, pollingWithinMs)
    const { kind, reason, afterMs } = describeShortage(shortage, {
      now: Number(job['now']),
      polling: Number(found?.['count']),
    })
    if (kind === 'waits') await queueAgain(query, seq, { afterMs, reason, budget, now })
    return { kind, reason, budget }
  }
  await query('UPDATE jobs SET budget = NULL, last_error = NULL WHERE seq = $1 AND budget IS NOT NULL', seq)
  for (const { name, startsAt, most } of reservations) {
    await query(`DELETE FROM reservations r WHERE name = $1 AND NOT ${isHeld})`, name)
    await query(
      `INSERT INTO reservations (name, job_id, fence, starts_at, nanos, tokens, turns) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (name, job_id) DO UPDATE SET fence = excluded.fence, starts_at = excluded.starts_at, nanos = excluded.nanos,
          tokens = excluded.tokens, turns = excluded.turns`,
      name,
      id,
      fence,
      startsAt,
      ...toValues(most),
    )
  }
  return { kind: 'reserved' }
}

function toValues({ nanos, tokens, turns }: Spending) {
  return [nanos, tokens, turns] as const
}

type BudgetWait = { readonly afterMs: number; readonly reason: string; readonly budget: string; readonly now: string }

async function queueAgain(query: Query, seq: number, { afterMs, reason, budget, now }: BudgetWait): Promise<void> {
  const [ending] = await query('SELECT 1 AS one FROM endings WHERE job_seq = $1', seq)
  if (ending !== undefined) return void (await query(endAsAskedSql(now, 'j.seq = $1'), seq))
  await query(
    `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, locked_until = NULL, last_error = $2, run_at = ${now} + $3::bigint,
      budget = $4, ${leaveLane} WHERE seq = $1`,
    seq,
    reason,
    afterMs,
    budget,
  )
  await returnToFlow(query, seq)
}

const addSpending = `INSERT INTO accounts AS a (name, starts_at, nanos, tokens, turns) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (name, starts_at) DO UPDATE SET nanos = a.nanos + excluded.nanos, tokens = a.tokens + excluded.tokens,
    turns = a.turns + excluded.turns`
const addRaise = `INSERT INTO accounts AS a (name, starts_at, raised_nanos, raised_tokens, raised_turns) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (name, starts_at) DO UPDATE SET raised_nanos = a.raised_nanos + excluded.raised_nanos,
    raised_tokens = a.raised_tokens + excluded.raised_tokens, raised_turns = a.raised_turns + excluded.raised_turns`
/**
 * The condition is not `seq IN (SELECT … LIMIT …)`: Postgres may run that once for each job, and so wake all jobs. A job that another gateway
 * has locked is about to leave the queue, or was just held: the next settlement finds it.
 */
const makeWaitingDue = (
  now: string,
) => `WITH woken AS (SELECT seq FROM jobs WHERE budget = $1 AND state = 'queued' ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED)
  UPDATE jobs SET run_at = ${now}, budget = NULL, last_error = NULL FROM woken WHERE jobs.seq = woken.seq RETURNING jobs.flow, jobs.run_at`

type Settlement = {
  readonly id: string
  readonly settled: readonly SettledTurn[]
  readonly now: string
}

const waitsForBudget = `state = 'queued' AND budget = ANY ($1::text[])`

/** Call it before the job of the report is locked: a budget that is settled wakes jobs of other keys. */
export async function lockWaiting(query: Query, settled: readonly SettledTurn[]): Promise<void> {
  const names = settled.map(({ name }) => name)
  if (names.length > 0) await lockFlows(query, waitsForBudget, names)
}

/** A report whose commit had an unknown result may come twice: only the first finds the reservation. */
export async function settleSpending(query: Query, { id, settled, now }: Settlement): Promise<void> {
  if (settled.length > 0) await query(lockAccounts, ...toNames(settled))
  for (const { name, startsAt, used } of settled) {
    const end = 'DELETE FROM reservations WHERE name = $1 AND job_id = $2 RETURNING name'
    if ((await query(end, name, id)).length === 0) continue
    await query(addSpending, name, startsAt, ...toValues(used))
    await reopenFlows(query, await query(makeWaitingDue(now), name, wokenBySettling))
  }
}

export async function raiseBudget(
  query: Query,
  { name, startsAt, by, now }: AccountName & { readonly by: Spending; readonly now: string },
): Promise<void> {
  await lockFlows(query, waitsForBudget, [name])
  await query(addRaise, name, startsAt, ...toValues(by))
  await reopenFlows(query, await query(makeWaitingDue(now), name, Number.MAX_SAFE_INTEGER))
}

/** Makes all jobs due that wait for a budget. Returns false if none waited. */
export async function wakeBudgets(query: Query, now: string): Promise<boolean> {
  const sql = `UPDATE jobs SET run_at = ${now}, budget = NULL, last_error = NULL WHERE seq IN
    (SELECT seq FROM jobs WHERE budget IS NOT NULL AND state = 'queued' FOR UPDATE SKIP LOCKED) RETURNING flow, run_at`
  await lockFlows(query, `state = 'queued' AND budget IS NOT NULL`)
  const woken = await query(sql)
  await reopenFlows(query, woken)
  return woken.length > 0
}

export async function noteBudgetAlert(
  query: Query,
  { name, startsAt }: AccountName,
  percent: number,
): Promise<boolean> {
  const sql = 'UPDATE accounts SET alerted = $3 WHERE name = $1 AND starts_at = $2 AND alerted < $3 RETURNING name'
  return (await query(sql, name, startsAt, percent)).length > 0
}

/** Deletes the accounts of old periods, and never the newest one of a budget. */
export const pruneAccounts = `DELETE FROM accounts WHERE (name, starts_at) IN (SELECT name, starts_at FROM accounts a
  WHERE starts_at < $1 AND EXISTS (SELECT 1 FROM accounts n WHERE n.name = a.name AND n.starts_at > a.starts_at) LIMIT $2) RETURNING name`
