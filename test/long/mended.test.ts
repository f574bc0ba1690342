// A save breaks a transform under traffic, the gateway is killed, and another save repairs the transform: parked deliveries run once, in
// order.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { findDamage } from '../e2e/aftermath.ts'
import { type Gateway, startGateway } from '../e2e/gateway.ts'
import { readStore } from '../e2e/inside.ts'

const renderVersion = (name: string) => `export default ({ payload }) => ({ text: '${name} ' + payload.n })\n`
const broken = `export default () => { throw new Error('not like this') }\n`
/** The repaired transform, so slow that a kill interrupts the run of the parked deliveries. */
const mended = `export default async ({ payload }) => {
  await new Promise((resolve) => setTimeout(resolve, 25))
  return { text: 'mended ' + payload.n }
}
`
const mapping = {
  id: 'work',
  match: { path: 'work' },
  action: 'wake',
  wakeMode: 'next-heartbeat',
  transform: { module: 'work.ts' },
}
const lanes = 8

type Answered = { readonly n: number; readonly deliveryId: string; readonly isParked: boolean }

test(
  'a broken save under traffic fails no request, and after a corrected save the parked deliveries run in order, despite two kills',
  { timeout: 120_000 },
  async () => {
    const answered: Answered[] = []
    const refused: string[] = []
    let n = 0
    let gateway: Gateway = await startGateway({
      config: { hooks: { mappings: [mapping] } },
      files: { 'hooks/transforms/work.ts': renderVersion('first') },
    })
    const { dir } = gateway
    const save = (text: string) => writeFileSync(join(dir, 'hooks/transforms/work.ts'), text)

    async function post(): Promise<void> {
      const own = (n += 1)
      const { url, token } = gateway
      const response = await fetch(`${url}/work`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': `k${own}` },
        body: JSON.stringify({ n: own }),
      }).catch(() => undefined)
      // a kill cut the connection, so there is no answer
      const body: unknown = await response?.json().catch(() => undefined)
      if (response === undefined || body === undefined) return
      if (response.status !== 200) refused.push(`${response.status} ${JSON.stringify(body)}`)
      const isParked = Reflect.get(Object(body), 'status') === 'parked'
      answered.push({ n: own, deliveryId: String(Reflect.get(Object(body), 'deliveryId')), isParked })
    }
    /** Posts on several connections at once, until `until` returns true. */
    async function postUntil(until: () => boolean): Promise<void> {
      await Promise.all(
        Array.from({ length: lanes }, async () => {
          while (!until()) await post()
        }),
      )
    }
    const countParked = () => answered.filter(({ isParked }) => isParked).length

    await postUntil(() => answered.length > 40)
    save(broken)
    await postUntil(() => countParked() > 60)
    await Promise.all([gateway.kill(), post(), post()])
    gateway = await startGateway({ dir })
    await postUntil(() => countParked() > 100)
    expect(refused).toEqual([])

    save(mended)
    await waitUntil(async () => (await countMended(dir)) > 20)
    await gateway.kill()
    expect(findDamage(dir)).toEqual([])
    const before = await countMended(dir)
    gateway = await startGateway({ dir })
    await waitUntil(async () => (await readStore(dir, (store) => store.counts())).deliveries.parked === 0)
    expect(before).toBeLessThan(countParked())

    const records = await readStore(dir, (store) => store.deliveries({ limit: 100_000 }))
    const events = await readStore(dir, (store) => store.events({ limit: 100_000 }))
    const states = new Map(records.map(({ deliveryId, state }) => [deliveryId, state]))
    expect(answered.filter(({ deliveryId }) => states.get(deliveryId) !== 'accepted')).toEqual([])
    // each delivery has one event; all other events are notices about parked deliveries
    const own = events.filter(({ deliveryId }) => deliveryId !== undefined)
    expect(own.map(({ deliveryId = '' }) => deliveryId).toSorted()).toEqual([...states.keys()].toSorted())
    // the deliveries that were parked, in the order in which the store accepted them
    const caughtUp = events.filter(({ text }) => text.startsWith('mended')).map(({ deliveryId = '' }) => deliveryId)
    const wasMended = new Set(caughtUp)
    expect(caughtUp).toEqual(records.map(({ deliveryId }) => deliveryId).filter((id) => wasMended.has(id)))
    expect(caughtUp.length).toBeGreaterThanOrEqual(countParked())
    expect(await gateway.stop()).toBe(0)
  },
)

async function countMended(dir: string): Promise<number> {
  const events = await readStore(dir, (store) => store.events({ limit: 100_000 }))
  return events.filter(({ text }) => text.startsWith('mended')).length
}

async function waitUntil(holds: () => Promise<boolean>): Promise<void> {
  await vi.waitUntil(holds, { timeout: 60_000, interval: 20 })
}
