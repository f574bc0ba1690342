// One process owns a store. The owner holds an exclusive SQLite lock on a file next to the database, which the operating
// system releases if the process dies.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Problem } from '../../core/model/problem.ts'
import { openDatabase } from './driver.ts'
import { ensurePrivate, readInode, toLockFile, describeFile } from './files.ts'

export type StoreLock = {
  /** True: the lock file was deleted or replaced, so another process could lock the new file. */
  hasMoved(): boolean
  release(): void
}

/** Throws `store-locked` with the owner's process id, or the system's error for the folder. */
export function takeLock(file: string): StoreLock {
  const lockFile = toLockFile(file)
  const pidFile = `${file}.pid`
  ensurePrivate(lockFile)
  const db = openDatabase(lockFile, { readOnly: false, busyMs: 0 })
  try {
    db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!isBusy(error)) throw error
    throw new Problem(
      'store-locked',
      `${describeFile(file)} is in use by another gateway (pid ${readPid(pidFile)}). ` +
        'Stop it, or give this one another store.file.',
      { retryAfterSeconds: 5 },
    )
  }
  const inode = readInode(lockFile)
  writePid(pidFile)
  return {
    hasMoved: () => readInode(lockFile) !== inode,
    release: () => {
      rmSync(pidFile, { force: true })
      db.close()
    },
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5
}

function writePid(pidFile: string): void {
  try {
    rmSync(pidFile, { force: true })
    // wx: never follows a link
    writeFileSync(pidFile, `${process.pid}\n`, { flag: 'wx', mode: 0o600 })
  } catch {
    // the lock works without this file, and a store on a full disk must open so that it can be emptied
  }
}

function readPid(pidFile: string): string {
  try {
    return readFileSync(pidFile, 'utf8').trim() || 'unknown'
  } catch {
    return 'unknown'
  }
}
