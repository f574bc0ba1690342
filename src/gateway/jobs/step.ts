// The definition of a step, and the context in which a job runs. steps.ts is the table of all steps.
import type { Planned } from '../../core/model/action.ts'
import type { Config } from '../../model/config/config.ts'
import type { ClaimedJob, StepName } from '../../model/job.ts'
import type { Log } from '../../base/log.ts'
import type { Meter } from '../../model/meter.ts'
import type { RunningTurn } from '../../model/runner.ts'
import type { ReadSourceFiles } from '../../model/source-files.ts'
import type { SettledTurn } from '../../store/budgets.ts'
import type { Clock, Store } from '../../store/store.ts'
import type { Agent } from './agents.ts'
import type { AlertAttempt } from './alert-heartbeat.ts'
import type { Death } from './alerts.ts'
import type { JobLease } from './leases.ts'
import type { RunEnd } from './plan.ts'
import type { RetryPolicy, StepOutcome } from './retry.ts'
import type { RunnersAndChannels } from './runners-and-channels.ts'
import type { CrowdedSession } from './turns.ts'
import type { WorkspaceReader } from '../../plugins/runners/shared/workspace.ts'

/** The dependencies of all jobs that stay the same while the gateway runs. */
export type JobDependencies = {
  readonly store: Pick<
    Store,
    | 'claim'
    | 'jobsToEnd'
    | 'gatheredJobs'
    | 'report'
    | 'reserve'
    | 'extend'
    | 'nextDueInMs'
    | 'messages'
    | 'session'
    | 'waitingEvents'
    | 'delivery'
    | 'job'
    | 'makeDue'
    | 'lease'
    | 'endLeases'
    | 'cursor'
    | 'appendAll'
    | 'startTurn'
    | 'holds'
    | 'hold'
  >
  readonly readWorkspaceFile: WorkspaceReader
  readonly readSourceFiles: ReadSourceFiles
  readonly clock: Clock
  /** Returns a number in [0, 1), for the jitter of retries. */
  readonly random: () => number
  /** Returns 16 unpredictable lower-case hex digits, different at every call. */
  readonly newBoundaryId: () => string
  /** Called when an event in the main session of an agent asks for a turn. */
  readonly onWake: (agentId: string) => void
  /** Called when a session is held back because it had too many turns. */
  readonly onCrowded: (session: CrowdedSession) => void
  /** Called after each attempt to deliver an alert. */
  readonly onAlertAttempt: (attempt: AlertAttempt) => void
  /** Called when a job is dead. */
  readonly onDeath: (death: Death) => void
  /** Called when the usage of a turn was settled with its budgets. */
  readonly onSettled: (settled: readonly SettledTurn[]) => void
  /** Called when a turn waits for a budget. */
  readonly onBudgetWait: (budget: string) => void
  readonly meter: Meter
  readonly log: Log
}

/** The dependencies that follow from the configuration. They are read for each job, so a new configuration applies to the next job. */
export type JobSettings = RunnersAndChannels & {
  readonly config: Config
  readonly agent: (agentId: string) => Agent
  /** Default: `defaultRetry`. */
  readonly retry?: RetryPolicy
}

/** The context of one claimed job. */
export type JobContext = JobDependencies &
  JobSettings & {
    /** A step that posts something outside asks `isConfirmed` first. */
    readonly lease: JobLease
    readonly claimedAt: number
    /** Called when a turn starts. The returned function is called when the turn has ended. */
    readonly trackTurn: (turn: RunningTurn) => () => void
    /** Called with the reply so far of a turn that is tracked. */
    readonly noteReply: (jobId: string, text: string) => void
  }

/** A wake has nothing to perform: all of its steps are recorded when it is accepted. */
type PlanOf<Kind> = Extract<Exclude<Planned, { kind: 'wake' }>, { kind: Kind }>

export type StepInput<Plan extends Planned> = {
  readonly name: StepName
  readonly planned: Plan
  readonly job: ClaimedJob
  readonly agent: Agent
}

const retryConfigs = {
  'agents.defaults.retry': ({ agents }: Config) => agents.defaults.retry,
  'channels.retry': ({ channels }: Config) => channels.retry,
} as const

/** Every field is required, so that the compiler reports a new step that lacks one. */
type StepDefinition<Kind extends Planned['kind']> = {
  /** The effect of the step, as the table of `jobs/README.md` has it. */
  readonly about: string
  /** The kinds of jobs that have the step. */
  readonly of: readonly Kind[]
  /** Makes one attempt. After an exception, or the end of the process, the step is tried again. */
  readonly perform: (input: StepInput<PlanOf<Kind>>, context: JobContext) => StepOutcome | Promise<StepOutcome>
  /**
   * The key of the configuration that limits for how long the step is tried again while the other side is unavailable; undefined if there
   * is no other side.
   */
  readonly retry: keyof typeof retryConfigs | undefined
  /**
   * Whether the step only writes rows, or reports before it sends anything. Then the record of the previous step waits for that report, so that
   * both are one commit. Otherwise, the previous step is recorded first, because this one acts at once.
   */
  readonly reportsFirst: boolean
  /** Whether a recorded step gets a log line. A failed step always does. */
  readonly isLogged: boolean
  /** The end of the run that the main session reads if this step fails permanently; undefined if it reads nothing. */
  readonly describeDeath: ((death: StepDeath) => RunEnd) | undefined
}

/** `error` is for the record, and may quote outside text. `why` is safe: it has neither outside text nor a recipient. */
export type StepDeath = { readonly status: 'error' | 'timeout'; readonly error: string; readonly why: string }

export type JobStep = Omit<StepDefinition<Planned['kind']>, 'perform'> & {
  readonly perform: (input: StepInput<Planned>, context: JobContext) => Promise<StepOutcome>
}

export function defineStep<Kind extends Planned['kind']>(step: StepDefinition<Kind>): JobStep {
  return {
    ...step,
    async perform({ planned, ...input }, context) {
      if (!isOfKind(planned, step.of)) throw new Error(`a job of the kind ${planned.kind} has no such step to perform`)
      return await step.perform({ ...input, planned }, context)
    },
  }
}

function isOfKind<Kind extends Planned['kind']>(planned: Planned, of: readonly Kind[]): planned is PlanOf<Kind> {
  return planned.kind !== 'wake' && of.some((kind) => kind === planned.kind)
}

/** The time in milliseconds for which a step is tried again while the other side is unavailable. */
export function readRetryForMs({ retry }: Pick<JobStep, 'retry'>, config: Config): number {
  return retry === undefined ? 0 : retryConfigs[retry](config).for
}
