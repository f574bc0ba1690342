// The one door to the SQLite library: the `node:sqlite` API, which Node 20 has as a package.
import { DatabaseSync, type StatementSync } from '@photostructure/sqlite'

export type SqlValue = string | number | Uint8Array | null
export type Row = Readonly<Record<string, SqlValue>>

/** One connection. Statements are prepared once each, so pass constant SQL. */
export type Database = {
  run(sql: string, ...values: readonly SqlValue[]): { readonly changes: number; readonly seq: number }
  get(sql: string, ...values: readonly SqlValue[]): Row | undefined
  all(sql: string, ...values: readonly SqlValue[]): Row[]
  exec(sql: string): void
  readonly inTransaction: boolean
  close(): void
}

/** Opens a file, or throws what SQLite says. `busyMs`: how long a statement waits for another's lock. */
export function openDatabase(file: string, options: { readOnly: boolean; busyMs: number }): Database {
  const connection = new DatabaseSync(file, { readOnly: options.readOnly, timeout: options.busyMs })
  const statements = new Map<string, InstanceType<typeof StatementSync>>()
  const prepared = (sql: string) => {
    const known = statements.get(sql)
    if (known) return known
    const statement = connection.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
  return {
    run: (sql, ...values) => {
      const { changes, lastInsertRowid } = prepared(sql).run(...values)
      return { changes, seq: Number(lastInsertRowid) }
    },
    get: (sql, ...values) => prepared(sql).get(...values),
    all: (sql, ...values) => prepared(sql).all(...values),
    exec: (sql) => connection.exec(sql),
    get inTransaction() {
      return connection.isTransaction
    },
    close: () => connection.close(),
  }
}

/** Primary result codes that speak of the disk, the file or its locks, and what to tell of them (sqlite.org/rescode.html). */
const troubles = new Map([
  [5, 'its file is locked by another program'],
  [6, 'its file is locked by another program'],
  [7, 'there is no memory left'],
  [8, 'its file cannot be written'],
  [10, 'the disk failed'],
  [11, 'its file is damaged'],
  [13, 'the disk is full'],
  [14, 'its file cannot be opened'],
  [15, 'its file is locked by another program'],
  [26, 'its file is not a database'],
])

/** What is wrong with the disk or the file; undefined when the statement itself is at fault. */
export function toTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined
  return troubles.get(error.errcode % 256)
}
