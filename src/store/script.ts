// A script of SQL statements that each engine runs in one transaction. `$now` in a statement is the clock of the store. A statement casts what has no type
// in Postgres otherwise, such as a parameter that is only compared with NULL.
import type { Row, SqlValue } from './rows.ts'

/** `also`: statements that write other tables. No statement reads what another one writes, so Postgres can run all of them as one. */
export type Statement = {
  readonly sql: string
  readonly params: readonly SqlValue[]
  readonly also?: readonly Statement[]
}
export type Script<Result> = Generator<Statement, Result, Row[]>

/** The parts of a statement that the engines write differently. */
export type Dialect = {
  /** A subquery that returns the numbers of a JSON array. `param`: the parameter with the array. */
  readonly list: (param: string) => string
  /** A subquery that returns the texts of a JSON array. */
  readonly texts: (param: string) => string
  /** A subquery that returns the arrays of a JSON array as rows with these columns. */
  readonly rows: (param: string, columns: Columns) => string
  /** The beginning of a statement whose best plan depends neither on its values nor on how many rows there are. */
  readonly planOnce: string
  /** The function that returns the larger of two numbers. */
  readonly larger: string
  /** The end of a subquery that locks its rows. Rows are locked in a fixed order, so that two gateways do not wait for each other in a circle. */
  readonly forUpdate: string
  /** As `forUpdate`, but leaves out the rows that another gateway has locked. */
  readonly skipLocked: string
  /**
   * A subquery with a row for each run: seq, delivery_seq, created_at, ended_at, state, attempts, failing_since, agent, and of its step `run` the model and
   * the usage: input, output, cached, written, cost. A job that is done without this step is no run, and neither is a task that has none.
   */
  readonly runs: string
  /** Whether the job `j` has neither a counted attempt nor a recorded step. */
  readonly isUntouched: string
  /** The condition for the messages of the session with the agent `$1` and the key `$2`. */
  readonly ofSession: string
}

type Columns = Readonly<Record<string, 'bigint' | 'text'>>

export function* run(sql: string, ...params: readonly SqlValue[]): Script<Row[]> {
  return yield { sql, params }
}

/** The clock of the store, in milliseconds since the epoch. */
export function* readNow(): Script<number> {
  const [row] = yield* run('SELECT $now AS now')
  return Number(row?.['now'])
}

/** The number of rows that a statement with RETURNING changed. */
export function* countChanged(sql: string, ...params: readonly SqlValue[]): Script<number> {
  return (yield* run(`${sql} RETURNING 1 AS one`, ...params)).length
}
