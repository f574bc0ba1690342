// The definition of a step, and the dependencies that it may use. steps/ has one file a step, and steps.ts is the table of them.
import type { Planned } from '../model/action.ts'
import type { Channel } from '../model/channel.ts'
import type { Config } from '../model/config.ts'
import type { ClaimedJob, Post } from '../model/job.ts'
import type { Runner } from '../model/runner.ts'
import type { Clock, Store } from '../store/store.ts'
import type { Agent } from './agents.ts'
import type { PlanContext, RunEnd } from './plan.ts'
import type { StepOutcome } from './retry.ts'
import type { DefaultRoute } from './route.ts'
import type { WorkspaceReader } from '../runners/workspace.ts'

/** A wake has nothing to perform: all of its steps are recorded when it is accepted. */
type PerformablePlan = Exclude<Planned, { kind: 'wake' }>
type PerformablePlanOf<Kind> = Extract<PerformablePlan, { kind: Kind }>

export type StepInput<P extends PerformablePlan> = {
  readonly planned: P
  readonly job: ClaimedJob
  readonly agent: Agent
}

/** The dependencies of all steps; each takes those that it needs. */
export type StepTools = {
  readonly store: Pick<Store, 'messages' | 'session' | 'waiting'>
  readonly clock: Clock
  /** The runner of this name; undefined if there is none. */
  readonly runner: (name: string) => Runner | undefined
  readonly readWorkspaceFile: WorkspaceReader
  readonly newBoundaryId: () => string
  /** Logs one line of a runner for the operator. */
  readonly note: (message: string) => void
  /** By name; a channel that is not in it is not configured. */
  readonly channels: ReadonlyMap<string, Channel>
  readonly defaultRoute: DefaultRoute | undefined
  /** Saves the messages of a reply with their present states. False: the lease of the job is lost. */
  readonly savePosts: (posts: readonly Post[]) => Promise<boolean>
  /** False: another worker may have the job since the store last confirmed the lease. A step that sends something asks first. */
  readonly mayAct: () => boolean
  readonly wakeStep: PlanContext['wakeStep']
}

const retryConfigs = {
  'agents.defaults.retry': ({ agents }: Config) => agents.defaults.retry,
  'channels.retry': ({ channels }: Config) => channels.retry,
} as const

/** Every field is required, so that the compiler reports a new step that lacks one. */
type StepDefinition<Kind extends Planned['kind']> = {
  /** What it does, for the table of the page. */
  readonly about: string
  /** The kinds of jobs that have it. */
  readonly of: readonly Kind[]
  /** One attempt. An exception is a failure that is tried again; so is the end of the process. */
  readonly perform: (
    input: StepInput<PerformablePlanOf<Kind>>,
    tools: StepTools,
    signal: AbortSignal,
  ) => StepOutcome | Promise<StepOutcome>
  /**
   * The key of the configuration that says for how long it is tried again while the other side is unavailable; undefined: there is no
   * other side.
   */
  readonly retry: keyof typeof retryConfigs | undefined
  /** Whether the log has a line when it is recorded. It always has one when it fails. */
  readonly isLogged: boolean
  /** The end of the run as the main session reads it when this step failed permanently; undefined: it reads nothing. */
  readonly describeDeath: ((death: StepDeath) => RunEnd) | undefined
}

/** `error` is for the record, and may quote outside text. `why` is safe: it has neither outside text nor a recipient. */
export type StepDeath = { readonly status: 'error' | 'timeout'; readonly error: string; readonly why: string }

export type JobStep = Omit<StepDefinition<Planned['kind']>, 'perform'> & {
  readonly perform: (input: StepInput<PerformablePlan>, tools: StepTools, signal: AbortSignal) => Promise<StepOutcome>
}

export function defineStep<Kind extends Planned['kind']>(step: StepDefinition<Kind>): JobStep {
  return {
    ...step,
    async perform({ planned, ...input }, tools, signal) {
      if (!isOf(planned, step.of)) throw new Error(`a job of the kind ${planned.kind} has no such step`)
      return await step.perform({ ...input, planned }, tools, signal)
    },
  }
}

function isOf<Kind extends Planned['kind']>(
  planned: PerformablePlan,
  of: readonly Kind[],
): planned is PerformablePlanOf<Kind> {
  return of.some((kind) => kind === planned.kind)
}

/** Milliseconds for which the step is tried again while the other side is unavailable. */
export function toRetryForMs({ retry }: Pick<JobStep, 'retry'>, config: Config): number {
  return retry === undefined ? 0 : retryConfigs[retry](config).for
}
