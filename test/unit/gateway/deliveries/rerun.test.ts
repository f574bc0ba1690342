import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Decision } from '../../../../src/core/mapping/decision.ts'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { logStored } from '../../../../src/gateway/deliveries/log-lines.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../../../src/store/store.ts'
import { toGeneration, toTestDelivery, toTestId } from '../../core/mapping/decide.ts'
import { createTestRerunner } from './rerun-stage.ts'
import { type OnParked, type OnStored, reportParked } from '../../../../src/gateway/deliveries/listeners.ts'
import { toDeliveryRow, toPendingSettlement } from '../../../../src/gateway/deliveries/settlement.ts'

const generation = toGeneration([{ match: { path: 'in' }, messageTemplate: 'Say {{text}}' }])
const reasons = { mappingId: 'mapping-1', transformHash: undefined, retain: undefined, trace: [], log: [] }
const parkedDecision: Decision = {
  ...reasons,
  kind: 'park',
  problem: new Problem('transform-failed', 'it was cut off'),
  waitsFor: 't.ts',
}

/** A store with deliveries that wait, and a rerunner over it. */
async function createStage(
  ids: string[],
  change: (store: Store) => Partial<Store> = () => ({}),
  {
    mappingId,
    mappings,
    nextMappings,
  }: {
    mappingId?: string
    mappings?: readonly MappingInput[]
    /** The mappings of a save that goes live as soon as a delivery has begun to run. */
    nextMappings?: readonly MappingInput[]
  } = {},
) {
  const waiting = createMemoryStore({ clock: Date.now })
  for (const id of ids) {
    const delivery = { ...toTestDelivery('in', { text: id }), id }
    const { method, url, path, headers, query, verifiedBy, admitted } = delivery
    await waiting.append({
      id,
      receivedAt: Date.now() + 3_600_000,
      hook: 'in',
      source: undefined,
      event: undefined,
      dedupe: undefined,
      answer: { status: 200, body: '{}' },
      state: 'pending',
      mappingId,
      generation: 'before',
      jobs: [],
      trace: [],
      log: [],
      request: { head: { method, url, path, headers, query, verifiedBy, admitted }, body: delivery.body.bytes },
    })
  }
  const stopping = new AbortController()
  const errors: string[] = []
  const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) }
  const store = new Proxy(waiting, {
    get: (target, name) => Reflect.get(change(target), name) ?? Reflect.get(target, name),
  })
  const first = mappings === undefined ? generation : toGeneration(mappings)
  let current = first
  const readGeneration = () => {
    if (nextMappings !== undefined) queueMicrotask(() => (current = toGeneration(nextMappings)))
    return current
  }
  const parts = { generation: readGeneration, acquire: () => () => {}, store, clock: Date.now, newId: toTestId }
  const parked: string[] = []
  const onParked: OnParked = ({ deliveryId }) => void parked.push(deliveryId)
  const onStored: OnStored = (stored) => {
    logStored(stored, log)
    reportParked(stored, onParked)
  }
  const rerunner = createTestRerunner({ ...parts, onStored, stopping: stopping.signal, log })
  const readState = async (id: string) => (await waiting.delivery(id))?.state
  return {
    rerunner,
    stopping,
    readState,
    errors,
    parked,
    waiting,
    first,
    delivery: (id: string) => ({ ...toTestDelivery('in', { text: id }), id }),
  }
}

describe('waiting deliveries', () => {
  test('pending deliveries run at the next start, even if the clock was set back to before they were received', async () => {
    const { rerunner, readState } = await createStage(['a', 'b'])
    await rerunner.resumePending()
    expect([await readState('a'), await readState('b')]).toEqual(['accepted', 'accepted'])
  })

  test('an outcome that cannot be stored is tried again, and later deliveries wait for it', async () => {
    const settled: string[] = []
    const { rerunner, readState } = await createStage(['a', 'b'], (store) => ({
      settle(id, settlement) {
        settled.push(id)
        if (settled.length <= 2) return Promise.reject(new Problem('store-unavailable', 'full'))
        return store.settle(id, settlement)
      },
    }))
    await rerunner.resumePending()
    expect(settled).toEqual(['a', 'a', 'a', 'b'])
    expect(await readState('b')).toBe('accepted')
    expect(await readState('a')).toBe('accepted')
  })

  test('waiting deliveries are read one at a time, so that new requests run in between', async () => {
    const events: string[] = []
    const { rerunner } = await createStage(['a', 'b'], (store) => ({
      openDeliveries(query) {
        events.push(`at most ${query.limit}`)
        setImmediate(() => events.push('a request'))
        return store.openDeliveries(query)
      },
    }))
    await rerunner.resumePending()
    expect(events).toEqual(['at most 1', 'a request', 'at most 1', 'a request'])
  })

  test('a stop leaves the remaining deliveries to the next start', async () => {
    const { rerunner, stopping, readState } = await createStage(['a', 'b', 'c'], (store) => ({
      settle(id, settlement) {
        stopping.abort()
        return store.settle(id, settlement)
      },
    }))
    await rerunner.resumePending()
    expect([await readState('a'), await readState('b'), await readState('c')]).toEqual([
      'accepted',
      'pending',
      'pending',
    ])
  })

  test('a delivery whose code was interrupted by a stop stays pending', async () => {
    const { rerunner, stopping, readState, delivery } = await createStage(['a'])
    stopping.abort()
    expect(await rerunner.settleLate(Promise.resolve(parkedDecision), delivery('a'), generation)).toBe('waiting')
    expect(await readState('a')).toBe('pending')
  })

  test('a delivery whose code fails is parked, logged and reported once', async () => {
    const { rerunner, readState, errors, parked, delivery } = await createStage(['a'])
    const park = (before?: 'parked') =>
      rerunner.settleLate(Promise.resolve(parkedDecision), delivery('a'), generation, before)
    expect(await park()).toBe('parked')
    expect(await readState('a')).toBe('parked')
    expect(errors).toEqual(['parked: it was cut off "hookloom show a" shows the details.'])
    expect(await park('parked')).toBe('parked')
    expect(errors).toHaveLength(1)
    expect(parked).toEqual(['a'])
  })

  const elsewhere = [{ match: { path: 'elsewhere' } }]
  const unmet = [{ match: { path: 'in', payload: { kind: 'other' } } }]

  test.each([
    ['no mapping has its hook', elsewhere],
    ['the conditions of all mappings are false', unmet],
  ])('a delivery that a mapping took before the stop is parked, logged and reported if %s', async (_why, mappings) => {
    const { rerunner, waiting, errors, parked } = await createStage(['a'], undefined, { mappingId: 'gone', mappings })
    await rerunner.resumePending()
    const record = await waiting.delivery('a')
    expect(record).toMatchObject({ state: 'parked', mappingId: 'gone', problem: { code: 'mapping-missing' } })
    expect(await waiting.waitedFor()).toEqual(['mapping:'])
    expect(errors[0]).toMatch(/^parked: No mapping takes it since /)
    expect(parked).toEqual(['a'])
    const [open] = await waiting.openDeliveries({ limit: 1 })
    if (open === undefined) throw new Error('it is parked')
    expect(await rerunner.rerun(open)).toBe('parked')
    expect((await waiting.delivery('a'))?.problem, 'the first moment stays').toEqual(record?.problem)
  })

  test('a delivery that no mapping takes gets the generation that decided it, even if a save goes live meanwhile', async () => {
    const nextMappings = [{ match: { path: 'in' }, messageTemplate: 'Say {{text}}' }]
    const saved = { mappingId: 'gone', mappings: elsewhere, nextMappings }
    const { rerunner, waiting, first } = await createStage(['a'], undefined, saved)
    await rerunner.resumePending()
    expect(await waiting.delivery('a')).toMatchObject({ state: 'parked', generation: first.id })
  })

  test('an undecided delivery is skipped if no conditions match, and parked if its hook is missing', async () => {
    const skipped = await createStage(['a'], undefined, { mappings: unmet })
    await skipped.rerunner.resumePending()
    expect(await skipped.readState('a')).toBe('skipped')
    const kept = await createStage(['a'], undefined, { mappings: elsewhere })
    await kept.rerunner.resumePending()
    expect(await kept.readState('a')).toBe('parked')
  })

  test('a pending delivery whose request is damaged is parked, and the ones after it run', async () => {
    const change = (store: Store): Partial<Store> => ({
      openDeliveries: async (query) =>
        (await store.openDeliveries(query)).map((open) =>
          open.deliveryId === 'a' ? { ...open, request: undefined } : open,
        ),
    })
    const { rerunner, waiting } = await createStage(['a', 'b'], change)
    await rerunner.resumePending()
    expect(await waiting.delivery('a')).toMatchObject({ state: 'parked', problem: { code: 'row-damaged' } })
    expect((await waiting.delivery('b'))?.state).toBe('accepted')
    expect((await waiting.openDeliveries({ limit: 9 })).map(({ request }) => request !== undefined)).toEqual([true])
  })

  test('a delivery whose body no mapping reads is parked', async () => {
    const { rerunner, waiting } = await createStage(['a'], undefined, { mappingId: 'text', mappings: elsewhere })
    const [open] = await waiting.openDeliveries({ limit: 1 })
    if (open?.request === undefined) throw new Error('it is pending')
    const headers = { 'content-type': 'text/plain' }
    const text = { ...open, request: { head: { ...open.request.head, headers }, body: Buffer.from('plain') } }
    expect(await rerunner.rerun(text)).toBe('parked')
    expect((await waiting.delivery('a'))?.problem?.code).toBe('mapping-missing')
  })
})

test('a batch whose gateway ended while it was split is split again, and each item becomes one run', async () => {
  const store = createMemoryStore({ clock: Date.now })
  const batch = toGeneration([{ match: { path: 'in' }, forEach: 'items', messageTemplate: 'Item {{items[0]}}' }])
  const payload = { items: Array.from({ length: 10_001 }, (_, n) => n) }
  const delivery = { ...toTestDelivery('in', payload), id: randomUUID() }
  const settlement = toPendingSettlement(delivery, 'before')
  await store.append(toDeliveryRow(delivery, { settlement, answer: { status: 200, body: '{}' }, dedupe: undefined }))
  const run = async (appends: number) => {
    const stopping = new AbortController()
    let left = appends
    const append: Store['append'] = async (row) => {
      if (left === 0) stopping.abort()
      left -= 1
      if (stopping.signal.aborted) throw new Error('the process has ended')
      return store.append(row)
    }
    const rerunner = createTestRerunner({
      generation: () => batch,
      acquire: () => () => {},
      store: new Proxy(store, { get: (target, name) => (name === 'append' ? append : Reflect.get(target, name)) }),
      clock: Date.now,
      newId: randomUUID,
      stopping: stopping.signal,
      log: silentLog,
    })
    await rerunner.resumePending()
  }
  await run(5)
  expect(await store.delivery(delivery.id)).toMatchObject({ state: 'pending' })
  await run(1_000)
  await expect
    .poll(async () => (await store.counts()).deliveries)
    .toMatchObject({ pending: 0, accepted: 21, skipped: 1 })
  const parts = (await store.deliveries({ limit: 50 })).filter(({ deliveryId }) => deliveryId !== delivery.id)
  const messages = parts.flatMap(({ jobs }) =>
    jobs.map(({ planned }) => (planned.kind === 'agent' ? planned.action.message : '')),
  )
  expect(messages.toSorted()).toEqual(payload.items.map((n) => `Item ${n}`).toSorted())
})
