// The writer's hold on the file: opened late, checked before each batch, let go on trouble and opened again by the next batch.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Database, openDatabase } from './driver.ts'
import { recover } from './jobs.ts'
import { type StoreLock, takeLock, toInode, toShownName } from './lock.ts'
import { migrate } from './migrations/migrate.ts'
import type { OpenFacts, WriterOptions } from './operations.ts'

/** Pages of 4 kB in the WAL after which a commit checkpoints: 64 MB. Rare long stalls hurt the p99 less than frequent short ones. */
const checkpointPages = 16_384

export type Owner = {
  /** The open database; `opened` when this call had to open it. Throws a Problem, or what the system or SQLite say. */
  hold(): { db: Database; opened: OpenFacts | undefined }
  /** Closes the database, so that the next hold() starts afresh. The lock stays. */
  letGo(): void
  close(): void
}

export function createOwner(options: WriterOptions): Owner {
  const { file } = options
  let { recoverAt } = options
  let lock: StoreLock | undefined
  let open: { db: Database; inode: number | undefined } | undefined

  const letGo = () => {
    const was = open
    open = undefined
    was?.db.close()
  }
  const release = () => {
    letGo()
    lock?.release()
    lock = undefined
  }
  return {
    hold: () => {
      // SQLite goes on writing into a deleted file without a word, and what it acknowledges is lost
      if (lock?.hasMoved()) release()
      if (open && open.inode !== toInode(file)) letGo()
      if (open) return { db: open.db, opened: undefined }
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      lock ??= takeLock(file)
      const db = openWritable(options)
      open = { db, inode: toInode(file) }
      if (recoverAt !== undefined) recover(db, recoverAt)
      recoverAt = undefined
      return { db, opened: toFacts(db) }
    },
    letGo,
    close: release,
  }
}

function openWritable({ file, maxPages }: WriterOptions): Database {
  const db = openDatabase(file, { readOnly: false, busyMs: 2000 })
  try {
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
      PRAGMA wal_autocheckpoint = ${checkpointPages}; PRAGMA journal_size_limit = ${checkpointPages * 4096}`)
    if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`)
    migrate(db, toShownName(file))
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function toFacts(db: Database): OpenFacts {
  const read = (sql: string) => Object.values(db.get(sql) ?? {}).map(String)[0] ?? ''
  return {
    journal_mode: read('PRAGMA journal_mode'),
    synchronous: Number(read('PRAGMA synchronous')),
    sqlite: read('SELECT sqlite_version()'),
  }
}
