// Sets the settings that a transaction begins with, and finds settings that would lose deliveries or prevent writing. A gateway looks for them
// on each new connection and once a second, because they may change while it runs.
import type { Row } from '../rows.ts'

/**
 * The server ends a transaction that waits too long, because a gateway that stops in the middle of a transaction keeps its rows locked for the
 * other gateways. The limits of the server are shorter than `answerMs`, so that no call that was refused is committed later. They are set for each
 * transaction.
 */
export type Limits = {
  /** The limit between two statements of a transaction. It is less than `lockMs`, so that calls that wait for a stopped gateway are still served. */
  readonly idleMs: number
  /** The limit for one lock. */
  readonly lockMs: number
  /** The limit for one statement of a transaction. */
  readonly statementMs: number
  /** The limit of this process for the answer to one statement. After it, the connection is destroyed: the network may have lost the answer. */
  readonly answerMs: number
}

/** Small enough that after an outage, the last limit ends within ten seconds. */
export const limits: Limits = { idleMs: 4_000, lockMs: 6_000, statementMs: 7_000, answerMs: 8_000 }

/** The limits for statements that may visit many rows. */
export function extendLimits(usual: Limits): Limits {
  return { ...usual, statementMs: Math.max(25_000, usual.statementMs), answerMs: Math.max(30_000, usual.answerMs) }
}

/**
 * Makes the commit of a transaction wait for the disk, whatever the settings of the server, the database and the user are. A setting that
 * already waits for the disk is not changed.
 */
export const setDurable = `set_config('synchronous_commit',
  CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)`

/**
 * The statement that begins a transaction, in one round trip. Each statement gets its own snapshot, because it must see the rows that were
 * written before it got a lock.
 */
export function toBeginSql(readOnly: boolean, own: Limits | undefined): string {
  const begin = `BEGIN ISOLATION LEVEL READ COMMITTED${readOnly ? ' READ ONLY' : `; SELECT ${setDurable}`}`
  if (own === undefined) return begin
  const { idleMs, lockMs, statementMs } = own
  return `${begin}; SET LOCAL idle_in_transaction_session_timeout = ${idleMs}; SET LOCAL lock_timeout = ${lockMs};
    SET LOCAL statement_timeout = ${statementMs}`
}

type Settings = {
  readonly version: string
  /** A standby, or a user or a database that may only read. */
  readonly isReadOnly: boolean
  /** The reasons why a gateway must not use the database as this user, each with the next step. */
  readonly faults: readonly string[]
}

const selectSettings = `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
  current_setting('default_transaction_isolation') AS isolation,
  (pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean)::integer AS is_read_only`

export async function readSettings(query: (sql: string) => Promise<Row[]>): Promise<Settings> {
  const [row = {}] = await query(selectSettings)
  return { version: String(row['version']), isReadOnly: row['is_read_only'] === 1, faults: findFaults(row) }
}

export function findFaults({ fsync, isolation }: Row): string[] {
  return [
    ...(fsync === 'off'
      ? ['fsync is off, so a power cut destroys the database. Set fsync = on in postgresql.conf.']
      : []),
    ...(isolation === 'read committed'
      ? []
      : [
          `default_transaction_isolation is "${String(isolation)}" for this user, and hookloom needs "read committed". ` +
            "Set it, for example: ALTER ROLE … SET default_transaction_isolation = 'read committed'.",
        ]),
  ]
}
