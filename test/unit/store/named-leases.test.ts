// A gateway keeps its leases while it lives, releases them when it stops, and gives them up when another gateway may have them.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { createNamedLeases } from '../../../src/store/named-leases.ts'
import { createSingleOwnerCalls } from '../../../src/store/sqlite/one-owner.ts'

const times = { leaseMs: 20_000, everyMs: 5_000 }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Two gateways on the same leases. `isCut`: the first one cannot reach the store. */
function createTwo() {
  const store = createSingleOwnerCalls(Date.now)
  const line = { isCut: false }
  const cut =
    <Given extends unknown[], Result>(call: (...given: Given) => Promise<Result>) =>
    async (...given: Given) => {
      if (line.isCut) throw new Error('no store')
      return call(...given)
    }
  const cuttable = { lease: cut(store.lease), extendLeases: cut(store.extendLeases), endLeases: cut(store.endLeases) }
  const first = createNamedLeases({ store: cuttable, log: silentLog, times })
  const second = createNamedLeases({ store, log: silentLog, times })
  return { first, second, line }
}

test('one of two gateways gets a duty at once, and keeps it for as long as it lives', async () => {
  const { first, second } = createTwo()
  const changes: string[] = []
  const one = first.duty('mailbox', () => changes.push('one'))
  await vi.advanceTimersByTimeAsync(0)
  const two = second.duty('mailbox', () => changes.push('two'))
  for (let round = 0; round < 20; round += 1) {
    await vi.advanceTimersByTimeAsync(5_000)
    expect([one.isHeld(), two.isHeld()]).toEqual([true, false])
  }
  expect(changes).toEqual(['one'])
})

test('the duties of a gateway that stops go to another gateway within five seconds', async () => {
  const { first, second } = createTwo()
  first.duty('mailbox', () => {})
  await vi.advanceTimersByTimeAsync(0)
  const two = second.duty('mailbox', () => {})
  await vi.advanceTimersByTimeAsync(1_000)
  await first.stop()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(two.isHeld()).toBe(true)
})

test('a gateway that dies is replaced within 30 s, and a gateway that cannot reach the store gives up its duty before that', async () => {
  const { first, second, line } = createTwo()
  const said: boolean[] = []
  const one = first.duty('mailbox', () => said.push(one.isHeld()))
  await vi.advanceTimersByTimeAsync(0)
  const two = second.duty('mailbox', () => {})
  line.isCut = true
  const cutAt = Date.now()
  while (!two.isHeld()) {
    expect(Date.now() - cutAt).toBeLessThan(30_000)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(one.isHeld() && two.isHeld()).toBe(false)
  }
  expect(said).toEqual([true, false])
  line.isCut = false
  await vi.advanceTimersByTimeAsync(30_000)
  expect([one.isHeld(), two.isHeld()]).toEqual([false, true])
})

test('a gateway takes free leases, and keeps them until it releases them', async () => {
  const { first, second } = createTwo()
  expect(await first.take(['delivery/a', 'delivery/b'])).toEqual(['delivery/a', 'delivery/b'])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await second.take(['delivery/a', 'delivery/c'])).toEqual(['delivery/c'])
  await first.release(['delivery/a'])
  expect(await second.take(['delivery/a', 'delivery/b'])).toEqual(['delivery/a'])
})

test('a gateway that has stopped takes no lease', async () => {
  const { first, second } = createTwo()
  await first.stop()
  expect(await first.take(['a'])).toEqual([])
  expect(await second.take(['a'])).toEqual(['a'])
})

test('a gateway that was paused for longer than its lease reports when it has its duty again', async () => {
  const { first } = createTwo()
  const said: boolean[] = []
  const duty = first.duty('heartbeats', () => said.push(duty.isHeld()))
  await vi.advanceTimersByTimeAsync(1_000)
  // the wall clock runs while a machine sleeps, and timers do not
  vi.setSystemTime(Date.now() + 60_000)
  expect(duty.isHeld()).toBe(false)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(said).toEqual([true, true])
})
