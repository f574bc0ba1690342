// How the drain walks through parked deliveries. test/reload/drain.test.ts runs it with real modules.
import { expect, test, vi } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { createDrain, type DrainParts } from '../../../../src/gateway/deliveries/drain.ts'
import { createSingleOwnerCalls } from '../../../../src/store/sqlite/one-owner.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { OpenDelivery } from '../../../../src/store/records.ts'
import type { Store } from '../../../../src/store/store.ts'
import { newDelivery, parked } from '../../../contract/stage.ts'
import { toGeneration } from '../../core/mapping/decide.ts'

/** A drain in which each delivery is parked again, and the ids of the deliveries that it ran. */
function createStage(
  onRun: (open: OpenDelivery, store: Store) => Promise<unknown> = async () => {},
  leases?: DrainParts['leases'],
  onInfo: () => void = () => {},
) {
  const store = createMemoryStore({ clock: Date.now })
  const transforms = { 'a.ts': () => null, 'b.ts': () => null, 'c.ts': () => null }
  const generation = toGeneration([], { transforms })
  const ran: string[] = []
  const limits: number[] = []
  const drain = createDrain({
    store: {
      counts: store.counts,
      countInState: store.countInState,
      countParkedFor: store.countParkedFor,
      waitedFor: store.waitedFor,
      drop: store.drop,
      openDeliveries: (query) => {
        limits.push(query.limit)
        return store.openDeliveries(query)
      },
    },
    generation: () => generation,
    ...(leases && { leases }),
    log: { ...silentLog, info: onInfo },
    rerunner: {
      resumePending: async () => {},
      waitForRun: async () => {},
      async rerun(open) {
        ran.push(open.deliveryId)
        await store.settle(open.deliveryId, parked({ generation: generation.id, waitsFor: open.waitsFor }))
        await onRun(open, store)
        return 'parked'
      },
    },
  })
  const park = async (id: string, receivedAt: number, waitsFor = 'a.ts') =>
    store.append(newDelivery({ at: receivedAt, ...parked({ waitsFor }), id }))
  return { store, drain, ran, limits, park }
}

test('a drain reads one delivery at a time and runs each delivery once', async () => {
  const { drain, ran, limits, park } = createStage()
  for (const n of [1, 2, 3]) await park(`d-${n}`, n)
  expect(await drain.drain(['a.ts'], { again: true })).toEqual({ settled: 0, stillParked: 3 })
  expect(ran).toEqual(['d-1', 'd-2', 'd-3'])
  expect(new Set(limits)).toEqual(new Set([1]))
})

test('a drain runs the deliveries of each of its modules from the oldest to the newest, and no others', async () => {
  const { drain, ran, park } = createStage()
  for (const [n, module] of ['b.ts', 'a.ts', 'c.ts', 'a.ts', 'b.ts'].entries()) await park(`${module}-${n}`, n, module)
  expect(await drain.drain(['a.ts', 'b.ts'])).toEqual({ settled: 0, stillParked: 4 })
  expect(ran).toEqual(['a.ts-1', 'a.ts-3', 'b.ts-0', 'b.ts-4'])
})

test('a drain ends even if a new delivery is parked for each one that it runs', async () => {
  let count = 2
  const { drain, ran, park } = createStage(async () => {
    count += 1
    await park(`d-${count}`, count)
  })
  for (const n of [1, 2]) await park(`d-${n}`, n)
  await drain.drain(['a.ts'], { again: true })
  expect(ran).toEqual(['d-1', 'd-2'])
})

test('a drain leaves a module to the gateway that already drains it, and a later call of `look` runs the deliveries that are left', async () => {
  vi.useFakeTimers()
  try {
    const leases = createSingleOwnerCalls(Date.now)
    const lease = {
      take: async (names: readonly string[]) => (await leases.lease({ names, leaseMs: 9_000 })).map(({ name }) => name),
    }
    const { drain, ran, park } = createStage(undefined, { ...lease, release: async () => {} })
    await park('d-1', 1)
    await leases.lease({ names: ['drain/a.ts'], leaseMs: 9_000 })
    expect(await drain.drain(['a.ts'])).toEqual({ settled: 0, stillParked: 0 })
    drain.look()
    await vi.advanceTimersByTimeAsync(0)
    expect(ran).toEqual([])
    drain.look()
    await vi.advanceTimersByTimeAsync(4_000)
    expect(ran).toEqual([])
    await vi.advanceTimersByTimeAsync(5_000)
    drain.look()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(ran).toEqual(['d-1'])
  } finally {
    vi.useRealTimers()
  }
})

test('a delivery that the live generation parked runs again in a drain with `again`, but not in `look`', async () => {
  const { drain, ran, park } = createStage()
  await park('d-1', 1)
  await drain.drain(['a.ts'])
  expect(ran).toEqual(['d-1'])
  vi.useFakeTimers()
  drain.look()
  await vi.advanceTimersByTimeAsync(1)
  vi.useRealTimers()
  expect(ran).toEqual(['d-1'])
  await drain.drain(['a.ts'], { again: true })
  expect(ran).toEqual(['d-1', 'd-1'])
})

test('a module that is added at the moment when a drain ends is drained too', async () => {
  let addedB = false
  const stage = createStage(undefined, undefined, () => {
    if (!addedB) void stage.drain.drain(['b.ts'])
    addedB = true
  })
  await stage.park('d-1', 1)
  await stage.park('d-2', 2, 'b.ts')
  await stage.drain.drain(['a.ts'])
  await stage.drain.drain([])
  expect(stage.ran).toEqual(['d-1', 'd-2'])
})

test('a stop ends a drain after its current delivery', async () => {
  let stopping: Promise<void> | undefined
  const stage = createStage(async () => void (stopping ??= stage.drain.stop()))
  for (const n of [1, 2]) await stage.park(`d-${n}`, n)
  expect(await stage.drain.drain(['a.ts'])).toEqual({ settled: 0, stillParked: 1 })
  await stopping
  expect(await stage.drain.drain(['a.ts'])).toEqual({ settled: 0, stillParked: 1 })
  expect(stage.ran).toEqual(['d-1'])
})

test('a drain that the store interrupts still reports the deliveries that it has run', async () => {
  const { drain, ran, park } = createStage(async () => {
    if (ran.length === 2) throw new Error('the disk is gone')
  })
  for (const n of [1, 2, 3]) await park(`d-${n}`, n)
  expect(await drain.drain(['a.ts'], { again: true })).toEqual({ settled: 0, stillParked: 1 })
  expect(ran).toEqual(['d-1', 'd-2'])
})
