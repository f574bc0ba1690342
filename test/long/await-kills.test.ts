// The gateway is killed while deliveries arrive for which callers wait: no wait misses a delivery that was answered.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { count } from '../counts.ts'
import { post, startGateway } from '../e2e/gateway.ts'
import { onFileEnd } from '../file-end.ts'

const mappings = [
  { id: 'pulls', match: { path: 'pulls' }, messageTemplate: '{{n}}', sessionKey: 'hook:pr:{{n}}', deliver: false },
]

test.for(['SQLite', 'Postgres'])(
  'twelve kills while deliveries arrive leave no wait without its delivery, on %s',
  { timeout: 240_000 },
  async (engine, context) => {
    if (engine === 'Postgres' && whyNoPostgres !== undefined) return
    const { url, drop } = engine === 'Postgres' ? await newSchema() : { url: undefined, drop: () => undefined }
    onFileEnd(drop)
    let gateway = await startGateway({
      config: { hooks: { mappings }, ...(url === undefined ? {} : { store: { url } }) },
    })
    const { dir } = gateway
    /** The numbers whose waits were answered, each with the delivery that was answered. */
    const asked = new Map<number, unknown>()
    let next = 0

    const ask = (n: number) => post(gateway, 'pulls/await', { key: `hook:pr:${n}`, id: 'w' })
    const askAndSend = async () => {
      for (;;) {
        const n = (next += 1)
        if ((await ask(n))['state'] !== 'waiting') throw new Error(`The wait for ${n} has ended before its delivery.`)
        asked.set(n, undefined)
        asked.set(n, (await post(gateway, 'pulls', { n }))['deliveryId'])
      }
    }
    for (let kill = 0; kill < 12; kill += 1) {
      const sending = Promise.allSettled(Array.from({ length: 6 }, askAndSend))
      // at another moment each time
      await sleep(100 + 37 * kill)
      await gateway.kill()
      // a request that the kill cut off throws a TypeError
      for (const ended of await sending) if (ended.status === 'rejected') expect(ended.reason).toBeInstanceOf(TypeError)
      gateway = await startGateway({ dir })
    }

    const arrived = [...asked].filter(([, deliveryId]) => deliveryId !== undefined)
    for (const [n, deliveryId] of arrived) {
      expect([n, await ask(n)]).toEqual([n, expect.objectContaining({ state: 'arrived', deliveryId })])
    }
    expect(arrived.length).toBeGreaterThan(50)
    count(context, { events: arrived.length, lost: 0, kills: 12 })
    await gateway.stop()
  },
)
