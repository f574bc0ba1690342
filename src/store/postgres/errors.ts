// The meaning of errors of Postgres and of the connection: for this program, for the operator, and for the log, which gets no values of
// rows.
import { Problem } from '../../core/model/problem.ts'

/** A server that became read-only, in a failover for example. */
export const readOnlyCode = '25006'
/** The server has reached its maximum number of connections. */
export const tooManyCode = '53300'

/** Serialization failure, deadlock, and a unique index that another transaction filled first. */
const conflicts: ReadonlySet<unknown> = new Set(['40001', '40P01', '23505'])

export function isConflict(error: unknown): boolean {
  return conflicts.has(readSqlState(error))
}

export function readSqlState(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/**
 * True: Postgres refused the statement, and the connection works. The classes left out are about the connection, the user, the
 * server, and a database that lacks a table or a permission. 25006 is a server that became read-only in a failover, 25P03 a transaction
 * that was idle for too long, and 55P03 a lock that was not given in time.
 */
export function isStatementError(error: unknown): boolean {
  const code = readSqlState(error)
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !/^(08|25006|25P03|28|3D|42|53|55P03|57|58|XX)/.test(code)
}

/** True: the connection, or the server behind it, may be gone. False for a statement that was slow or waited for a lock. */
export function isConnectionError(error: unknown): boolean {
  const code = readSqlState(error)
  return code === undefined || !/^[0-9A-Z]{5}$/.test(code) || /^(08|25006|28|3D|53300|57P)/.test(code)
}

/** No connection became free in time, though the database answers. */
export class PoolExhausted extends Error {}

/** Why a database cannot be used, and the next step. The messages of Postgres are left out: some quote values. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there. Start Postgres, or correct store.url',
  ENOTFOUND: 'its host name is unknown. Correct store.url',
  EAI_AGAIN: 'its host name cannot be looked up now',
  ENOENT: 'there is no such socket. Start Postgres, or correct store.url',
  [readOnlyCode]: 'it is read-only. Wait for the end of the failover, or correct store.url to name the primary',
  '28P01': 'it refuses the password of the user in store.url',
  '28000': 'it refuses the user in store.url. Check pg_hba.conf',
  '3D000': 'the database does not exist. Create it, or correct store.url',
  '3F000': 'no schema of the search_path exists. Create one',
  '42501': 'the user in store.url may not use it. Grant the user CREATE on its schema, and all rights on its tables',
  '42P01': 'a table of the store is missing. Restore the database from a backup',
  [tooManyCode]: 'it has no free connection. Increase max_connections, or put pgBouncer in front',
  '55P03':
    'a lock was held for too long. Another gateway may be stuck, or a backup runs while the tables are to be changed',
  '57014': 'a statement took too long, or was cancelled',
  '57P03': 'it is starting or shutting down',
}

export function describeError(error: unknown): string {
  const code = readSqlState(error)
  if (error instanceof Error && 'syscall' in error && error.syscall === 'open') {
    return `a file that store.url names, such as sslrootcert, cannot be read (${code}). Correct its path or its permissions`
  }
  if (code !== undefined) return reasons[code] ?? `it reports ${code}`
  if (error instanceof PoolExhausted) {
    return 'all connections of this gateway are busy. Its statements take too long: look at the load and the locks of the database'
  }
  const isLate = error instanceof Error && /timeout/i.test(error.message)
  return isLate ? 'it does not answer in time' : 'the connection was lost'
}

/** Postgres refused one statement, and the others may work. The message may be logged: it quotes no value of a row. */
export class RefusedStatement extends Error {
  constructor(error: unknown) {
    super(`SQLSTATE ${readSqlState(error)}`)
  }
}

/** An error for the log, in place of one whose message may name the user of the database. */
export function toCause(error: unknown): Error {
  return new Error(`${readSqlState(error) ?? 'no code'}: ${describeError(error)}`)
}

/** The error for a setting of the server or of the user that would lose deliveries. */
export class UnfitDatabase extends Problem {
  constructor(detail: string) {
    super('config-invalid', detail)
  }
}
