// The accounts of budgets. A reservation counts while the job that made it is leased under the same fence, so a crash leaves none behind.
import type { Spending } from '../../model/spending.ts'
import {
  type Account,
  type AccountName,
  type SettledTurn,
  type TaskUsage,
  type TaskUsageQuery,
  wokenBySettling,
} from '../budgets.ts'
import { toAccount, toTaskUsage } from '../rows.ts'
import type { Database, SqlValue } from './driver.ts'
import { reopenFlow } from './flow.ts'
import type { OperationOf } from './operations.ts'

/** starts_at: the start of the period. alerted: the percentage of the last alert to the operator. nanos: billionths of a US dollar. */
export const budgetsSchema = `
CREATE TABLE accounts (
  name TEXT NOT NULL,
  starts_at INTEGER NOT NULL,
  nanos INTEGER NOT NULL DEFAULT 0,
  tokens INTEGER NOT NULL DEFAULT 0,
  turns INTEGER NOT NULL DEFAULT 0,
  raised_nanos INTEGER NOT NULL DEFAULT 0,
  raised_tokens INTEGER NOT NULL DEFAULT 0,
  raised_turns INTEGER NOT NULL DEFAULT 0,
  alerted INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (name, starts_at)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (
  name TEXT NOT NULL,
  job_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  starts_at INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  turns INTEGER NOT NULL,
  PRIMARY KEY (name, job_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE jobs ADD COLUMN budget TEXT;
CREATE INDEX jobs_budget ON jobs (budget, seq) WHERE budget IS NOT NULL AND state = 'queued';
`

/** Whether the job of the reservation `r` runs under its fence. The statement may add a condition for the job `j`, and closes the parenthesis. */
export const isReserved = `EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job_id AND j.fence = r.fence AND j.state = 'running'`
/** ?1: the name. ?2: the start of the period. ?3: now. ?4: the job whose own reservation does not count. */
const selectAccount = `SELECT ?1 AS name, ?2 AS starts_at, a.nanos, a.tokens, a.turns, a.raised_nanos, a.raised_tokens, a.raised_turns,
    held.nanos AS held_nanos, held.tokens AS held_tokens, held.turns AS held_turns,
    (SELECT count(*) FROM jobs WHERE budget = ?1 AND state = 'queued') AS waiting
  FROM (SELECT sum(nanos) AS nanos, sum(tokens) AS tokens, sum(turns) AS turns FROM reservations r
      WHERE name = ?1 AND starts_at = ?2 AND job_id <> ?4 AND ${isReserved} AND j.locked_until > ?3)) held
    LEFT JOIN accounts a ON a.name = ?1 AND a.starts_at = ?2`
const addSpending = `INSERT INTO accounts (name, starts_at, nanos, tokens, turns) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (name, starts_at) DO UPDATE SET nanos = nanos + excluded.nanos, tokens = tokens + excluded.tokens,
    turns = turns + excluded.turns`
const addRaise = `INSERT INTO accounts (name, starts_at, raised_nanos, raised_tokens, raised_turns) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (name, starts_at) DO UPDATE SET raised_nanos = raised_nanos + excluded.raised_nanos,
    raised_tokens = raised_tokens + excluded.raised_tokens, raised_turns = raised_turns + excluded.raised_turns`
const wake = `UPDATE jobs SET run_at = ?2, budget = NULL, last_error = NULL WHERE seq IN
  (SELECT seq FROM jobs WHERE budget = ?1 AND state = 'queued' ORDER BY seq LIMIT ?3)`
const alert = `UPDATE accounts SET alerted = ?3 WHERE name = ?1 AND starts_at = ?2 AND alerted < ?3`

/** The run is the first step of a task that has one. */
const selectTaskUsage = `SELECT count(*) AS turns, count(tokens) AS counted, sum(tokens) AS input_tokens, sum(output) AS output_tokens FROM
  (SELECT steps ->> '$[0].usage.inputTokens' AS tokens, steps ->> '$[0].usage.outputTokens' AS output FROM jobs
    WHERE stands_for IN (SELECT value FROM json_each(?1)) AND created_at > ?2
      AND steps ->> '$[0].name' = 'run' AND steps ->> '$[0].state' <> 'skipped')`

const all = Number.MAX_SAFE_INTEGER

export function toSpendingValues({ nanos, tokens, turns }: Spending): readonly SqlValue[] {
  return [nanos, tokens, turns]
}

export function readTaskUsage(db: Database, { names, withinMs }: TaskUsageQuery, now: number): TaskUsage {
  return toTaskUsage(db.get(selectTaskUsage, JSON.stringify(names), now - withinMs))
}

/** `besides`: the id of a job whose own reservation does not count. */
export function readAccounts(
  db: Database,
  names: readonly AccountName[],
  { at, besides = '' }: { readonly at: number; readonly besides?: string },
): Account[] {
  return names.map(({ name, startsAt }) => toAccount(db.get(selectAccount, name, startsAt, at, besides) ?? {}))
}

/** A report whose commit had an unknown result may come twice: only the first finds the reservation. */
export function settleSpending(
  db: Database,
  { id, at }: { readonly id: string; readonly at: number },
  settled: readonly SettledTurn[],
): void {
  for (const { name, startsAt, used } of settled) {
    if (db.run('DELETE FROM reservations WHERE name = ? AND job_id = ?', name, id).changes === 0) continue
    db.run(addSpending, name, startsAt, ...toSpendingValues(used))
    wakeJobs(db, wake, name, at, wokenBySettling)
  }
}

export function raiseBudget(db: Database, { name, startsAt, by, at }: OperationOf<'raiseBudget'>): undefined {
  db.run(addRaise, name, startsAt, ...toSpendingValues(by))
  wakeJobs(db, wake, name, at, all)
}

export function wakeBudgets(db: Database, { at }: OperationOf<'wakeBudgets'>): boolean {
  const sql = `UPDATE jobs SET run_at = ?, budget = NULL, last_error = NULL WHERE budget IS NOT NULL AND state = 'queued'`
  return wakeJobs(db, sql, at)
}

/** Makes the jobs that wait for a budget due. */
function wakeJobs(db: Database, sql: string, ...params: readonly SqlValue[]): boolean {
  const woken = db.all(`${sql} RETURNING flow, run_at`, ...params)
  for (const job of woken) reopenFlow(db, job)
  return woken.length > 0
}

export function noteBudgetAlert(db: Database, { name, startsAt, percent }: OperationOf<'noteBudgetAlert'>): boolean {
  return db.run(alert, name, startsAt, percent).changes > 0
}

/** Deletes the accounts of old periods, and never the newest one of a budget. */
export function pruneAccounts(db: Database, before: number): number {
  const newer = 'EXISTS (SELECT 1 FROM accounts n WHERE n.name = a.name AND n.starts_at > a.starts_at)'
  return db.run(`DELETE FROM accounts AS a WHERE starts_at < ? AND ${newer}`, before).changes
}
