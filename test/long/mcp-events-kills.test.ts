// Each event of an MCP server causes one run, whenever the gateway dies.
import { expect, test } from 'vitest'
import { count } from '../counts.ts'
import { startMcpServer } from '../e2e/fakes/mcp-events.ts'
import { startGateway } from '../e2e/gateway.ts'
import { readRuns, toMcpConfig } from '../e2e/mcp-events-stage.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { onFileEnd } from '../file-end.ts'

test.for(['SQLite', 'Postgres'])(
  'six kills between subscriptions and events, and restarts of the server, lose no event and run none twice, on %s',
  { timeout: 300_000 },
  async (engine, context) => {
    if (engine === 'Postgres' && whyNoPostgres !== undefined) return
    const server = await startMcpServer({ leaseMs: 3_000 })
    const { url, drop } = engine === 'Postgres' ? await newSchema() : { url: undefined, drop: () => undefined }
    onFileEnd(drop)
    const config = await toMcpConfig(server)
    let gateway = await startGateway({ config: { ...config, ...(url === undefined ? {} : { store: { url } }) } })
    const { dir } = gateway
    await gateway.printed(/subscribed to the event from now on/)
    const wanted: string[] = []
    const emit = (id: string) => {
      wanted.push(id)
      server.emit(id)
    }
    for (let kill = 0; kill < 6; kill++) {
      for (let at = 0; at < 6; at++) emit(`evt-${kill}-${at}`)
      // at another moment each time: before, between and after the commits of the events
      await expect
        .poll(async () => (await readRuns(gateway)).length)
        .toBeGreaterThanOrEqual(wanted.length - 6 + (kill % 3))
      await gateway.kill()
      for (let at = 6; at < 12; at++) emit(`evt-${kill}-${at}`)
      // every other time, the server has lost the subscription: then only the cursor in the store says where it continues
      if (kill % 2 === 1) server.forget()
      gateway = await startGateway({ dir })
      await expect.poll(async () => new Set(await readRuns(gateway)).size).toBe(wanted.length)
    }
    emit('last')
    await expect.poll(() => readRuns(gateway)).toContain('last')
    expect((await readRuns(gateway)).toSorted()).toEqual(wanted.toSorted())
    count(context, { events: wanted.length, lost: 0, twice: 0, kills: 6 })
    await gateway.stop()
  },
)
