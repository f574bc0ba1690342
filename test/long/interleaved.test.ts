// Ten thousand calls of two gateways on one Postgres.
import { expect, onTestFinished, test } from 'vitest'
import { interleave } from '../contract/interleaved.ts'
import { openStores, whyNoPostgres } from '../contract/postgres-stage.ts'
import { createClock } from '../contract/stage.ts'
import { count } from '../counts.ts'
import { seed, withSeed } from '../seed.ts'

test.skipIf(whyNoPostgres)(
  'ten thousand calls of two gateways keep lanes, effects and events correct',
  async (context) => {
    const clock = createClock()
    const stores = await openStores(2, clock)
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    const { done, stale } = await withSeed(() => interleave({ stores, clock, seed, steps: 10_000 }))
    expect([done > 2_000, stale > 0]).toEqual([true, true])
    count(context, { lost: 0, twice: 0, steps: 10_000, 'runs done': done, 'late reports': stale })
  },
  1_800_000,
)
