// A read-only connection. It opens the file on first use, and again after the file or the disk failed.
import { existsSync } from 'node:fs'
import { type Database, openDatabase, classifyError } from './driver.ts'
import { describeFile } from './files.ts'
import { readSchemaVersion } from './migrations.ts'
import { withCurrentTables } from './older.ts'
import { storeUnavailable } from '../rules.ts'

export type ReadConnection = {
  /** Runs a query; returns `empty` if the file has no store yet. Throws `store-unavailable` if the file cannot be read. */
  use<Found>(empty: Found, query: (db: Database) => Found): Found
  /** Closes the file; the next use opens it again. */
  reset(): void
  close(): void
}

/** `onMissing` is called if the file does not exist, and may throw. */
export function createReadConnection(file: string, onMissing: () => void = () => {}): ReadConnection {
  let db: Database | undefined
  let hasSchema = false
  let closed = false
  let nextReset = 0

  const reset = () => {
    const was = db
    db = undefined
    hasSchema = false
    was?.close()
  }
  /** The connection; undefined if there is no file, or if the file has no store yet. */
  const open = () => {
    if (!db && !existsSync(file)) return void onMissing()
    db ??= openDatabase(file, { readOnly: true, busyMs: 2000 })
    if (hasSchema) return db
    const version = readSchemaVersion(db, describeFile(file))
    if (version === 0) return undefined
    hasSchema = true
    db = withCurrentTables(db, version)
    return db
  }
  return {
    use: (empty, query) => {
      if (closed) throw storeUnavailable('The store is closed.', 5)
      try {
        const opened = open()
        return opened ? query(opened) : empty
      } catch (error) {
        const trouble = classifyError(error)
        if (!trouble) throw error
        // at most once a second: a closed connection keeps its file descriptors until it is garbage-collected
        if (trouble.reopen && performance.now() >= nextReset) {
          nextReset = performance.now() + 1000
          reset()
        }
        throw storeUnavailable(`The store cannot be read: ${trouble.what}.`, 5, error)
      }
    },
    reset,
    close: () => {
      closed = true
      reset()
    },
  }
}
