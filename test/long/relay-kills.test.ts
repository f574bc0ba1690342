// Each request that a relay has acknowledged causes one run, whenever the relay or the gateway dies.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { count, type Counts } from '../counts.ts'
import { createRandom } from '../contract/interleaved.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { freePort, startGateway } from '../e2e/gateway.ts'
import { findInFiles, postSigned, readRelayed, startRelayProcess, toRelayed } from '../e2e/relay-stage.ts'
import { onFileEnd } from '../file-end.ts'
import { seed, withSeed } from '../seed.ts'

const kills = 12
const sendersPerKill = 3
const requestsPerSender = 5

test.for(['SQLite', 'Postgres'])(
  'twelve kills of a relay and a gateway lose no acknowledged request and run none twice, on %s',
  { timeout: 400_000 },
  async (engine, context) => {
    if (engine === 'Postgres' && whyNoPostgres !== undefined) return
    const counts = await withSeed(() => killBoth(engine))
    expect(counts).toMatchObject({ lost: 0, twice: 0 })
    count(context, counts)
  },
)

async function killBoth(engine: string): Promise<Counts> {
  const random = createRandom(seed)
  const port = await freePort()
  let relay = await startRelayProcess({ port })
  const { url, drop } = engine === 'Postgres' ? await newSchema() : { url: undefined, drop: () => undefined }
  onFileEnd(drop)
  const { config, toUrl, awaitHome } = toRelayed(relay.url, url === undefined ? {} : { store: { url } })
  let gateway = await startGateway({ config })
  const { dir } = gateway
  await awaitHome()
  const sent = new Set<string>()
  const acknowledged = new Set<string>()

  async function send(id: string, delivery?: string): Promise<boolean> {
    sent.add(id)
    const answer = await postSigned(toUrl('deploy'), { id }, delivery).catch(() => undefined)
    await answer?.body?.cancel().catch(() => undefined)
    if (answer?.ok === true) acknowledged.add(id)
    return answer?.ok === true
  }

  /** A sender with delivery ids repeats a request until it is acknowledged. Another one sends each request once, so it must not run twice either. */
  async function sendMany(name: string, repeats: boolean): Promise<void> {
    for (let at = 0; at < requestsPerSender; at++) {
      const id = `${name}-${at}`
      if (repeats) while (!(await send(id, id))) await sleep(50)
      else await send(id)
      await sleep(random() * 80)
    }
  }

  for (let kill = 0; kill < kills; kill++) {
    const senders = Array.from({ length: sendersPerKill }, (_, at) => sendMany(`${kill}-${at}`, at > 0))
    await sleep(random() * 400)
    const which = kill % 3
    if (which !== 1) await relay.kill()
    if (which !== 0) await gateway.kill()
    await sleep(random() * 300)
    if (which !== 1) relay = await startRelayProcess({ port, dir: relay.dir })
    if (which !== 0) gateway = await startGateway({ dir })
    await Promise.all(senders)
    // on Postgres, another gateway takes the duty of a dead one only after half a minute
    if (which === 2) await awaitHome()
  }
  await awaitHome()
  await expect
    .poll(async () => {
      const runs = new Set(await readRelayed(gateway))
      return [...acknowledged].filter((id) => !runs.has(id))
    })
    .toEqual([])
  await expect.poll(() => findInFiles(relay.dir, '').filter((name) => name.endsWith('.sealed'))).toEqual([])
  const runs = await readRelayed(gateway)
  await gateway.stop()
  expect(await relay.stop()).toBe(0)
  const lost = [...acknowledged].filter((id) => !runs.includes(id))
  const twice = [...sent].filter((id) => runs.filter((run) => run === id).length > 1)
  return { sent: sent.size, acknowledged: acknowledged.size, lost: lost.length, twice: twice.length, kills }
}
