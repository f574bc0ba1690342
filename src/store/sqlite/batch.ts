// Executes a batch in one transaction, so with one fsync. If the disk fails, the whole batch fails; if an operation is
// invalid, only that operation fails.
import { completeCatalog, extendCatalog, shortenCatalog } from './catalog.ts'
import { append, appendAll, drop, settle } from './deliveries.ts'
import { Problem } from '../../core/model/problem.ts'
import { type Database, classifyError } from './driver.ts'
import { endJob } from './endings.ts'
import { dialect, runScript } from './flow.ts'
import { reserve } from './budgets.ts'
import { claim, report } from './jobs.ts'
import type { OperationFailure, Operation, OperationOf, OperationResult, Results } from './operations.ts'
import { join, leave } from './nodes.ts'
import { buildScript, createPlainWrites } from '../plain.ts'
import { limitSealed, quarantineColumns } from '../quarantine.ts'
import { prune, sweep } from './sweep.ts'
import { addTask, requeue } from './tasks.ts'
import { takeWaitingChange } from './waiting-bytes.ts'

type Batch = {
  readonly db: Database
  readonly operations: readonly Operation[]
  readonly beforeCommit?: () => void
  /** True: the batch may also extend the catalog. */
  readonly isBulk: boolean
}

type Committed = { readonly outcomes: readonly OperationResult[]; readonly waitingChange: number }

/** Throws if the commit failed, or if its result is unknown. */
export function runBatch({ db, operations, beforeCommit, isBulk }: Batch): Committed {
  const inTransaction = (perform: (operation: Operation) => OperationResult) => {
    db.exec('BEGIN IMMEDIATE')
    try {
      const outcomes = operations.map(perform)
      if (isBulk) extendCatalog(db)
      const waitingChange = takeWaitingChange(db)
      beforeCommit?.()
      db.exec('COMMIT')
      return { outcomes, waitingChange }
    } catch (error) {
      // after some errors, such as a full disk, SQLite has already rolled back
      if (db.inTransaction) db.exec('ROLLBACK')
      throw error
    }
  }
  try {
    return inTransaction((operation) => ({ ok: true, value: perform(db, operation) }))
  } catch (error) {
    if (classifyError(error) !== undefined) throw error
    return inTransaction((operation) => performAlone(db, operation))
  }
}

/** Why a batch failed, for the senders of its operations and for the operator. */
export function toOperationFailure(error: unknown): OperationFailure {
  if (error instanceof Problem) return { code: error.code, detail: error.message, cause: '' }
  // an error of the system comes from the folder of the file; every other error comes from a statement
  const isOfSystem = error instanceof Error && 'syscall' in error
  const what = classifyError(error)?.what ?? (isOfSystem ? 'its file cannot be opened' : 'SQLite refuses a statement')
  return { code: 'store-unavailable', detail: `The store cannot write: ${what}.`, cause: String(error) }
}

function performAlone(db: Database, operation: Operation): OperationResult {
  db.exec('SAVEPOINT alone')
  try {
    const value = perform(db, operation)
    db.exec('RELEASE alone')
    return { ok: true, value }
  } catch (error) {
    if (classifyError(error) !== undefined) throw error
    db.exec('ROLLBACK TO alone; RELEASE alone')
    return { ok: false, cause: String(error) }
  }
}

type Performers = {
  readonly [Kind in Operation['kind']]: (db: Database, operation: OperationOf<Kind>) => Results[Kind]
}

const performers: Performers = {
  append,
  appendAll,
  settle,
  plain: performPlain,
  quarantine,
  drop,
  addTask,
  claim,
  report,
  requeue,
  end: endJob,
  reserve,
  join,
  leave,
  sweep: (db, operation) => deleteRows(db, () => sweep(db, operation)),
  prune: (db, operation) => deleteRows(db, () => prune(db, operation)),
  probe: (db) => void db.exec(`PRAGMA user_version = ${Number(db.get('PRAGMA user_version')?.['user_version'])}`),
}

function perform<Kind extends Operation['kind']>(db: Database, operation: OperationOf<Kind>): Results[Kind] {
  // as: TypeScript does not see that an operation of a kind has this kind
  return performers[operation.kind as Kind](db, operation)
}

const plainWrites = createPlainWrites(dialect)

function performPlain(db: Database, { name, args, at }: OperationOf<'plain'>): unknown {
  const perform = () => runScript(db, buildScript(plainWrites, name, args), at)
  return name === 'trimTranscript' ? deleteRows(db, perform) : perform()
}

const insertSealed = `INSERT INTO quarantine (${quarantineColumns.join(', ')})
  VALUES (${quarantineColumns.map(() => '?').join(', ')}) ON CONFLICT (id) DO NOTHING`

function quarantine(db: Database, { requests, bounds, at }: OperationOf<'quarantine'>): undefined {
  for (const values of requests) db.run(insertSealed, ...values)
  runScript(db, limitSealed(bounds, dialect), at)
}

/**
 * Completes the catalog first: the catalog finds the rows that belong to a deleted row, and shows that a session with a new event is not old.
 */
function deleteRows<Result>(db: Database, work: () => Result): Result {
  completeCatalog(db)
  const result = work()
  shortenCatalog(db)
  return result
}
