// A read-only connection that opens when it is first needed, and again after trouble.
import { existsSync } from 'node:fs'
import { Problem } from '../model/problem.ts'
import { type Database, openDatabase, toTrouble } from './driver.ts'
import { toShownName } from './lock.ts'
import { toSchemaVersion } from './migrations/migrate.ts'

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
  let closed = false

  const reset = () => {
    const was = db
    db = undefined
    was?.close()
  }
  /** Undefined: no file, or one in which no store was made yet. */
  const open = () => {
    if (!existsSync(file)) return void onMissing()
    const opened = openDatabase(file, { readOnly: true, busyMs: 2000 })
    try {
      if (toSchemaVersion(opened, toShownName(file)) > 0) return opened
    } catch (error) {
      opened.close()
      throw error
    }
    return void opened.close()
  }
  return {
    use: (empty, query) => {
      if (closed) throw new Problem('store-unavailable', 'The store is closed.', { retryAfterSeconds: 5 })
      try {
        db ??= open()
        return db ? query(db) : empty
      } catch (error) {
        reset()
        const trouble = toTrouble(error)
        if (trouble === undefined) throw error
        throw new Problem('store-unavailable', `The store cannot be read: ${trouble}.`, {
          retryAfterSeconds: 5,
          cause: error,
        })
      }
    },
    reset,
    close: () => {
      closed = true
      reset()
    },
  }
}
