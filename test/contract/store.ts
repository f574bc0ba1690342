// The promises of store.ts, one test each and from both sides. A new engine calls this and adds nothing.
import { afterEach, beforeEach, describe } from 'vitest'
import type { Clock, Store } from '../../src/store/store.ts'
import { describeDeliveries } from './deliveries.ts'
import { describeJobs } from './jobs.ts'
import { describeLanes } from './lanes.ts'
import { describeReads } from './reads.ts'
import { createClock, type Moved } from './stage.ts'
import { describeSweep } from './sweep.ts'

/** The store under test and the clock that it goes by. */
export type Stage = { readonly store: Store; readonly clock: Moved }

export function storeContract(name: string, open: (clock: Clock) => Promise<Store>): void {
  describe(`the ${name} store`, () => {
    let stage: Stage
    beforeEach(async () => {
      const clock = createClock()
      stage = { clock, store: await open(clock) }
    })
    afterEach(async () => {
      await stage.store.close()
    })
    for (const part of [describeDeliveries, describeJobs, describeLanes, describeReads, describeSweep])
      part(() => stage)
  })
}
