// Reads the store of a gateway after a test: while it runs, after it stopped, and after a kill.
import { join } from 'node:path'
import { vi } from 'vitest'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { createSqliteReader } from '../../src/store/sqlite/sqlite.ts'

const toFile = (dir: string) => join(dir, 'state/hookloom.db')

/** The damage that SQLite finds in the file. */
export function findDamage(dir: string): unknown[] {
  const db = openDatabase(toFile(dir), { readOnly: true, busyMs: 2_000 })
  try {
    const damage = db.all('PRAGMA integrity_check').flatMap((row) => Object.values(row))
    return [...damage.filter((line) => line !== 'ok'), ...db.all('PRAGMA foreign_key_check')]
  } finally {
    db.close()
  }
}

/** Resolves when no job waits or runs. */
export async function drain(dir: string): Promise<void> {
  const reader = createSqliteReader({ file: toFile(dir) })
  try {
    await vi.waitUntil(
      async () => {
        const { queued, running } = (await reader.counts()).jobs
        return queued + running === 0
      },
      { timeout: 60_000, interval: 100 },
    )
  } finally {
    await reader.close()
  }
}
