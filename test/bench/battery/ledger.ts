// What was acknowledged against what is stored.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../../src/store/sqlite/driver.ts'

export type Ledger = {
  /** Requests that were answered with 200 and have no delivery of their own in the store. */
  readonly lost: number
  /** Deliveries in the store that no answer names. */
  readonly twice: number
}

/** `acknowledged`: the ids in the answers. `stored`: those of the rows. */
export function compareLedger(acknowledged: readonly string[], stored: readonly string[]): Ledger {
  const answers = new Set(acknowledged)
  const rows = new Set(stored)
  // two requests with one id: the second one was taken for a duplicate
  const merged = acknowledged.length - answers.size
  const lost = merged + [...answers].filter((id) => !rows.has(id)).length
  return { lost, twice: stored.filter((id) => !answers.has(id)).length }
}

export function readReceipts(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
}

/** The ids of all deliveries of a gateway on SQLite that has ended. */
export function readStoredIds(dir: string): string[] {
  const db = openDatabase(join(dir, 'state/hookloom.db'), { readOnly: true, busyMs: 1_000 })
  try {
    return db.all('SELECT id FROM deliveries').map(({ id }) => String(id))
  } finally {
    db.close()
  }
}
