import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createDatabaseConnections } from '../../../../src/store/postgres/connection.ts'
import { newSchema, whyNoPostgres, withDatabase } from '../../../contract/postgres-stage.ts'

test.skipIf(whyNoPostgres)(
  'a connection that is cut between two statements ends its transaction but not the process, and the next call works',
  async () => {
    const { url, drop } = await newSchema()
    const connections = createDatabaseConnections({ url, maxConnections: 1 })
    onTestFinished(async () => {
      await connections.close()
      await drop()
    })
    const cut = connections.transaction(async ({ query }) => {
      const [row] = await query('SELECT pg_backend_pid() AS pid')
      await withDatabase((client) => client.query('SELECT pg_terminate_backend($1)', [row?.['pid']]))
      // these round trips give the end of the connection time to arrive at the client
      for (let round = 0; round < 5; round += 1) await withDatabase((client) => client.query('SELECT 1'))
      return await query('SELECT 1')
    })
    await expect(cut).rejects.toMatchObject({ code: 'store-unavailable', message: 'The store cannot be reached now.' })
    expect(connections.trouble()).toMatch(/^Postgres at .* cannot be used: /)
    expect(await connections.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
    expect(connections.trouble()).toBeUndefined()
  },
)

test.skipIf(whyNoPostgres)('calls that wait for a connection check the settings of the database once', async () => {
  const { url, drop } = await newSchema()
  const connections = createDatabaseConnections({ url, maxConnections: 1 })
  onTestFinished(async () => {
    await connections.close()
    await drop()
  })
  await connections.open()
  const sent = vi.spyOn(Client.prototype, 'query')
  onTestFinished(() => sent.mockRestore())
  const waiting: Promise<unknown>[] = []
  await connections.transaction(async ({ query }) => {
    // the settings are due to be checked after a second
    await query('SELECT pg_sleep(1.1)')
    sent.mockClear()
    for (let n = 0; n < 5; n += 1) waiting.push(connections.query('SELECT 1 AS one'))
    await new Promise((resolve) => setImmediate(resolve))
  })
  expect(await Promise.all(waiting)).toEqual(Array.from({ length: 5 }, () => [{ one: 1 }]))
  expect(sent.mock.calls.filter((call) => JSON.stringify(call).includes('fsync'))).toHaveLength(1)
})

describe.skipIf(whyNoPostgres)('a database that this program cannot use', () => {
  async function createStage(settings = '') {
    const { url, schema, drop } = await newSchema()
    const connections = createDatabaseConnections({
      url: url.replace('options=', `options=${encodeURIComponent(settings)}`),
      maxConnections: 1,
    })
    onTestFinished(async () => {
      await connections.close()
      await drop()
    })
    return { connections, schema }
  }

  test('a database of a newer version prevents a start, and a running gateway answers 503 and shows the reason only to the operator', async () => {
    const { connections, schema } = await createStage()
    await withDatabase((client) => client.query(`CREATE TABLE ${schema}.hookloom_schema AS SELECT 999 AS version`))
    await expect(connections.open()).rejects.toMatchObject({ code: 'config-invalid' })
    const refused = { code: 'store-unavailable', message: 'The store cannot be used now.', retryAfterSeconds: 30 }
    await expect(connections.query('SELECT 1')).rejects.toMatchObject(refused)
    expect(connections.trouble()).toMatch(/was written by a newer hookloom \(schema 999/)
    await withDatabase((client) => client.query(`DROP TABLE ${schema}.hookloom_schema`))
    expect(await connections.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
    expect(connections.trouble()).toBeUndefined()
  })

  test('a gateway that runs stops using a database that a newer version has migrated, and the operator is told to update it', async () => {
    const { connections, schema } = await createStage()
    await connections.open()
    await withDatabase((client) => client.query(`UPDATE ${schema}.hookloom_schema SET version = version + 1`))
    await expect
      .poll(() => connections.query('SELECT 1').catch((error: unknown) => error))
      .toMatchObject({ code: 'store-unavailable', message: 'The store cannot be used now.', retryAfterSeconds: 30 })
    expect(connections.trouble()).toMatch(/was written by a newer hookloom \(schema \d+; .* Update hookloom/)
    await withDatabase((client) => client.query(`UPDATE ${schema}.hookloom_schema SET version = version - 1`))
    await expect.poll(() => connections.query('SELECT 1 AS one').catch(() => [])).toEqual([{ one: 1 }])
  })

  test('a database that is read-only, as a standby is, is reported as trouble, not as a fault of the delivery', async () => {
    const { connections } = await createStage('-c default_transaction_read_only=on ')
    await expect(connections.query('SELECT 1')).rejects.toMatchObject({ message: 'The store cannot be reached now.' })
    expect(connections.trouble()).toMatch(/cannot be used: it is read-only\. Wait for the end of the failover/)
  })

  test('a statement that the database refuses is not reported as trouble with the database', async () => {
    const { connections } = await createStage()
    await expect(connections.query('SELECT 1 / 0')).rejects.toMatchObject({ message: 'The store cannot write this.' })
    expect(connections.trouble()).toBeUndefined()
  })
})
