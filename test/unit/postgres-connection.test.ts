import { expect, onTestFinished, test } from 'vitest'
import { createConnections } from '../../src/store/postgres/connection.ts'
import { newSchema, whyNoPostgres, withDatabase } from '../contract/postgres-stage.ts'

test.skipIf(whyNoPostgres)(
  'a connection that is cut between two statements ends its transaction, not the process, and the next call works',
  async () => {
    const { url, drop } = await newSchema()
    const connections = createConnections({ url, maxConnections: 1 })
    onTestFinished(async () => {
      await connections.close()
      await drop()
    })
    const cut = connections.transaction(async ({ query }) => {
      const [row] = await query('SELECT pg_backend_pid() AS pid')
      await withDatabase((client) => client.query('SELECT pg_terminate_backend($1)', [row?.['pid']]))
      // by now the end of the connection has arrived here too
      for (let round = 0; round < 5; round += 1) await withDatabase((client) => client.query('SELECT 1'))
      return await query('SELECT 1')
    })
    await expect(cut).rejects.toMatchObject({ code: 'store-unavailable', message: 'The store cannot be reached now.' })
    expect(connections.trouble()).toMatch(/^Postgres at .* cannot be used: /)
    expect(await connections.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
    expect(connections.trouble()).toBeUndefined()
  },
)
