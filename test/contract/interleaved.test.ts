import { expect, onTestFinished, test } from 'vitest'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import { interleave } from './interleaved.ts'
import { openStores, whyNoPostgres } from './postgres-stage.ts'
import { createClock } from './stage.ts'

test('calls in any order keep lanes, effects and events correct in SQLite', async () => {
  const clock = createClock()
  const store = createMemoryStore({ clock })
  onTestFinished(() => store.close())
  const { done, stale } = await interleave({ stores: [store, store], clock, seed: 1, steps: 2_000 })
  expect([done > 400, stale > 0]).toEqual([true, true])
})

test.skipIf(whyNoPostgres)(
  `calls of two gateways in any order keep lanes, effects and events correct in Postgres`,
  async () => {
    const clock = createClock()
    const stores = await openStores(2, clock)
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    const { done, stale } = await interleave({ stores, clock, seed: 2, steps: 400 })
    expect([done > 80, stale > 0]).toEqual([true, true])
  },
  120_000,
)
