// The writer's hold on the file: opened late, checked before each batch, let go on trouble and opened again by the next batch.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Database, openDatabase, toFacts } from './driver.ts'
import { ensurePrivate, toInode, toShownName } from './files.ts'
import { recover } from './jobs.ts'
import { type StoreLock, takeLock } from './lock.ts'
import { migrate } from './migrations.ts'
import type { Opened, WriterOptions } from './operations.ts'

/** Pages of 4 kB in the WAL after which a commit checkpoints: 64 MB. Rare long stalls hurt the p99 less than frequent short ones. */
const checkpointPages = 16_384

const opensPerSecond = 10

export type Owner = {
  /** The open database; `opened` when this call had to open it. Throws a Problem, or what the system or SQLite say. */
  hold(): { db: Database; opened: Opened | undefined }
  /** Closes the database, so that the next hold() starts afresh; once a second at the most. The lock stays. */
  letGo(): void
  close(): void
}

export function createOwner(options: WriterOptions): Owner {
  const { file } = options
  let { recoverAt } = options
  let lock: StoreLock | undefined
  let nextLetGo = 0
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
  /** An open that failed half-way leaves descriptors behind for a while: not with every batch of a busy gateway. */
  const attempt = () => {
    if (performance.now() - failedOpens.since > 1000) failedOpens = { count: 0, since: performance.now() }
    if (failedOpens.count >= opensPerSecond) throw failedOpens.last
    try {
      const db = openWritable(options, (opened) => {
        if (recoverAt !== undefined) recover(opened, recoverAt)
      })
      recoverAt = undefined
      return db
    } catch (error) {
      failedOpens = { ...failedOpens, count: failedOpens.count + 1, last: error }
      throw error
    }
  }
  return {
    hold: () => {
      // SQLite goes on writing into a deleted file without a word, and what it acknowledges is lost
      if (lock?.hasMoved()) release()
      if (open && open.inode !== toInode(file)) closeDatabase()
      if (open) return { db: open.db, opened: undefined }
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      lock ??= takeLock(file)
      const db = attempt()
      const inode = toInode(file)
      const isAnother = lastInode !== undefined && lastInode !== inode
      open = { db, inode }
      lastInode = inode
      return { db, opened: { facts: toFacts(db), isAnother } }
    },
    letGo: () => {
      if (performance.now() < nextLetGo) return
      nextLetGo = performance.now() + 1000
      closeDatabase()
    },
    close: () => {
      // what a reader still has open would keep the WAL from being folded in
      if (lock && open) foldIn(open.db)
      release()
    },
  }
}

function foldIn(db: Database): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // everything in the WAL is durable where it is
  }
}

function openWritable({ file, maxPages }: WriterOptions, prepare: (db: Database) => void): Database {
  ensurePrivate(file)
  const db = openDatabase(file, { readOnly: false, busyMs: 2000 })
  try {
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
      PRAGMA wal_autocheckpoint = ${checkpointPages}; PRAGMA journal_size_limit = ${checkpointPages * 4096}`)
    if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`)
    migrate(db, toShownName(file))
    db.exec('BEGIN IMMEDIATE')
    prepare(db)
    db.exec('COMMIT')
    return db
  } catch (error) {
    // a connection that is closed lives on for a while, and would keep its lock on the file from the next one
    if (db.inTransaction) db.exec('ROLLBACK')
    db.close()
    throw error
  }
}
