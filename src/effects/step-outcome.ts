// How a step ends, and what a step is given. The caller records the result; `deliver` also saves its posts while it sends them.
import type { Channel } from '../model/channel.ts'
import type { Post, Step } from '../model/job.ts'
import type { Runner } from '../model/runner.ts'
import type { JobReport, Store } from '../store/store.ts'
import type { Agent } from './agents.ts'
import type { Failure } from './retry.ts'
import type { DefaultRoute } from './route.ts'
import type { WorkspaceReader } from './workspace.ts'

/** What steps are made with. */
export type StepTools = {
  readonly store: Pick<Store, 'messages' | 'session' | 'waiting'>
  readonly agent: (agentId: string) => Agent
  /** By name; undefined where there is none of this name. */
  readonly runner: (name: string) => Runner | undefined
  /** By name; a channel that is not in it is not configured. */
  readonly channels: ReadonlyMap<string, Channel>
  readonly readWorkspaceFile: WorkspaceReader
  readonly clock: () => number
  readonly newBoundaryId: () => string
  readonly defaultRoute: DefaultRoute | undefined
  /** Writes the messages of a reply down as they stand. False: the job is not ours any more. */
  readonly savePosts: (posts: readonly Post[]) => Promise<boolean>
  /** Why an agent cannot be woken now; see plan.ts. */
  readonly whyDeferred: (agentId: string) => string | undefined
  /** One line of a runner for the operator. */
  readonly note: (message: string) => void
}

/** A step to record with its rows. */
export type Recorded = Pick<
  JobReport,
  'events' | 'messages' | 'consumedUpTo' | 'runnerState' | 'recipient' | 'posts'
> & {
  readonly kind: 'recorded'
  readonly step: Omit<Step, 'name' | 'at'>
  /** Events wait on that had asked for a turn at once. */
  readonly leavesWakes?: boolean
}

/** A step to record, or why there is none. `aborted`: the signal ended first, nothing is known. */
export type StepOutcome = Recorded | Failure | { readonly kind: 'aborted' }
