import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { createSqliteReader, createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { olderStores } from './older.ts'

olderStores('sqlite', async (dump = '') => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloom-older-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'x.db')
  const db = openDatabase(file, { readOnly: false, busyMs: 1_000 })
  db.exec(`PRAGMA journal_mode = WAL; ${dump}`)
  db.close()
  const rows = async (sql: string) => {
    const reading = openDatabase(file, { readOnly: true, busyMs: 1_000 })
    try {
      return reading.all(sql)
    } finally {
      reading.close()
    }
  }
  return {
    rows,
    version: async () => Number((await rows('PRAGMA user_version'))[0]?.['user_version']),
    schema: () => rows('SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name'),
    open(clock) {
      const store = createSqliteStore({ file, clock })
      onTestFinished(() => store.close())
      return store
    },
    read: () => createSqliteReader({ file }),
  }
})
