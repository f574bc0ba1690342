// Copies of SQLite files.
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { copyStore } from '../../../../src/store/open.ts'
import { openDatabase } from '../../../../src/store/sqlite/driver.ts'
import { migrate } from '../../../../src/store/sqlite/migrations.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'
import { newFolder, openStore } from './stage.ts'

/** The number of migrations in the last version without the catalog. */
const withoutCatalog = 12

function writeOlder(file: string): void {
  const db = openDatabase(file, { readOnly: false, busyMs: 0 })
  db.exec('PRAGMA journal_mode = WAL')
  migrate(db, file, withoutCatalog)
  db.exec(`INSERT INTO deliveries (id, received_at, state, hook, generation, answer_status, answer_body, trace, log)
    VALUES ('old', 1, 'accepted', 'ci', 'g1', 200, '{}', '[]', '[]')`)
  db.close()
}

async function writeCurrent(file: string): Promise<void> {
  const store = openStore(file)
  await store.append(newDelivery({ at: 1, jobs: [newJob()] }))
  await store.close()
}

/** The schema and all rows of a file. */
function readContent(file: string) {
  const db = openDatabase(file, { readOnly: true, busyMs: 0 })
  try {
    const schema = db.all('SELECT * FROM sqlite_schema')
    const tables = schema.filter(({ type }) => type === 'table').map(({ name }) => String(name))
    return [db.all('PRAGMA user_version'), schema, tables.map((table) => db.all(`SELECT * FROM ${table}`))]
  } finally {
    db.close()
  }
}

test.each([
  ['of an older version', writeOlder],
  ['whose catalog is not complete', writeCurrent],
])('a copy does not change a source %s', async (_, write) => {
  const [file, target] = [join(newFolder(), 'x.db'), join(newFolder(), 'y.db')]
  await write(file)
  const before = readContent(file)
  const copied = await copyStore({ from: { kind: 'file', file }, to: { kind: 'file', file: target } }, () => {})
  expect(copied).toMatchObject({ deliveries: 1 })
  expect(readContent(file)).toEqual(before)
  expect(await openStore(target).deliveries({ limit: 9 })).toHaveLength(1)
})

test('a copy that fails does not change its source either, and the next copy works', async () => {
  const [file, target] = [join(newFolder(), 'x.db'), join(newFolder(), 'y.db')]
  writeOlder(file)
  const before = readContent(file)
  const places = { from: { kind: 'file', file }, to: { kind: 'file', file: target } } as const
  const stop = () => {
    throw new Error('stopped')
  }
  await expect(copyStore(places, stop)).rejects.toThrow('stopped')
  expect(readContent(file)).toEqual(before)
  expect(await copyStore(places, () => {})).toMatchObject({ deliveries: 1 })
})

test('a copy has the page size of a new store', async () => {
  const [file, target] = [join(newFolder(), 'x.db'), join(newFolder(), 'y.db')]
  await writeCurrent(file)
  await copyStore({ from: { kind: 'file', file }, to: { kind: 'file', file: target } }, () => {})
  const [source, copied] = [file, target].map((each) => {
    const db = openDatabase(each, { readOnly: true, busyMs: 0 })
    onTestFinished(() => db.close())
    return db.get('PRAGMA page_size')
  })
  expect(copied).toEqual(source)
})
