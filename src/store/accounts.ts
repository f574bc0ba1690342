// The tables of budgets, as scripts. A reservation counts while the job that made it is leased under the same fence, so a crash leaves none behind.
import type { Spending } from '../model/spending.ts'
import {
  type Account,
  type AccountName,
  describeShortage,
  findShortage,
  pollingWithinMs,
  type Reservation,
  type ReserveResult,
  type SettledTurn,
  type TaskUsage,
  wokenBySettling,
} from './budgets.ts'
import { reopenKeys } from './flow.ts'
import { column, type Row } from './rows.ts'
import { countChanged, type Dialect, readNow, run, type Script } from './script.ts'

/** Sums are null if there is no turn. */
export function toTaskUsage(row: Row | undefined): TaskUsage {
  const read = (name: string) => Number(row?.[name] ?? 0)
  const turns = read('turns')
  return {
    turns,
    uncounted: turns - read('counted'),
    inputTokens: read('input_tokens'),
    outputTokens: read('output_tokens'),
  }
}

/** The columns are null if the account does not exist, or if nothing is reserved. */
function toAccount(row: Row): Account {
  const read = (prefix: string): Spending => ({
    nanos: Number(row[`${prefix}nanos`] ?? 0),
    tokens: Number(row[`${prefix}tokens`] ?? 0),
    turns: Number(row[`${prefix}turns`] ?? 0),
  })
  return {
    name: column<string>(row, 'name'),
    startsAt: column<number>(row, 'starts_at'),
    spent: read(''),
    reserved: read('held_'),
    raised: read('raised_'),
    waiting: Number(row['waiting'] ?? 0),
  }
}

/** Whether the job of the reservation `r` runs under its fence. The statement may add a condition for the job `j`, and closes the parenthesis. */
const isReserved = `EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job_id AND j.fence = r.fence AND j.state = 'running'`

const toValues = ({ nanos, tokens, turns }: Spending) => [nanos, tokens, turns] as const

/** The accounts in the order of `names`. `besides`: the id of a job whose own reservation does not count. */
export function* readAccounts(names: readonly AccountName[], { rows }: Dialect, besides = ''): Script<Account[]> {
  if (names.length === 0) return []
  const given = rows('$1', { place: 'bigint', name: 'text', starts_at: 'bigint' })
  const found = yield* run(
    `SELECT given.name, given.starts_at, a.nanos, a.tokens, a.turns, a.raised_nanos, a.raised_tokens, a.raised_turns,
        held_nanos, held_tokens, held_turns, (SELECT count(*) FROM jobs WHERE budget = given.name AND state = 'queued') AS waiting
      FROM (${given}) given LEFT JOIN accounts a ON a.name = given.name AND a.starts_at = given.starts_at
      LEFT JOIN (SELECT r.name, r.starts_at, CAST(sum(r.nanos) AS bigint) AS held_nanos,
          CAST(sum(r.tokens) AS bigint) AS held_tokens, CAST(sum(r.turns) AS bigint) AS held_turns
        FROM reservations r WHERE r.name IN (SELECT name FROM (${given}) named) AND r.job_id <> $2
          AND ${isReserved} AND j.locked_until > $now) GROUP BY r.name, r.starts_at) held
        ON held.name = given.name AND held.starts_at = given.starts_at
      ORDER BY given.place`,
    JSON.stringify(names.map(({ name, startsAt }, place) => [place, name, startsAt])),
    besides,
  )
  return found.map(toAccount)
}

/** A job that must be queued again, because a budget has no room. */
export type BudgetWait = { readonly budget: string; readonly reason: string; readonly afterMs: number }

type Reserved = { readonly result: ReserveResult; readonly wait?: BudgetWait }

/** The caller has found the job under its fence, has locked the accounts, and queues the job again if there is a `wait`. */
export function* reserveRoom(
  { seq, id, fence }: { readonly seq: number; readonly id: string; readonly fence: number },
  reservations: readonly Reservation[],
  dialect: Dialect,
): Script<Reserved> {
  const shortage = findShortage(reservations, yield* readAccounts(reservations, dialect, id))
  if (shortage !== undefined) {
    const { name: budget } = shortage.reservation
    const countPolling = `SELECT count(*) AS count FROM jobs WHERE budget = $1 AND state = 'queued' AND run_at <= $now + CAST($2 AS bigint)`
    const [found] = yield* run(countPolling, budget, pollingWithinMs)
    const how = { now: yield* readNow(), polling: Number(found?.['count']) }
    const { kind, reason, afterMs } = describeShortage(shortage, how)
    const result = { kind, reason, budget }
    return kind === 'waits' ? { result, wait: { budget, reason, afterMs } } : { result }
  }
  yield* run('UPDATE jobs SET budget = NULL, last_error = NULL WHERE seq = $1 AND budget IS NOT NULL', seq)
  for (const { name, startsAt, most } of reservations) {
    yield* run(`DELETE FROM reservations AS r WHERE name = $1 AND NOT ${isReserved})`, name)
    yield* run(
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
  return { result: { kind: 'reserved' } }
}

const addTo = (prefix: string) => {
  const columns = ['nanos', 'tokens', 'turns'].map((measure) => `${prefix}${measure}`)
  return `INSERT INTO accounts AS a (name, starts_at, ${columns.join(', ')}) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (name, starts_at) DO UPDATE SET ${columns.map((column) => `${column} = a.${column} + excluded.${column}`).join(', ')}`
}
const addSpending = addTo('')
const addRaise = addTo('raised_')

/** A report whose commit had an unknown result may come twice: only the first finds the reservation. */
export function* settleTurns(jobId: string, settled: readonly SettledTurn[], dialect: Dialect): Script<void> {
  for (const { name, startsAt, used } of settled) {
    const end = 'DELETE FROM reservations WHERE name = $1 AND job_id = $2'
    if ((yield* countChanged(end, name, jobId)) === 0) continue
    yield* run(addSpending, name, startsAt, ...toValues(used))
    yield* wakeJobs('budget = $2', dialect, [wokenBySettling, name])
  }
}

export function* raiseBudget({ name, startsAt }: AccountName, by: Spending, dialect: Dialect): Script<void> {
  yield* run(addRaise, name, startsAt, ...toValues(by))
  yield* wakeJobs('budget = $2', dialect, [Number.MAX_SAFE_INTEGER, name])
}

export function wakeBudgets(dialect: Dialect): Script<boolean> {
  return wakeJobs('budget IS NOT NULL', dialect, [Number.MAX_SAFE_INTEGER])
}

/**
 * Makes the first `$1` jobs due that wait for a budget. The condition is not `seq IN (SELECT … LIMIT …)`: Postgres may run that once for each job, and
 * so wake all jobs. A job that another gateway has locked is about to leave the queue, or was just held: the next settlement finds it.
 */
function* wakeJobs(
  which: string,
  { skipLocked }: Dialect,
  params: readonly [limit: number, ...name: string[]],
): Script<boolean> {
  const woken = yield* run(
    // in the order of their index: in the order of seq, SQLite would read all jobs
    `WITH woken AS (SELECT seq FROM jobs WHERE ${which} AND state = 'queued' ORDER BY budget, seq LIMIT $1 ${skipLocked})
      UPDATE jobs SET run_at = $now, budget = NULL, last_error = NULL FROM woken WHERE jobs.seq = woken.seq RETURNING flow, run_at`,
    ...params,
  )
  yield* reopenKeys(woken)
  return woken.length > 0
}

export function* noteBudgetAlert({ name, startsAt }: AccountName, percent: number): Script<boolean> {
  const sql = 'UPDATE accounts SET alerted = $3 WHERE name = $1 AND starts_at = $2 AND alerted < $3'
  return (yield* countChanged(sql, name, startsAt, percent)) > 0
}
