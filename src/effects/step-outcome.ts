// How a step ends. The caller records the result; `deliver` also saves its posts while it sends them.
import type { Step } from '../model/job.ts'
import type { JobReport } from '../store/store.ts'
import type { Failure } from './retry.ts'

/** A step to record with its rows. */
export type Recorded = Pick<
  JobReport,
  'events' | 'messages' | 'consumedUpTo' | 'runnerState' | 'recipient' | 'posts'
> & {
  readonly kind: 'recorded'
  readonly step: Omit<Step, 'name' | 'at'>
  /** Events that asked for a turn at once are still waiting. */
  readonly leavesWakes?: boolean
}

/** A step to record, or why there is none. `aborted`: the signal ended first, and the result is not known. */
export type StepOutcome = Recorded | Failure | { readonly kind: 'aborted' }
