import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toJsonBody } from '../../src/core/model/body.ts'
import { describe, expect, test } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { toDeliveryHead } from '../../src/core/model/delivery.ts'
import { createDrain } from '../../src/gateway/deliveries/drain.ts'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../src/store/store.ts'
import { createTestRerunner } from '../unit/gateway/deliveries/rerun-stage.ts'
import { createStage, says, type Stage } from './stage.ts'

let ids = 0
const newId = () => `n-${++ids}`

/** A store with `count` parked deliveries of x.ts, the oldest first, and its drain. */
async function createParked(stage: Stage, count: number) {
  let now = 1000
  const store = createMemoryStore({ clock: () => now })
  for (let n = 1; n <= count; n += 1) await park(store, n, stage.live.current().id)
  now += 100_000
  const rerunner = createTestRerunner({
    generation: stage.live.current,
    acquire: stage.live.acquire,
    store,
    clock: () => now,
    newId,
    log: silentLog,
  })
  const drain = createDrain({ store, rerunner, generation: stage.live.current, log: silentLog })
  return { store, rerunner, drain }
}

async function park(store: Store, n: number, generation: string): Promise<void> {
  const head = {
    method: 'POST',
    url: '/hooks/x',
    path: 'x',
    headers: { 'content-type': 'application/json' },
    query: {},
    verifiedBy: undefined,
    admitted: { token: true, signedFor: [] },
  }
  await store.append({
    id: `d-${n}`,
    receivedAt: 1000 + n,
    hook: 'x',
    source: undefined,
    event: undefined,
    dedupe: undefined,
    answer: { status: 200, body: '' },
    state: 'parked',
    mappingId: 'mapping-1',
    generation,
    waitsFor: 'x.ts',
    jobs: [],
    trace: [],
    log: [],
    request: { head: toDeliveryHead({ ...emptyDelivery, ...head }), body: Buffer.from(JSON.stringify({ n })) },
  })
}

const emptyDelivery = {
  id: '',
  receivedAt: 0,
  body: toJsonBody(null),
  source: undefined,
  sender: undefined,
  event: undefined,
}

async function readStates(store: Store) {
  const records = await store.deliveries({ limit: 1000 })
  return Object.fromEntries(records.map(({ deliveryId, state }) => [deliveryId, state]))
}

const readMessages = async (store: Store) =>
  (await store.claim({ limit: 1000, leaseMs: 1000 })).map(({ planned }) =>
    planned.kind === 'agent' ? planned.action.message : '',
  )

const renderEcho = (text: string) => `export default ({ payload }) => ({ message: ${text} })\n`
const renderPoison = (n: number, text: string) =>
  `export default ({ payload }) => { if (payload.n === ${n}) throw new Error('poison'); return { message: ${text} } }\n`

describe('parked deliveries of a module', () => {
  test('parked deliveries run when a fixed version goes live, the oldest first', async () => {
    const stage = await createStage({ 'x.ts': 'export default (' })
    const { store, drain } = await createParked(stage, 5)
    const drained = new Promise((done) => {
      stage.onSwap((_generation, { retryable }) => done(drain.drain(retryable)))
    })
    await stage.write({ 'x.ts': renderEcho('`of ${payload.n}`') })
    expect(await drained).toEqual({ settled: 5, stillParked: 0 })
    expect(await readMessages(store)).toEqual(['of 1', 'of 2', 'of 3', 'of 4', 'of 5'])
  })

  test('a parked delivery that fails again does not stop the others, and waits for the next version', async () => {
    const stage = await createStage({ 'x.ts': 'export default (' }, { watch: false })
    const { store, drain } = await createParked(stage, 3)
    await stage.write({ 'x.ts': renderPoison(2, '`of ${payload.n}`') })
    await stage.live.reload()
    expect(await drain.drain(['x.ts'])).toEqual({ settled: 2, stillParked: 1 })
    expect(await readStates(store)).toEqual({ 'd-1': 'accepted', 'd-2': 'parked', 'd-3': 'accepted' })

    expect(await drain.drain(['x.ts']), 'once a generation').toEqual({ settled: 0, stillParked: 0 })
    expect(await drain.drain(['x.ts'], { again: true }), 'or when asked').toEqual({ settled: 0, stillParked: 1 })
    await stage.write({ 'x.ts': renderEcho('`mended ${payload.n}`') })
    await stage.live.reload()
    expect(await drain.drain(['x.ts'])).toEqual({ settled: 1, stillParked: 0 })
    expect(await readMessages(store)).toEqual(['of 1', 'of 3', 'mended 2'])
  })

  test('parked deliveries of one module keep waiting when another module is fixed', async () => {
    const stage = await createStage({ 'x.ts': 'export default (' }, { watch: false })
    const { store, drain } = await createParked(stage, 2)
    await stage.write({ 'x.ts': says('good') })
    await stage.live.reload()
    expect(await drain.drain(['y.ts'])).toEqual({ settled: 0, stillParked: 0 })
    expect(await readStates(store)).toEqual({ 'd-1': 'parked', 'd-2': 'parked' })
  })

  test('a drain starts again with the oldest parked delivery when another version goes live, and runs no accepted one again', async () => {
    const stage = await createStage({ 'x.ts': 'export default (' }, { watch: false })
    const { store, rerunner } = await createParked(stage, 4)
    const ran: string[] = []
    const drain = createDrain({
      store,
      generation: stage.live.current,
      log: silentLog,
      rerunner: {
        resumePending: async () => {},
        waitForRun: async () => {},
        async rerun(open) {
          ran.push(open.deliveryId)
          const state = await rerunner.rerun(open)
          if (ran.length === 2) {
            await stage.write({ 'x.ts': renderEcho('`new ${payload.n}`') })
            await stage.live.reload()
            void drain.drain(['x.ts'])
          }
          return state
        },
      },
    })
    await stage.write({ 'x.ts': renderPoison(1, '`old ${payload.n}`') })
    await stage.live.reload()
    expect(await drain.drain(['x.ts'])).toEqual({ settled: 4, stillParked: 0 })
    expect(ran).toEqual(['d-1', 'd-2', 'd-1', 'd-3', 'd-4'])
    expect(await readMessages(store)).toEqual(['old 2', 'new 1', 'new 3', 'new 4'])
  })

  test('a retry of a delivery that a drain runs at the moment runs it again, because the run may not have seen the repair', async () => {
    const stage = await createStage({ 'x.ts': 'export default (' }, { watch: false })
    const { store, drain } = await createParked(stage, 1)
    const [begun, mended, goOn] = ['begun', 'mended', 'go-on'].map((name) => join(stage.dir, name))
    const code = `import { existsSync, writeFileSync } from 'node:fs'
      export default async () => {
        const isMended = existsSync(${JSON.stringify(mended)})
        writeFileSync(${JSON.stringify(begun)}, '')
        while (!existsSync(${JSON.stringify(goOn)})) await new Promise((resolve) => setTimeout(resolve, 5))
        if (!isMended) throw new Error('not mended')
        return { message: 'mended' }
      }`
    await stage.write({ 'x.ts': code })
    await stage.live.reload()
    const draining = drain.drain(['x.ts'])
    await expect.poll(() => existsSync(begun ?? '')).toBe(true)
    writeFileSync(mended ?? '', '')
    const retrying = drain.retryParked({ hook: undefined, after: undefined })
    setTimeout(() => writeFileSync(goOn ?? '', ''), 50)
    expect(await draining).toEqual({ settled: 0, stillParked: 1 })
    expect(await retrying).toMatchObject({ settled: 1, stillParked: 0 })
    expect(await readMessages(store)).toEqual(['mended'])
  })

  test('a drain that is stopped leaves the rest parked, and the next drain runs it', async () => {
    const stage = await createStage({ 'x.ts': 'export default (' }, { watch: false })
    const { store, rerunner } = await createParked(stage, 3)
    await stage.write({ 'x.ts': renderEcho('`of ${payload.n}`') })
    await stage.live.reload()
    const parts = { store, generation: stage.live.current, log: silentLog }
    const first = createDrain({
      ...parts,
      rerunner: {
        resumePending: async () => {},
        waitForRun: async () => {},
        async rerun(open) {
          void first.stop()
          return rerunner.rerun(open)
        },
      },
    })
    expect(await first.drain(['x.ts'])).toEqual({ settled: 1, stillParked: 0 })
    expect(await readStates(store)).toEqual({ 'd-1': 'accepted', 'd-2': 'parked', 'd-3': 'parked' })
    expect(await createDrain({ ...parts, rerunner }).drain(['x.ts'])).toEqual({ settled: 2, stillParked: 0 })
  })

  test('two drains at the same time run each delivery once', async () => {
    const stage = await createStage({ 'x.ts': 'export default (' }, { watch: false })
    const { store, rerunner } = await createParked(stage, 5)
    await stage.write({ 'x.ts': renderEcho('`of ${payload.n}`') })
    await stage.live.reload()
    const parts = { store, rerunner, generation: stage.live.current, log: silentLog }
    await Promise.all([createDrain(parts).drain(['x.ts']), createDrain(parts).drain(['x.ts'])])
    expect(await readMessages(store)).toEqual(['of 1', 'of 2', 'of 3', 'of 4', 'of 5'])
  })
})
