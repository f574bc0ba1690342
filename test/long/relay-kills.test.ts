// Each request that a relay has acknowledged causes one run, whenever the relay or the gateway dies.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { count } from '../counts.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { freePort, startGateway } from '../e2e/gateway.ts'
import { findInFiles, postSigned, readRelayed, startRelayProcess, toRelayed } from '../e2e/relay-stage.ts'
import { onFileEnd } from '../file-end.ts'

const kills = 12
const sendersPerKill = 3
const requestsPerSender = 5

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

test.for(['SQLite', 'Postgres'])(
  'twelve kills of a relay and a gateway lose no acknowledged request and run none twice, on %s',
  { timeout: 400_000 },
  async (engine, context) => {
    if (engine === 'Postgres' && whyNoPostgres !== undefined) return
    const random = createRandom(20_261_130)
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
    const twice = [...sent].filter((id) => runs.filter((run) => run === id).length > 1)
    expect(twice).toEqual([])
    count(context, { sent: sent.size, acknowledged: acknowledged.size, lost: 0, twice: 0, kills })
    await gateway.stop()
    expect(await relay.stop()).toBe(0)
  },
)
