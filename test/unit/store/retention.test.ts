// When old deliveries and old entries of the audit log are deleted, and by which gateway.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Log, silentLog } from '../../../src/base/log.ts'
import { createRetention } from '../../../src/store/retention.ts'
import { createMemoryStore } from '../../../src/store/sqlite/sqlite.ts'
import { newDelivery, parked } from '../../contract/stage.ts'

const hour = 3_600_000
const day = 24 * hour

beforeEach(() => void vi.useFakeTimers({ now: 40 * day }))
afterEach(() => void vi.useRealTimers())

test('old deliveries and audit entries are deleted a minute after the start and every hour, from the second day of a store on, by the gateway that has the retention duty', async () => {
  const store = createMemoryStore({ clock: Date.now })
  const swept: number[] = []
  const sweep = async (olderThanMs: number) => {
    swept.push(olderThanMs)
    return 0
  }
  let isHeld = false
  const pruned: number[] = []
  const pruneAudit = async (olderThanMs: number) => {
    pruned.push(olderThanMs)
    return 0
  }
  const days = () => ({ retainDays: 30, retainAuditDays: 400 })
  const parts = { store: { ...store, sweep, pruneAudit }, days, log: silentLog }
  const retention = createRetention({ ...parts, duty: { isHeld: () => isHeld } })
  await vi.advanceTimersByTimeAsync(27 * hour - 1)
  expect(swept).toEqual([])
  isHeld = true
  await vi.advanceTimersByTimeAsync(1)
  expect([swept, pruned]).toEqual([[30 * day], [400 * day]])
  await retention.stop()
  const another = createRetention({ ...parts, duty: { isHeld: () => true } })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(swept).toHaveLength(2)
  await another.stop()
})

/** A store with a clock that can be set, and the deletion of old rows after 30 days. */
function startRetention() {
  let offset = 0
  const store = createMemoryStore({ clock: () => Date.now() + offset })
  const warnings: string[] = []
  const log: Log = { ...silentLog, warn: (_: object, text: string) => void warnings.push(text) }
  const days = () => ({ retainDays: 30, retainAuditDays: 366 })
  const start = () => createRetention({ store, days, log, duty: { isHeld: () => true } })
  const park = async () => {
    const delivery = newDelivery({ at: Date.now() + offset, ...parked() })
    await store.append(delivery)
    return async () => (await store.delivery(delivery.id))?.state
  }
  return { store, warnings, start, park, setClock: (ms: number) => void (offset = ms) }
}

test('a clock that is a year ahead for some hours deletes nothing that waits, and each change is reported once', async () => {
  const { warnings, start, park, setClock } = startRetention()
  const retention = start()
  await vi.advanceTimersByTimeAsync(2 * day)
  const readState = await park()
  setClock(365 * day)
  await vi.advanceTimersByTimeAsync(5 * hour)
  expect(await readState()).toBe('parked')
  expect(warnings).toHaveLength(1)
  setClock(0)
  await vi.advanceTimersByTimeAsync(29 * day)
  expect(await readState()).toBe('parked')
  expect(warnings).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(2 * day)
  expect(await readState()).toBe('dropped')
  await retention.stop()
})

test.each([
  ['a second after a start', 1_000],
  ['five hours after a start', 5 * hour],
])('what arrived while the clock was behind, corrected %s, waits for a day more', async (_, ms) => {
  const { warnings, start, park, setClock } = startRetention()
  await start().stop()
  setClock(-39 * day)
  const retention = start()
  await vi.advanceTimersByTimeAsync(ms)
  const readState = await park()
  setClock(0)
  await vi.advanceTimersByTimeAsync(23 * hour)
  expect(await readState()).toBe('parked')
  expect(warnings).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(3 * hour)
  expect(await readState()).toBe('dropped')
  await retention.stop()
})

test('after 40 days without a gateway, old deliveries are deleted a day after the start', async () => {
  const { warnings, start, park } = startRetention()
  const readState = await park()
  await start().stop()
  await vi.advanceTimersByTimeAsync(40 * day)
  const retention = start()
  await vi.advanceTimersByTimeAsync(23 * hour)
  expect(await readState()).toBe('parked')
  expect(warnings).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(2 * hour)
  expect(await readState()).toBe('dropped')
  await retention.stop()
})
