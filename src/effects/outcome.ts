// What a step is given, and how it can end. Nothing here writes: what is recorded is recorded by the caller.
import type { Channel } from '../model/channel.ts'
import type { Step } from '../model/job.ts'
import type { Runner } from '../model/runner.ts'
import type { NewEvent, NewMessage, Store } from '../store/store.ts'
import type { Failure } from './retry.ts'
import type { DefaultRoute } from './route.ts'

/** What steps are made with. */
export type StepTools = {
  readonly store: Pick<Store, 'messages'>
  readonly runner: Runner
  readonly channels: ReadonlyMap<string, Channel>
  readonly clock: () => number
  readonly newBoundaryId: () => string
  readonly defaultRoute: DefaultRoute | undefined
  /** Of runs that name no time of their own. */
  readonly timeoutSeconds: number
  /** One line of a runner for the operator. */
  readonly note: (message: string) => void
}

/** A step to record with its rows, or why there is none. `aborted`: the signal ended first, nothing is known. */
export type StepOutcome =
  | {
      readonly kind: 'recorded'
      readonly step: Pick<Step, 'state' | 'detail' | 'result'>
      readonly events?: readonly NewEvent[]
      readonly messages?: readonly NewMessage[]
    }
  | Failure
  | { readonly kind: 'aborted' }
