// Shapes in the store, on each engine: several gateways add to the same shape, and the number of shapes has a limit.
import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import type { Allowance } from '../../../../src/gateway/deliveries/shapes/allowance.ts'
import { createShapeLearner } from '../../../../src/gateway/deliveries/shapes/learner.ts'
import { readShapes } from '../../../../src/gateway/deliveries/shapes/stored.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { readRequests } from '../../../../src/gateway/shapes/event-shape.ts'
import { listPlaces } from '../../../../src/gateway/shapes/places.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../../../src/store/store.ts'
import { openStores, whyNoPostgres } from '../../../contract/postgres-stage.ts'
import { toGeneration, toTestDelivery } from '../../core/mapping/decide.ts'

const hook = toGeneration([{ id: 'orders', match: { path: 'orders' }, messageTemplate: 'x' }]).findHook('orders')
const createLearner = (store: Store, onShapeWritten?: (hook: string) => void) =>
  createShapeLearner({ store, development: false, onShapeWritten, log: silentLog })
const toDelivery = (payload: JsonObject) => toTestDelivery('orders', payload)

const engines: [string, () => Promise<Store>][] = [['SQLite', async () => createMemoryStore({ clock: Date.now })]]
if (whyNoPostgres === undefined) {
  engines.push([
    'Postgres',
    async () => {
      const [store] = await openStores(1, Date.now)
      if (store === undefined) throw new Error('no store was opened')
      return store
    },
  ])
}

describe.each(engines)('shapes in %s', (_, openStore) => {
  async function open(): Promise<Store> {
    const store = await openStore()
    onTestFinished(() => store.close())
    return store
  }

  test('several gateways add to the shape of an event, and no gateway overwrites the shape that another one learnt', async () => {
    const store = await open()
    const gateways = [createLearner(store), createLearner(store), createLearner(store)]
    for (const [at, gateway] of gateways.entries()) {
      for (let count = 0; count < 10; count += 1) gateway.note(toDelivery({ id: at, [`field_${'abc'[at]}`]: 1 }), hook)
    }
    await Promise.all(gateways.map((gateway) => gateway.flush()))
    const shapes = await readShapes(store)
    expect(shapes).toHaveLength(1)
    const [shape] = shapes
    expect(shape && readRequests(shape).count).toBe(30)
    const counts = shape && listPlaces(shape.shape).map(({ path, count }) => [path, count])
    expect(Object.fromEntries(counts ?? [])).toEqual({ id: 30, field_a: 10, field_b: 10, field_c: 10 })
  })

  test('three hundred events leave at most two hundred shapes', async () => {
    const store = await open()
    const learner = createLearner(store)
    for (let at = 0; at < 300; at += 1) {
      const word = [...String(at)].map((digit) => 'abcdefghij'[Number(digit)]).join('')
      learner.note({ ...toDelivery({ id: 1 }), event: `event.${word}` }, hook)
      if (at % 25 === 24) await learner.flush()
    }
    await learner.flush()
    expect(await readShapes(store, 'orders')).toHaveLength(200)
    expect(await readShapes(store, 'order')).toEqual([])
  })

  test('under load, shapes are learnt from only some requests', async () => {
    const store = await open()
    const learner = createLearner(store)
    for (let count = 0; count < 1_000; count += 1) learner.note(toDelivery({ id: randomUUID() }), hook)
    await learner.flush()
    const [shape] = await readShapes(store)
    expect(shape && readRequests(shape).count).toBeLessThan(100)
    expect(shape && readRequests(shape).count).toBeGreaterThan(0)
  })

  test('learnt shapes are not lost while the store fails', async () => {
    const store = await open()
    let fails = true
    const appendAll: Store['appendAll'] = async (...given) => {
      if (fails) throw new Error('the disk is full')
      return store.appendAll(...given)
    }
    const learner = createLearner({ ...store, appendAll })
    learner.note(toDelivery({ id: 1 }), hook)
    await learner.flush()
    expect(await readShapes(store)).toEqual([])
    fails = false
    learner.note(toDelivery({ id: 2 }), hook)
    await learner.stop()
    const [shape] = await readShapes(store)
    expect(shape && readRequests(shape).count).toBe(2)
  })
})

test('a new event beyond the limit does not make the next write earlier', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const store = createMemoryStore({ clock: Date.now })
  const write = vi.fn<Store['appendAll']>(store.appendAll)
  const learner = createLearner({ ...store, appendAll: write })
  const letters = [...'abcdefghijklmno']
  const words = letters.flatMap((one) => letters.map((other) => one + other)).slice(0, 200)
  for (const [at, word] of words.entries()) {
    learner.note({ ...toDelivery({ id: 1 }), event: `event.${word}` }, hook)
    if (at % 25 === 24) await learner.flush()
  }
  // let earlier timers end
  await vi.advanceTimersByTimeAsync(20_000)
  write.mockClear()
  learner.note({ ...toDelivery({ id: 1 }), event: 'event.late' }, hook)
  learner.note({ ...toDelivery({ id: 1 }), event: 'event.aa' }, hook)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(write).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(write).toHaveBeenCalledTimes(1)
})

test('an event that comes during a write is written with the next one, so that a write ends under load', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const store = createMemoryStore({ clock: Date.now })
  let release = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const write = vi.fn<Store['appendAll']>(async (...given) => {
    await held
    return store.appendAll(...given)
  })
  const allowance: Allowance = { hasTime: () => true, spend: (work) => work() }
  const parts = { store: { ...store, appendAll: write }, development: false, allowance, log: silentLog }
  const learner = createShapeLearner(parts)
  learner.note(toDelivery({ id: 1 }), hook)
  await vi.advanceTimersByTimeAsync(2_000)
  learner.note(toDelivery({ id: 2 }), hook)
  await vi.advanceTimersByTimeAsync(500)
  release()
  await vi.advanceTimersByTimeAsync(100)
  expect(write).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(write).toHaveBeenCalledTimes(2)
})

test('while there is no time to learn, one request of each event waits, so that the shapes of rare events are learnt too', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const store = createMemoryStore({ clock: Date.now })
  let turns = 0
  const allowance: Allowance = {
    hasTime: () => turns > 0,
    spend(work) {
      turns -= 1
      work()
    },
  }
  const learner = createShapeLearner({ store, development: false, allowance, log: silentLog })
  const often = (times: number) => {
    for (let count = 0; count < times; count += 1) learner.note({ ...toDelivery({ id: 1 }), event: 'often' }, hook)
  }
  often(1)
  // the learner finds out that no time is left
  await vi.advanceTimersByTimeAsync(10)
  often(1_000)
  learner.note({ ...toDelivery({ id: 1 }), event: 'rare' }, hook)
  often(1_000)
  turns = 2
  await vi.advanceTimersByTimeAsync(1_000)
  expect(turns).toBe(0)
  await learner.flush()
  const counts = (await readShapes(store)).map((shape) => [shape.event, readRequests(shape).count])
  expect(Object.fromEntries(counts)).toEqual({ often: 1, rare: 1 })
})

test('a payload is not read while its delivery is noted', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const spend = vi.fn<Allowance['spend']>((work) => work())
  const store = createMemoryStore({ clock: Date.now })
  const learner = createShapeLearner({
    store,
    development: false,
    allowance: { hasTime: () => true, spend },
    log: silentLog,
  })
  learner.note(toDelivery({ id: 1 }), hook)
  await Promise.resolve()
  expect(spend).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(10)
  expect(spend).toHaveBeenCalledTimes(1)
  await learner.stop()
})

test('a gateway in development learns shapes even if the allowance has no time', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const store = createMemoryStore({ clock: Date.now })
  const allowance = { hasTime: () => false, spend: (work: () => void) => work() }
  const learner = createShapeLearner({ store, development: true, allowance, log: silentLog })
  for (let count = 0; count < 100; count += 1) {
    learner.note(toDelivery({ id: 1 }), hook)
    await vi.advanceTimersByTimeAsync(50)
  }
  await learner.flush()
  const [shape] = await readShapes(store)
  expect(shape && readRequests(shape).count).toBe(100)
})
