// A gateway subscribes to the events of another one: each event causes one run there, whichever of the two dies, and when.
import { expect, test } from 'vitest'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { count } from '../counts.ts'
import { chatToken, happen, toEventServerConfig } from '../e2e/event-server-stage.ts'
import { freePort, startGateway } from '../e2e/gateway.ts'
import { readRuns, toMcpConfig } from '../e2e/mcp-events-stage.ts'
import { onFileEnd } from '../file-end.ts'

test.for(['SQLite', 'Postgres'])(
  'eight kills of two gateways lose no event and run none twice, on %s',
  { timeout: 300_000 },
  async (engine, context) => {
    if (engine === 'Postgres' && whyNoPostgres !== undefined) return
    const { url: store, drop } = engine === 'Postgres' ? await newSchema() : { url: undefined, drop: () => undefined }
    onFileEnd(drop)
    const port = await freePort()
    let server = await startGateway({
      config: { ...toEventServerConfig(), server: { port }, ...(store === undefined ? {} : { store: { url: store } }) },
    })
    const more = { token: chatToken, events: [{ name: 'push' }] }
    let client = await startGateway({ config: await toMcpConfig({ url: `${server.url}/runners/out` }, more) })
    await client.printed(/subscribed to the event from now on/)
    const wanted: string[] = []
    const arrived = async () => new Set(await readRuns(client)).size
    for (let kill = 0; kill < 8; kill++) {
      for (let at = 0; at < 6; at++) wanted.push(await happen(server, `event ${kill}-${at}`))
      // at another moment each time: between the turns, the events and their posts
      await expect.poll(arrived).toBeGreaterThanOrEqual(wanted.length - 6 + (kill % 4))
      if (kill % 2 === 0) {
        await server.kill()
        server = await startGateway({ dir: server.dir })
      } else {
        await client.kill()
        for (let at = 6; at < 9; at++) wanted.push(await happen(server, `event ${kill}-${at}`))
        client = await startGateway({ dir: client.dir })
      }
    }
    await expect.poll(arrived, { timeout: 120_000 }).toBe(wanted.length)
    wanted.push(await happen(server, 'last'))
    await expect.poll(() => readRuns(client)).toContain(wanted.at(-1))
    expect((await readRuns(client)).toSorted()).toEqual(wanted.toSorted())
    count(context, { events: wanted.length, lost: 0, twice: 0, kills: 8 })
    await client.stop()
    await server.stop()
  },
)
