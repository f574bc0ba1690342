// Statements that the server plans once for a connection.
import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createDatabaseConnections } from '../../../../src/store/postgres/connection.ts'
import { planOnce } from '../../../../src/store/postgres/naming.ts'
import { createPostgresStore } from '../../../../src/store/postgres/postgres.ts'
import { newSchema, whyNoPostgres } from '../../../contract/postgres-stage.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'

const selectNames = 'SELECT name FROM pg_prepared_statements'

/** One connection to a table with an index, and a clock that moves only when a test moves it. */
async function createStage() {
  const { url, drop } = await newSchema()
  const clock = vi.spyOn(performance, 'now')
  let now = 0
  clock.mockImplementation(() => now)
  const { query, transaction, close } = createDatabaseConnections({ url, maxConnections: 1 })
  onTestFinished(async () => {
    clock.mockRestore()
    await close()
    await drop()
  })
  await query('CREATE TABLE numbers (number integer PRIMARY KEY)')
  await query('INSERT INTO numbers VALUES (7)')
  const find = () => query(`${planOnce} SELECT number FROM numbers WHERE number = $1`, 7)
  const readName = async () => String((await query(selectNames))[0]?.['name'])
  return { query, transaction, find, readName, advance: (ms: number) => void (now += ms) }
}

const found = [{ number: 7 }]

describe.skipIf(whyNoPostgres)('a statement that may be planned once', () => {
  test('gets a name on a busy connection, and other statements get none', async () => {
    const { query, find, advance } = await createStage()
    await find()
    advance(5_000)
    await find()
    expect(await query(selectNames)).toEqual([])
    expect(await find()).toEqual(found)
    await query('SELECT $1::integer AS one', 1)
    expect(await query(selectNames)).toHaveLength(1)
  })

  test('is planned again after a second, because a plan for an empty table reads the whole table after it has grown', async () => {
    const { query, find, readName, advance } = await createStage()
    await query('ALTER TABLE numbers SET (autovacuum_enabled = false)')
    // not DELETE: VACUUM keeps its rows while a transaction of another test is open
    await query('TRUNCATE numbers')
    await query('VACUUM ANALYZE numbers')
    for (let calls = 0; calls < 9; calls += 1) await find()
    const explain = async () => JSON.stringify(await query(`EXPLAIN EXECUTE "${await readName()}"(7)`))
    expect(await explain()).toContain('Seq Scan')
    await query('INSERT INTO numbers SELECT generate_series(1, 10000)')
    expect(await explain()).toContain('Seq Scan')
    for (let calls = 0; calls < 3; calls += 1) {
      advance(600)
      expect(await find()).toEqual(found)
    }
    expect(await explain()).toContain('Index')
  })

  test.each([
    ['behind a pooler that changes the server process unseen', 'DEALLOCATE ALL'],
    ['after a migration changed the type of its result', 'ALTER TABLE numbers ALTER number TYPE bigint'],
  ])('is answered %s, and gets no name from then on', async (_, change) => {
    const { query, find } = await createStage()
    for (let calls = 0; calls < 3; calls += 1) await find()
    await query(change)
    expect(await find()).toEqual(found)
    await query('DEALLOCATE ALL')
    expect(await find()).toEqual(found)
    expect(await query(selectNames)).toEqual([])
  })

  test('is answered where another client of a pooler has taken its name', async () => {
    const other = await createStage()
    for (let calls = 0; calls < 3; calls += 1) await other.find()
    const { query, find } = await createStage()
    await query(`PREPARE "${await other.readName()}" AS SELECT 1`)
    for (let calls = 0; calls < 3; calls += 1) expect(await find()).toEqual(found)
    expect(await query('SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('does not end the transaction in which the server refuses its name', async () => {
    const { transaction, query, find } = await createStage()
    for (let calls = 0; calls < 3; calls += 1) await find()
    await query('DEALLOCATE ALL')
    await transaction(async ({ query: own }) => {
      await own('INSERT INTO numbers VALUES (8)')
      await own(`${planOnce} SELECT number FROM numbers WHERE number = $1`, 7)
    })
    expect(await query('SELECT number FROM numbers ORDER BY number')).toEqual([{ number: 7 }, { number: 8 }])
  })
})

test.skipIf(whyNoPostgres)('deliveries and reports are stored by statements that are planned once', async () => {
  const { url, drop } = await newSchema()
  const store = createPostgresStore({ url })
  const sent = vi.spyOn(Client.prototype, 'query')
  // the calls follow each other at once
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0)
  onTestFinished(async () => {
    clock.mockRestore()
    sent.mockRestore()
    await store.close()
    await drop()
  })
  for (let n = 0; n < 5; n += 1) {
    await store.append(newDelivery({ at: Date.now(), jobs: [newJob()] }))
    for (const job of await store.claim({ limit: 1, leaseMs: 60_000 })) {
      expect(await store.report(job, { outcome: { kind: 'done' } })).toBe(true)
    }
  }
  const named = JSON.stringify(
    sent.mock.calls.map(([query]) => query).filter((query) => Object(query).name !== undefined),
  )
  expect(named).toContain('INSERT INTO deliveries')
  expect(named).toContain('UPDATE jobs SET state')
})
