import { expect, test } from 'vitest'
import { createModuleState, listModuleState } from '../../../../src/gateway/deliveries/module-state.ts'
import { stateLimits } from '../../../../src/core/model/transform-state.ts'
import type { StateChange } from '../../../../src/core/mapping/state.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { newDelivery } from '../../../contract/stage.ts'

function openStage() {
  let now = 1_700_000_000_000
  const clock = () => now
  const warnings: string[] = []
  const log = { debug() {}, info() {}, error() {}, warn: (_: object, message: string) => void warnings.push(message) }
  const store = createMemoryStore({ clock })
  const state = createModuleState({ store, clock, log })
  /** Sets values in one delivery. */
  const set = async (keys: readonly string[], json = '1', module = 'a.ts') => {
    now += 1
    const changes = keys.map((key): StateChange => ({ module, key, json, forMs: 60_000, read: undefined }))
    await store.appendAll([newDelivery({ at: now })], (await state.planMoves(changes)) ?? [])
    await state.noteStored(changes)
  }
  const list = async (module = 'a.ts') => (await listModuleState(store, now, module)).map(({ key }) => key)
  return { set, list, state, warnings }
}

const listKeys = (from: number, count: number) => Array.from({ length: count }, (_, index) => `k${from + index}`)

test('a module that sets too many values loses the oldest ones, with a warning, and no other module does', async () => {
  const { set, list, warnings } = openStage()
  await set(['kept'], '1', 'b.ts')
  for (let from = 0; from < stateLimits.keysOfModule; from += 250) await set(listKeys(from, 250))
  expect([(await list()).length, warnings]).toEqual([stateLimits.keysOfModule, []])
  await set(listKeys(stateLimits.keysOfModule, 250))
  const left = await list()
  expect(left).toHaveLength(stateLimits.keysOfModule * 0.9)
  expect([left.includes('k0'), left.includes('k5249')]).toEqual([false, true])
  expect(warnings).toEqual([
    expect.stringContaining('a.ts has set more than its state can have (5000 keys and 1024 kB)'),
  ])
  expect(await list('b.ts')).toEqual(['kept'])
})

test('a module whose values are too large in total loses some of them', async () => {
  const { set, list } = openStage()
  const large = JSON.stringify('x'.repeat(stateLimits.valueBytes - 2))
  for (let from = 0; from < 500; from += 250) await set(listKeys(from, 250), large)
  const left = await list()
  expect(left.length).toBeLessThanOrEqual(stateLimits.bytesOfModule / stateLimits.valueBytes)
  expect(left.length).toBeGreaterThan(100)
})

test('changes of context.state are refused if a value that the code read has changed since, but not if the code only set it', async () => {
  const { set, state } = openStage()
  const read = await state.read({ module: 'a.ts', key: 'k' })
  const change: StateChange = { module: 'a.ts', key: 'k', json: '2', forMs: 60_000, read }
  expect(await state.planMoves([change])).toHaveLength(1)
  await set(['k'])
  expect(await state.planMoves([change])).toBeUndefined()
  expect(await state.planMoves([{ ...change, read: undefined }])).toHaveLength(1)
  expect(await state.read({ module: 'a.ts', key: 'k' })).toMatchObject({ json: '1' })
})

test('calls that work on one key of context.state run in order, even after a failure, and other keys do not wait', async () => {
  const { state } = openStage()
  const order: string[] = []
  const toStateName = (key: string) => ({ module: 'a.ts', key })
  const first = state.runInTurn([toStateName('a'), toStateName('b')], async () => {
    await Promise.resolve()
    order.push('first')
    throw new Error('it failed')
  })
  const second = state.runInTurn([toStateName('b'), toStateName('a')], async () => void order.push('second'))
  const other = state.runInTurn([toStateName('c')], async () => void order.push('other'))
  await expect(first).rejects.toThrow('it failed')
  await Promise.all([second, other])
  expect(order).toEqual(['other', 'first', 'second'])
})
