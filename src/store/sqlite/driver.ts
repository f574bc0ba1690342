// The only file that imports the SQLite library. The library has the API of `node:sqlite`, and also runs on Node 20.
import { DatabaseSync, type StatementSync } from '@photostructure/sqlite'
import type { Row, SqlValue } from '../rows.ts'
import { toStoredText } from '../rules.ts'

export type { Row, SqlValue }

/** One connection. Each statement is prepared once and cached by its text, so SQL texts must be constant. */
export type Database = {
  run(sql: string, ...values: readonly SqlValue[]): { readonly changes: number; readonly seq: number }
  get(sql: string, ...values: readonly SqlValue[]): Row | undefined
  all(sql: string, ...values: readonly SqlValue[]): Row[]
  exec(sql: string): void
  readonly inTransaction: boolean
  /** The library keeps file descriptors until its statements are garbage-collected, so do not open and close in a loop. */
  close(): void
}

/** Opens a file. Throws SQLite's error. `busyMs`: how long a statement waits for the lock of another connection. */
export function openDatabase(file: string, options: { readOnly: boolean; busyMs: number }): Database {
  const connection = new DatabaseSync(file, {
    readOnly: options.readOnly,
    timeout: options.busyMs,
    // on by default; without an index in each child, the deletion of a delivery would read all jobs
    enableForeignKeyConstraints: false,
  })
  const statements = new Map<string, InstanceType<typeof StatementSync>>()
  const prepare = (sql: string) => {
    const known = statements.get(sql)
    if (known) return known
    const statement = connection.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
  return {
    run: (sql, ...values) => {
      const { changes, lastInsertRowid } = prepare(sql).run(...toStoredValues(values))
      return { changes, seq: Number(lastInsertRowid) }
    },
    get: (sql, ...values) => prepare(sql).get(...toStoredValues(values)),
    all: (sql, ...values) => prepare(sql).all(...toStoredValues(values)),
    exec: (sql) => connection.exec(sql),
    get inTransaction() {
      return connection.isTransaction
    },
    close: () => connection.close(),
  }
}

/** Facts about a connection, for `hookloom doctor` and /readyz. */
export function readFacts(db: Database): Readonly<Record<string, string | number>> {
  const read = (sql: string) => Object.values(db.get(sql) ?? {}).map(String)[0] ?? ''
  return {
    journal_mode: read('PRAGMA journal_mode'),
    synchronous: Number(read('PRAGMA synchronous')),
    sqlite: read('SELECT sqlite_version()'),
  }
}

/** Texts in conditions are converted in the same way as stored texts, so that they match. Few calls have a text with a NUL. */
function toStoredValues(values: readonly SqlValue[]): readonly SqlValue[] {
  return values.some(hasNul) ? values.map((value) => (hasNul(value) ? toStoredText(value) : value)) : values
}

const hasNul = (value: SqlValue): value is string => typeof value === 'string' && value.includes('\0')

/** A failure of the disk or the file. `reopen`: opening the file again may help. */
type Trouble = { readonly what: string; readonly reopen: boolean }

const locked = { what: 'its file is locked by another program', reopen: false }
const full = { what: 'the disk is full', reopen: false }

const forbidden = { what: 'its folder cannot be written', reopen: true }

/**
 * The primary result codes for failures of the disk, the file or its locks, with SQLite's messages
 * (sqlite.org/rescode.html). An error that `all` throws has only the message.
 */
const troubles: readonly (readonly [code: number, words: string, trouble: Trouble])[] = [
  [5, 'database is locked', locked],
  [6, 'database table is locked', locked],
  [7, 'out of memory', { what: 'there is no memory left', reopen: false }],
  [8, 'attempt to write a readonly database', { what: 'its file cannot be written', reopen: true }],
  [10, 'disk I/O error', { what: 'the disk failed', reopen: true }],
  [11, 'database disk image is malformed', { what: 'its file is damaged', reopen: true }],
  [13, 'database or disk is full', full],
  [14, 'unable to open database file', { what: 'its file cannot be opened', reopen: true }],
  [15, 'locking protocol', locked],
  [26, 'file is not a database', { what: 'its file is not a database', reopen: true }],
]

/** System errors from files next to the database. */
const systemTroubles = new Map<unknown, Trouble>([
  ['ENOSPC', full],
  ['EDQUOT', full],
  ['EACCES', forbidden],
  ['EPERM', forbidden],
  ['EROFS', forbidden],
])

/** Another connection has the lock: nothing was written. */
export function isLocked(error: unknown): boolean {
  return classifyError(error) === locked
}

/** The failure of the disk or the file; undefined if the error is about the statement. */
export function classifyError(error: unknown): Trouble | undefined {
  if (!(error instanceof Error)) return undefined
  const { message, code, errcode }: { message: string; code?: unknown; errcode?: unknown } = error
  const isSame = ([primary, words]: (typeof troubles)[number]) =>
    typeof errcode === 'number' ? errcode % 256 === primary : message === words
  return systemTroubles.get(code) ?? troubles.find(isSame)?.[2]
}
