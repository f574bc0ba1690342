// A lock of one gateway keeps the others waiting for seconds, never without limit.
import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createDatabaseConnections } from '../../../../src/store/postgres/connection.ts'
import { limits, type Limits } from '../../../../src/store/postgres/settings.ts'
import { createPostgresStore } from '../../../../src/store/postgres/postgres.ts'
import { newDelivery, newEvent, newJob } from '../../../contract/stage.ts'
import { newSchema, whyNoPostgres, withDatabase } from '../../../contract/postgres-stage.ts'

const newWake = () => newDelivery({ at: Date.now(), jobs: [newJob({ state: 'done', events: [newEvent()] })] })
const touchMain = `INSERT INTO sessions VALUES ('main', 'main', 1) ON CONFLICT (agent_id, session_key) DO UPDATE SET updated_at = 1`

async function newPlace() {
  const { url, schema, drop } = await newSchema()
  onTestFinished(drop)
  return { url, schema }
}

function openStore(url: string, short: Partial<Limits> = {}) {
  const store = createPostgresStore({ url, limits: { ...limits, ...short } })
  onTestFinished(() => store.close())
  return store
}

/** A client that locks the row of the session `main`, as a gateway without time limits would. */
async function holdMain(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('BEGIN')
  await client.query(touchMain)
  return client
}

/** The number of statements of this schema that run or wait now. */
async function countStatements(schema: string): Promise<number> {
  const sql = `SELECT count(*)::int AS count FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND a.state = 'active'`
  return withDatabase(async (client) => (await client.query<{ count: number }>(sql, [schema])).rows[0]?.count ?? 0)
}

describe.skipIf(whyNoPostgres)('a gateway that stops in the middle of a transaction', () => {
  test('a gateway that stops in a transaction loses its locks, and the calls that waited for them continue', async () => {
    const { url } = await newPlace()
    const stopped = createDatabaseConnections({ url, limits: { ...limits, idleMs: 200 } })
    onTestFinished(() => stopped.close())
    const store = openStore(url)
    let end = () => {}
    const stop = new Promise<void>((done) => (end = done))
    let held = () => {}
    const holds = new Promise<void>((done) => (held = done))
    const cut = stopped.transaction(async ({ query }) => {
      await query(touchMain)
      held()
      await stop
      await query('SELECT 1')
    })
    cut.catch(() => undefined)
    await holds
    expect(await Promise.all([store.append(newWake()), store.append(newWake())])).toEqual([
      { kind: 'stored' },
      { kind: 'stored' },
    ])
    end()
    await expect(cut).rejects.toMatchObject({ code: 'store-unavailable' })
  })

  test('the time limits increase in this order: between two statements, for a lock, for a statement, for its answer', () => {
    expect(limits.idleMs).toBeLessThan(limits.lockMs)
    expect(limits.lockMs).toBeLessThan(limits.statementMs)
    expect(limits.statementMs).toBeLessThan(limits.answerMs)
  })
})

describe.skipIf(whyNoPostgres)('a lock that is never released', () => {
  test('a delivery that waits for a lock that is never released is refused, and not stored later', async () => {
    const { url, schema } = await newPlace()
    const store = openStore(url, { lockMs: 200 })
    await store.counts()
    const holder = await holdMain(url)
    const refused = newWake()
    await expect(store.append(refused)).rejects.toMatchObject({ code: 'store-unavailable' })
    expect(await countStatements(schema)).toBe(0)
    expect((await store.health()).trouble).toBeUndefined()
    expect(await store.append(newDelivery({ at: Date.now() }))).toEqual({ kind: 'stored' })
    await holder.query('ROLLBACK')
    expect(await store.delivery(refused.id)).toBeUndefined()
    expect(await store.append(refused)).toEqual({ kind: 'stored' })
  })

  test('all deliveries of a batch that waits for a lock are refused', async () => {
    const { url } = await newPlace()
    const store = openStore(url, { lockMs: 400 })
    await store.counts()
    const holder = await holdMain(url)
    const refusals = await Promise.allSettled(Array.from({ length: 200 }, () => store.append(newWake())))
    expect(refusals.filter(({ status }) => status === 'rejected')).toHaveLength(200)
    await holder.query('ROLLBACK')
  })

  test('a time limit ends a transaction that waits for a lock, and a statement that takes too long', async () => {
    const { url } = await newPlace()
    const connections = createDatabaseConnections({ url, limits: { ...limits, lockMs: 200, statementMs: 600 } })
    onTestFinished(() => connections.close())
    await connections.open()
    await holdMain(url)
    await expect(connections.transaction(({ query }) => query(touchMain))).rejects.toMatchObject({
      code: 'store-unavailable',
    })
    expect(connections.trouble()).toMatch(/a lock was held for too long/)
    await expect(connections.transaction(({ query }) => query('SELECT pg_sleep(60)'))).rejects.toMatchObject({
      code: 'store-unavailable',
    })
    expect(connections.trouble()).toMatch(/a statement took too long/)
  })

  test('a transaction leaves no setting behind, because a pooler may give the connection to another client', async () => {
    const { url } = await newPlace()
    const connections = createDatabaseConnections({ url, limits, maxConnections: 1 })
    onTestFinished(() => connections.close())
    const settings = () =>
      connections.query(`SELECT name, setting FROM pg_settings WHERE name LIKE '%timeout' ORDER BY name`)
    const before = await settings()
    const inside = await connections.transaction(({ query }) =>
      query(`SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'`),
    )
    expect(inside).toEqual([{ setting: String(limits.idleMs) }])
    expect(await settings()).toEqual(before)
  })
})

describe.skipIf(whyNoPostgres)('the start of a gateway', () => {
  /** Takes the locks that pg_dump has on every table while it runs. */
  async function holdAsDump(url: string, schema: string): Promise<void> {
    const client = new Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    const sql = 'SELECT tablename FROM pg_tables WHERE schemaname = $1'
    const { rows } = await client.query<{ tablename: string }>(sql, [schema])
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await client.query(`LOCK TABLE ${rows.map(({ tablename }) => tablename).join(', ')} IN ACCESS SHARE MODE`)
  }

  test('a start does not wait for a backup, even if pg_dump has locked every table', async () => {
    const { url, schema } = await newPlace()
    const first = openStore(url)
    await first.append(newDelivery({ at: Date.now() }))
    await holdAsDump(url, schema)
    const next = openStore(url, { lockMs: 200 })
    await next.ready()
    expect((await next.health()).trouble).toBeUndefined()
    expect((await next.counts()).deliveries.accepted).toBe(1)
  })

  test('a start that cannot get the lock for its migration stops waiting, says why, and migrates when the lock is free', async () => {
    const { url, schema } = await newPlace()
    const old = new Client({ connectionString: url })
    await old.connect()
    onTestFinished(() => old.end())
    await old.query('CREATE TABLE hookloom_schema (version integer NOT NULL)')
    await old.query('BEGIN')
    await old.query('LOCK TABLE hookloom_schema IN ACCESS EXCLUSIVE MODE')
    const store = openStore(url, { lockMs: 200 })
    await store.ready()
    expect((await store.health()).trouble).toMatch(/a lock was held for too long/)
    expect(await countStatements(schema)).toBe(0)
    await old.query('ROLLBACK')
    expect(await store.append(newDelivery({ at: Date.now() }))).toEqual({ kind: 'stored' })
  })

  test('several gateways that start at the same time migrate the database once', async () => {
    const { url, schema } = await newPlace()
    const stores = Array.from({ length: 4 }, () => openStore(url))
    await Promise.all(stores.map((store) => store.append(newDelivery({ at: Date.now() }))))
    expect((await stores[0]?.counts())?.deliveries.accepted).toBe(4)
    const count = await withDatabase((client) => client.query(`SELECT version FROM ${schema}.hookloom_schema`))
    expect(count.rows).toHaveLength(1)
  })
})
