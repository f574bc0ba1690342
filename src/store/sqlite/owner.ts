// The connection of the writer thread. It opens on first use, checks before each batch that the file is still the same one, and opens the
// file again after a failure.
import { dirname } from 'node:path'
import { type Database, openDatabase, readFacts } from './driver.ts'
import { ensurePrivate, makeFolder, readInode, readInodes, describeFile, pageBytes } from './files.ts'
import { requeueOrphans } from './jobs.ts'
import { type StoreLock, takeLock } from './lock.ts'
import { migrate } from './migrations.ts'
import type { OpenedFile, WriterOptions } from './operations.ts'
import { trackWaitingBytes, sumWaitingBytes } from './waiting-bytes.ts'

/** A commit checkpoints when the WAL has this many bytes. Rare long stalls raise the p99 less than frequent short ones. */
const checkpointBytes = 64 * 1024 * 1024

const opensPerSecond = 10

type WriterConnection = {
  /** The open database; `opened` is set if this call opened it. Throws a Problem, or an error of the system or of SQLite. */
  acquire(): { db: Database; opened: OpenedFile | undefined }
  /** Closes the database, at most once a second, so that the next `acquire` opens it again. Keeps the lock. */
  reset(): void
  close(): void
}

export function createWriterConnection(options: WriterOptions): WriterConnection {
  const { file } = options
  let { recoverAt } = options
  let lock: StoreLock | undefined
  let nextReset = 0
  let failedOpens: { count: number; since: number; last?: unknown } = { count: 0, since: 0 }
  let open: { db: Database; inode: number | undefined } | undefined
  let lastInode: number | undefined

  const closeDatabase = () => {
    const was = open
    open = undefined
    was?.db.close()
  }
  const release = () => {
    closeDatabase()
    lock?.release()
    lock = undefined
  }
  /** A failed open leaves file descriptors open for a while, so a busy gateway must not try with every batch. */
  const openOnce = () => {
    if (performance.now() - failedOpens.since > 1000) failedOpens = { count: 0, since: performance.now() }
    if (failedOpens.count >= opensPerSecond) throw failedOpens.last
    try {
      const db = openWritable(options, (opened) => {
        if (recoverAt !== undefined) requeueOrphans(opened, recoverAt)
      })
      recoverAt = undefined
      return db
    } catch (error) {
      failedOpens = { ...failedOpens, count: failedOpens.count + 1, last: error }
      throw error
    }
  }
  return {
    acquire: () => {
      // SQLite writes to a deleted file without an error, and those commits are lost
      if (lock?.hasMoved()) release()
      if (open && open.inode !== readInode(file)) closeDatabase()
      if (open) return { db: open.db, opened: undefined }
      makeFolder(dirname(file))
      lock ??= takeLock(file)
      const db = openOnce()
      const inode = readInode(file)
      const isReplacement = lastInode !== undefined && lastInode !== inode
      open = { db, inode }
      lastInode = inode
      const waitingBytes = sumWaitingBytes(db)
      return { db, opened: { facts: readFacts(db), inodes: readInodes(file), waitingBytes, isReplacement } }
    },
    reset: () => {
      if (performance.now() < nextReset) return
      nextReset = performance.now() + 1000
      closeDatabase()
    },
    close: () => {
      // while a reader is open, this connection is not the last one, so SQLite does not checkpoint when it closes
      if (lock && open) checkpoint(open.db)
      release()
    },
  }
}

function checkpoint(db: Database): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // the WAL is durable without a checkpoint
  }
}

function openWritable({ file, maxPages }: WriterOptions, prepare: (db: Database) => void): Database {
  ensurePrivate(file)
  const db = openDatabase(file, { readOnly: false, busyMs: 2000 })
  try {
    db.exec(`PRAGMA page_size = ${pageBytes}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
    const pages = checkpointBytes / Number(db.get('PRAGMA page_size')?.['page_size'] ?? pageBytes)
    db.exec(`PRAGMA wal_autocheckpoint = ${pages}; PRAGMA journal_size_limit = ${checkpointBytes}`)
    if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`)
    migrate(db, describeFile(file))
    db.exec('BEGIN IMMEDIATE')
    prepare(db)
    db.exec('COMMIT')
    trackWaitingBytes(db)
    return db
  } catch (error) {
    // a closed connection lives until it is garbage-collected: its lock would block the next connection
    if (db.inTransaction) db.exec('ROLLBACK')
    db.close()
    throw error
  }
}
