// Commits on the calling thread, while nothing else waits and the disk is fast. A lone request then waits for one commit: waking
// the writer thread and being woken by it takes several times as long. Every other operation goes to the writer thread.
import { runBatch, toOperationFailure } from './batch.ts'
import { type Database, isLocked, openDatabase } from './driver.ts'
import { readInodes } from './files.ts'
import type { BatchResult, Inodes, Operation } from './operations.ts'
import type { PlainWrite } from '../plain.ts'
import { trackWaitingBytes } from './waiting-bytes.ts'

type DirectWriter = {
  /**
   * Commits the operations on this thread. Returns undefined, and writes nothing, if the writer thread must execute the operations. Never throws.
   */
  run(operations: readonly Operation[]): BatchResult | undefined
  /** Called for each commit of the writer thread, with the milliseconds that it took. */
  noteCommit(tookMs: number): void
  /** Called each time that the writer thread opens the file. */
  noteOpened(inodes: Inodes): void
  /** Closes the file. Nothing is written here until the writer thread has committed again. */
  reset(): void
}

/** The share of the newest commit in the average. */
const share = 0.2
/** The maximum number of successive commits on this thread: only the writer thread checkpoints, and each commit adds some pages to the WAL. */
const maxInARow = 256

/**
 * The operations that always go to the writer thread: deletions and `appendAll` may write many rows; no answer waits for repetitions, sealed requests or
 * refusals; and a probe tests that thread.
 */
const neverHere: ReadonlySet<Operation['kind'] | PlainWrite> = new Set([
  ...(['sweep', 'prune', 'probe', 'appendAll', 'quarantine'] as const),
  ...(['pruneAudit', 'trimTranscript', 'noteRepeats', 'noteRefusals', 'deleteSealed'] as const),
])

/** `fastMs`: commits happen here only while they take less than this on average, because this thread must not wait for a slow disk. */
export function createDirectWriter(file: string, fastMs: number): DirectWriter {
  let db: Database | undefined
  let inodes: Inodes | undefined
  let averageMs: number | undefined
  let left = 0

  function reset(): void {
    left = 0
    db?.close()
    db = undefined
  }

  /** SQLite writes to a deleted file without an error. The writer thread opens the new one. */
  function isSameFile(): boolean {
    const { database, lock } = readInodes(file)
    return database !== undefined && database === inodes?.database && lock === inodes.lock
  }

  return {
    run(operations) {
      if (left === 0 || averageMs === undefined || averageMs > fastMs) return undefined
      if (operations.some((each) => neverHere.has(each.kind === 'plain' ? each.name : each.kind))) return undefined
      left -= 1
      const startedAt = performance.now()
      try {
        if (!isSameFile()) return void reset()
        db ??= openForWriting(file)
        const result = runBatch({ db, operations, isBulk: false })
        const tookMs = performance.now() - startedAt
        // after one slow commit, the writer thread commits until the disk is fast again
        averageMs = tookMs > fastMs ? Math.max(averageMs, tookMs) : averageMs + share * (tookMs - averageMs)
        return result
      } catch (error) {
        reset()
        return isLocked(error) ? undefined : { failure: toOperationFailure(error) }
      }
    },
    noteCommit(tookMs) {
      left = maxInARow
      averageMs = averageMs === undefined ? tookMs : averageMs + share * (tookMs - averageMs)
    },
    noteOpened(opened) {
      reset()
      inodes = opened
    },
    reset,
  }
}

function openForWriting(file: string): Database {
  const db = openDatabase(file, { readOnly: false, busyMs: 0 })
  try {
    db.exec('PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0')
    trackWaitingBytes(db)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}
