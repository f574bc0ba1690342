// A read-only connection that opens when it is first needed, and again after trouble.
import { existsSync } from 'node:fs'
import { type Database, openDatabase, toTrouble } from './driver.ts'
import { toShownName } from './files.ts'
import { toSchemaVersion } from './migrations.ts'
import { unavailable } from './operations.ts'

export type ReadConnection = {
  /** What the query finds; `empty` while the file holds no store yet. Throws `store-unavailable` when it cannot be read. */
  use<Found>(empty: Found, query: (db: Database) => Found): Found
  /** The next use opens the file again. */
  reset(): void
  close(): void
}

/** `onMissing` throws where a file that is not there is an error. */
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
  /** Undefined: no file, or one in which no store was made yet. */
  const open = () => {
    if (!db && !existsSync(file)) return void onMissing()
    db ??= openDatabase(file, { readOnly: true, busyMs: 2000 })
    hasSchema ||= toSchemaVersion(db, toShownName(file)) > 0
    return hasSchema ? db : undefined
  }
  return {
    use: (empty, query) => {
      if (closed) throw unavailable('The store is closed.', 5)
      try {
        const opened = open()
        return opened ? query(opened) : empty
      } catch (error) {
        const trouble = toTrouble(error)
        if (!trouble) throw error
        // at most once a second: a connection that is closed keeps its descriptors for a while
        if (trouble.reopen && performance.now() >= nextReset) {
          nextReset = performance.now() + 1000
          reset()
        }
        throw unavailable(`The store cannot be read: ${trouble.what}.`, 5, error)
      }
    },
    reset,
    close: () => {
      closed = true
      reset()
    },
  }
}
