import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { storeContract } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloom-store-'))
let count = 0
afterAll(() => rmSync(folder, { recursive: true }))

// as in a large file; the store in memory reads on the calling thread
storeContract('SQLite', async (clock) =>
  createSqliteStore({ file: join(folder, `${(count += 1)}`, 'x.db'), clock, slowAboveBytes: 0 }),
)
