// Tests each promise of store.ts from both sides. A new engine calls this suite, and adds no tests of these promises.
import { afterEach, beforeEach, describe } from 'vitest'
import type { Clock, Store } from '../../src/store/store.ts'
import { describeAudit } from './audit.ts'
import { describeAwaits } from './awaits.ts'
import { describeBudgets } from './budgets.ts'
import { describeCounts } from './counts.ts'
import { describeCursors } from './cursors.ts'
import { describeDeliveries } from './deliveries.ts'
import { describeDue } from './due.ts'
import { describeFlow } from './flow.ts'
import { describeHolds } from './holds.ts'
import { describeJobs } from './jobs.ts'
import { describeKept } from './kept.ts'
import { describeLanes } from './lanes.ts'
import { describeLeases } from './leases.ts'
import { describeNodes } from './nodes.ts'
import { describeOpen } from './open.ts'
import { describePosts } from './posts.ts'
import { describeQuarantine } from './quarantine.ts'
import { describeReads } from './reads.ts'
import { describeRunnerState } from './runner-state.ts'
import { describeSessions } from './sessions.ts'
import { createClock, type Moved } from './stage.ts'
import { describeSpent } from './spent.ts'
import { describeSweep } from './sweep.ts'
import { describeTasks } from './tasks.ts'
import { describeTroubles } from './troubles.ts'
import { describeTurns } from './turns.ts'
import { describeKeptBack } from './kept-back.ts'
import { describeWaits } from './waits.ts'
import { describeWakes } from './wakes.ts'

/** The store under test, and its clock. */
export type Stage = { readonly store: Store; readonly clock: Moved }

/** `whySkipped`: why the engine cannot be tested on this machine. */
export function storeContract(name: string, open: (clock: Clock) => Promise<Store>, whySkipped?: string): void {
  const reason = whySkipped === undefined ? '' : ` (skipped: ${whySkipped})`
  describe.skipIf(whySkipped !== undefined)(`the ${name} store${reason}`, () => {
    let stage: Stage
    beforeEach(async () => {
      const clock = createClock()
      stage = { clock, store: await open(clock) }
    })
    afterEach(async () => {
      await stage.store.close()
    })
    const parts = [
      describeDeliveries,
      describeWakes,
      describeOpen,
      describeAwaits,
      describeCursors,
      describeRunnerState,
      describeJobs,
      describeDue,
      describeTasks,
      describeLanes,
      describeHolds,
      describeFlow,
      describePosts,
      describeSessions,
      describeQuarantine,
      describeCounts,
      describeReads,
      describeKept,
      describeSweep,
      describeLeases,
      describeNodes,
      describeBudgets,
      describeAudit,
      describeSpent,
      describeTroubles,
      describeTurns,
      describeKeptBack,
      describeWaits,
    ]
    for (const part of parts) part(() => stage)
  })
}
