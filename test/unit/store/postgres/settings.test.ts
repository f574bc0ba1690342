// Settings that an operator changes in a database, the rows that a deletion deletes, and calls that two gateways make at the same moment.
import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Flow, toFlowSettings } from '../../../../src/core/model/flow.ts'
import { createBatches } from '../../../../src/store/postgres/batches.ts'
import { createDatabaseConnections } from '../../../../src/store/postgres/connection.ts'
import { sweepStep } from '../../../../src/store/postgres/deliveries.ts'
import { addTask } from '../../../../src/store/postgres/jobs.ts'
import type { Query } from '../../../../src/store/postgres/pool.ts'
import { createPostgresStore } from '../../../../src/store/postgres/postgres.ts'
import type { Appended, NewDelivery } from '../../../../src/store/records.ts'
import { findFaults } from '../../../../src/store/postgres/settings.ts'
import { claimOne } from '../../../contract/jobs.ts'
import { newSchema, whyNoPostgres, withDatabase } from '../../../contract/postgres-stage.ts'
import { newDelivery, newJob, request } from '../../../contract/stage.ts'
import { newTask } from '../../../contract/tasks.ts'

async function newUrl(settings = '') {
  const { url, schema, drop } = await newSchema()
  onTestFinished(drop)
  return { url: url.replace('options=', `options=${encodeURIComponent(settings)}`), schema }
}

function connectTo(url: string, maxConnections = 1) {
  const connections = createDatabaseConnections({ url, maxConnections })
  onTestFinished(() => connections.close())
  return connections
}

function openStore(url: string) {
  const store = createPostgresStore({ url })
  onTestFinished(() => store.close())
  return store
}

/** A separate user, whose settings a test may change. */
async function newRole() {
  const { url, schema } = await newUrl()
  const role = `hookloom_${randomBytes(6).toString('hex')}`
  await withDatabase((client) => client.query(`CREATE ROLE ${role} LOGIN; GRANT ALL ON SCHEMA ${schema} TO ${role}`))
  onTestFinished(() =>
    withDatabase(async (client) => void (await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`))),
  )
  const own = new URL(url)
  own.username = role
  const set = (setting: string) => withDatabase((client) => client.query(`ALTER ROLE ${role} SET ${setting}`))
  return { url: own.href, role, set }
}

const cut = async (query: Query) => {
  const [row] = await query('SELECT pg_backend_pid() AS pid')
  await withDatabase((client) => client.query('SELECT pg_terminate_backend($1)', [row?.['pid']]))
}

describe.skipIf(whyNoPostgres)('the settings of a database', () => {
  test('database settings with which transactions would read old rows prevent the start', async () => {
    const { url } = await newUrl('-c default_transaction_isolation=serializable ')
    await expect(connectTo(url).open()).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringMatching(/default_transaction_isolation is "serializable".*ALTER ROLE/),
    })
  })

  test('each statement of a reader has the isolation read committed, whatever the settings of the database say', async () => {
    const { url } = await newUrl('-c default_transaction_isolation=serializable ')
    const reader = createDatabaseConnections({ url, prepare: 'nothing' })
    onTestFinished(() => reader.close())
    const [row] = await reader.query(`SELECT current_setting('transaction_isolation') AS isolation`)
    expect(row).toEqual({ isolation: 'read committed' })
  })

  test('database settings are checked on each new connection, and calls are refused while a changed setting is unfit', async () => {
    const { url, set } = await newRole()
    const connections = connectTo(url)
    const answer = () => connections.query('SELECT 1 AS one')
    expect(await answer()).toEqual([{ one: 1 }])
    await set(`default_transaction_isolation = 'serializable'`)
    expect(await answer()).toEqual([{ one: 1 }])
    await cut(connections.query)
    // the first call may still get the connection that was cut
    await answer().catch(() => undefined)
    const refused = { code: 'store-unavailable', message: 'The store cannot be used now.', retryAfterSeconds: 30 }
    await expect(answer()).rejects.toMatchObject(refused)
    expect(connections.trouble()).toMatch(/default_transaction_isolation is "serializable" for this user/)
    await set(`default_transaction_isolation = 'read committed'`)
    await expect.poll(() => connections.trouble()).toBeUndefined()
    expect(await answer()).toEqual([{ one: 1 }])
  })

  test('database settings are checked again while the same connections are used, because a server may reload them', async () => {
    const { url } = await newUrl()
    const connections = connectTo(url)
    // a reload does the same: the session has another value than at its start
    await connections.query(`SELECT set_config('default_transaction_isolation', 'serializable', false)`)
    const refused = async () => {
      try {
        await connections.query('SELECT 1')
        return undefined
      } catch (error) {
        return error
      }
    }
    await expect.poll(refused).toMatchObject({ message: 'The store cannot be used now.' })
    // the next connection has the value of the server
    await expect.poll(refused).toBeUndefined()
  })

  test('each fault in the settings of a database is named, with the next step', () => {
    const good = { fsync: 'on', isolation: 'read committed' }
    expect(findFaults(good)).toEqual([])
    expect(findFaults({ ...good, fsync: 'off' })).toEqual([expect.stringMatching(/^fsync is off.*Set fsync = on/)])
    expect(findFaults({ fsync: 'off', isolation: 'repeatable read' })).toEqual([
      expect.stringMatching(/^fsync is off/),
      expect.stringMatching(/is "repeatable read" for this user.*ALTER ROLE/),
    ])
  })
})

describe.skipIf(whyNoPostgres)('a database that became read-only', () => {
  test('after a statement failed because a database became read-only, all connections are replaced', async () => {
    const { url } = await newUrl()
    const connections = connectTo(url, 2)
    await connections.open()
    // two concurrent queries use both connections, which become read-only as after a change to a standby
    const sleep = `SELECT set_config('default_transaction_read_only', 'on', false), pg_sleep(0.3)`
    await Promise.all([connections.query(sleep), connections.query(sleep)])
    await expect(connections.query('DELETE FROM leases')).rejects.toMatchObject({ code: 'store-unavailable' })
    expect(connections.trouble()).toMatch(/it is read-only/)
    await expect(connections.query('SELECT 1')).rejects.toMatchObject({ code: 'store-unavailable' })
    await expect.poll(() => connections.trouble()).toBeUndefined()
    expect(await connections.query('DELETE FROM leases')).toEqual([])
    expect(await connections.query('DELETE FROM leases')).toEqual([])
  })

  test('a database that became read-only makes the gateway unready before the first delivery fails', async () => {
    const { url, set } = await newRole()
    const store = openStore(url)
    await store.append(newDelivery({ at: Date.now() }))
    expect((await store.health()).trouble).toBeUndefined()
    await set('default_transaction_read_only = on')
    await withDatabase((client) =>
      client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [
        new URL(url).username,
      ]),
    )
    await store.counts().catch(() => undefined)
    expect((await store.health()).trouble).toMatch(/it is read-only/)
    await set('default_transaction_read_only = off')
    await expect.poll(async () => (await store.health()).trouble).toBeUndefined()
  })
})

describe.skipIf(whyNoPostgres)('an error of a database', () => {
  /** Every message that a log prints for an error. */
  const toMessages = (error: unknown): string =>
    error instanceof Error ? `${error.message} ${error.stack} ${toMessages(error.cause)}` : String(error)

  test('an error of a database does not name the user', async () => {
    const { url } = await newUrl()
    const own = new URL(url)
    own.username = 'secretuser'
    const error: unknown = await connectTo(own.href)
      .open()
      .catch((caught: unknown) => caught)
    expect(toMessages(error)).toMatch(/28000/)
    expect(toMessages(error)).not.toContain('secretuser')
  })

  test('a missing file in the URL of the store is reported as trouble, and does not end a process that waits for notifications', async () => {
    const { url } = await newUrl()
    const store = createPostgresStore({ url: `${url}&sslmode=verify-full&sslrootcert=/nope` })
    onTestFinished(() => store.close())
    store.subscribe(() => undefined)
    await expect(store.counts()).rejects.toMatchObject({ code: 'store-unavailable' })
    expect((await store.health()).trouble).toMatch(/a file that store\.url names, such as sslrootcert, cannot be read/)
  })

  test('a certificate file that cannot be read uses up no connections: each query reports the same reason', async () => {
    const { url } = await newUrl()
    const reader = createDatabaseConnections({
      url: `${url}&sslmode=verify-full&sslrootcert=/nope`,
      prepare: 'nothing',
      maxConnections: 1,
    })
    onTestFinished(() => reader.close())
    for (let count = 0; count < 3; count += 1) {
      await expect(reader.query('SELECT 1')).rejects.toMatchObject({
        message: expect.stringMatching(/sslrootcert, cannot/),
      })
    }
  })

  test('if all connections of a gateway are busy, its trouble says so', async () => {
    const { url } = await newUrl()
    const connections = connectTo(url)
    await connections.open()
    await connections.transaction(async ({ query }) => {
      await query('SELECT 1')
      await expect(connections.query('SELECT 1')).rejects.toMatchObject({ code: 'store-unavailable' })
      expect(connections.trouble()).toMatch(/all connections of this gateway are busy/)
    })
  })

  test('an error in one delivery of a batch refuses only that delivery', async () => {
    const { url } = await newUrl()
    const connections = connectTo(url)
    const batches = createBatches<NewDelivery, Appended>({
      maxInFlight: 1,
      maxQueued: 9,
      toKey: () => undefined,
      store: async (batch) => {
        // a statement that Postgres refuses, in place of a row that it refuses
        if (batch.some(({ hook }) => hook === 'bad')) await connections.query('SELECT 1 / 0')
        return batch.map(() => ({ kind: 'stored' as const }))
      },
    })
    const hooks = ['one', 'bad', 'two']
    const results = await Promise.allSettled(
      hooks.map((hook) => batches.add({ ...newDelivery({ at: Date.now() }), hook })),
    )
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })
})

describe.skipIf(whyNoPostgres)('two gateways at the same moment', () => {
  /** Runs `meanwhile` after the first statement. */
  const afterFirst = (query: Query, meanwhile: () => Promise<unknown>): Query => {
    let isFirst = true
    return async (...given) => {
      const rows = await query(...given)
      if (isFirst) {
        isFirst = false
        await meanwhile()
      }
      return rows
    }
  }

  test('two gateways add a task once, even if a sweep deletes its name between their statements', async () => {
    const { url } = await newUrl()
    const [one, other] = [connectTo(url, 2), connectTo(url, 2)]
    await one.query(`INSERT INTO task_names VALUES ('beat')`)
    await other.open()
    const now = '1700000000000::bigint'
    const task = () => newTask({ standsFor: 'beat', lane: 'beat' })
    const prune =
      'DELETE FROM task_names WHERE stands_for IN (SELECT stands_for FROM task_names FOR UPDATE SKIP LOCKED)'
    let second: Promise<boolean> | undefined
    const first = await one.transaction(async ({ query }) => {
      const pruned = afterFirst(query, () => other.query(prune))
      const added = await addTask(pruned, task(), now)
      second = other.transaction((session) => addTask(session.query, task(), now))
      // the call waits for the first transaction, or is done if nothing stops it
      await Promise.race([second, one.query('SELECT pg_sleep(0.5)')])
      return added
    })
    expect([first, await second]).toEqual([true, false])
  })

  test('a run that one gateway queues again while another gateway sweeps is kept', async () => {
    const { url } = await newUrl()
    const store = openStore(url)
    const job = newJob()
    const delivery = newDelivery({ at: 1, jobs: [job] })
    await store.append(delivery)
    await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no model' } })
    const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000'
    let held: { id: string; fence: number } | undefined
    const requeue = async () => {
      await store.requeue(job.id)
      held = await claimOne(store)
    }
    const sweeper = connectTo(url)
    const { count } = await sweeper.transaction(({ query }) =>
      sweepStep(afterFirst(query, requeue), { before: Date.now() + 3_000_000, after: 0, now }),
    )
    expect(count).toBe(0)
    expect(await store.report(held ?? { id: '', fence: 0 }, { outcome: { kind: 'done' } })).toBe(true)
    expect(await store.delivery(delivery.id)).toMatchObject({ jobs: [{ state: 'done' }] })
  })
})

test.skipIf(whyNoPostgres)(
  'a deletion leaves no child row behind, even if the deleting client has another search path',
  async () => {
    const { url, schema, drop } = await newSchema()
    const store = createPostgresStore({ url })
    onTestFinished(async () => {
      await store.close()
      await drop()
    })
    const flow = {
      ring: 'a',
      key: 'k',
      expiresMs: undefined,
      settings: toFlowSettings(Flow.parse({}), { ring: 'a', rateKey: '' }),
    }
    const jobs = [newJob({ flow }), newJob()]
    await store.append(newDelivery({ at: Date.now(), request: request(), ringSize: 5, jobs }))
    const children = ['requests', 'rings', 'jobs', 'job_parts', 'job_flow']
    const counts = () =>
      withDatabase(async (client) => {
        const selects = children.map((table) => `(SELECT count(*)::int FROM ${schema}.${table})`).join(', ')
        return (await client.query<{ counts: number[] }>(`SELECT ARRAY[${selects}] AS counts`)).rows[0]?.counts
      })
    expect(await counts()).toEqual([1, 1, 2, 2, 1])
    await withDatabase((client) => client.query(`DELETE FROM ${schema}.deliveries`))
    expect(await counts()).toEqual([0, 0, 0, 0, 0])
  },
)
