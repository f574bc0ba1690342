// Executes a batch in one transaction, so with one fsync. If the disk fails, the whole batch fails; if an operation is
// invalid, only that operation fails.
import { append, appendAll, drop, forget, settle } from './deliveries.ts'
import { Problem } from '../../model/problem.ts'
import { type Database, toTrouble } from './driver.ts'
import { addTask, claim, extend, report, requeue } from './jobs.ts'
import type { OperationFailure, Operation, OperationResult, Results } from './operations.ts'
import { join, leave } from './nodes.ts'
import { noteRepeats } from './repeats.ts'
import { forgetTouchedSessions, touchSessions } from './sessions.ts'
import { prune, sweep } from './sweep.ts'

type Batch = { db: Database; operations: readonly Operation[]; beforeCommit: () => void }

/** Throws if the commit failed, or if its result is unknown. */
export function runBatch({ db, operations, beforeCommit }: Batch): readonly OperationResult[] {
  const inTransaction = (perform: (operation: Operation) => OperationResult) => {
    db.exec('BEGIN IMMEDIATE')
    forgetTouchedSessions(db)
    try {
      const outcomes = operations.map(perform)
      touchSessions(db)
      beforeCommit()
      db.exec('COMMIT')
      return outcomes
    } catch (error) {
      // after some errors, such as a full disk, SQLite has already rolled back
      if (db.inTransaction) db.exec('ROLLBACK')
      throw error
    }
  }
  try {
    return inTransaction((operation) => ({ ok: true, value: perform(db, operation) }))
  } catch (error) {
    if (toTrouble(error) !== undefined) throw error
    return inTransaction((operation) => performAlone(db, operation))
  }
}

/** Why a batch failed, for the senders of its operations and for the operator. */
export function describeBatchFailure(error: unknown): OperationFailure {
  if (error instanceof Problem) return { code: error.code, detail: error.message, cause: '' }
  const what = toTrouble(error)?.what ?? 'its file cannot be opened'
  return { code: 'store-unavailable', detail: `The store cannot write: ${what}.`, cause: String(error) }
}

function performAlone(db: Database, operation: Operation): OperationResult {
  db.exec('SAVEPOINT alone')
  try {
    forgetTouchedSessions(db)
    const value = perform(db, operation)
    touchSessions(db)
    db.exec('RELEASE alone')
    return { ok: true, value }
  } catch (error) {
    if (toTrouble(error) !== undefined) throw error
    db.exec('ROLLBACK TO alone; RELEASE alone')
    forgetTouchedSessions(db)
    return { ok: false, cause: String(error) }
  }
}

function perform(db: Database, operation: Operation): Results[Operation['kind']] {
  switch (operation.kind) {
    case 'append':
      return append(db, operation)
    case 'appendAll':
      return appendAll(db, operation)
    case 'settle':
      return settle(db, operation)
    case 'forget':
      return forget(db, operation)
    case 'noteRepeats':
      return noteRepeats(db, operation)
    case 'drop':
      return drop(db, operation)
    case 'addTask':
      return addTask(db, operation)
    case 'claim':
      return claim(db, operation)
    case 'report':
      return report(db, operation)
    case 'extend':
      return extend(db, operation)
    case 'requeue':
      return requeue(db, operation)
    case 'join':
      return join(db, operation)
    case 'leave':
      return leave(db, operation)
    case 'sweep':
      return sweep(db, operation)
    case 'prune':
      // a session that got an event in this batch is not old
      touchSessions(db)
      return prune(db, operation)
    case 'probe':
      return void db.exec(`PRAGMA user_version = ${Number(db.get('PRAGMA user_version')?.['user_version'])}`)
  }
}
