// Decides when a failed step is tried again, and when its job is dead. Pure: the clock and the random number are passed in.
import { type Backoff, toBackoffMs } from '../../base/retry.ts'
import type { Step, StoredPost } from '../../model/job.ts'
import type { SettledTurn } from '../../store/budgets.ts'
import type { JobReport } from '../../store/records.ts'

export type RetryPolicy = Backoff & {
  /** The maximum number of counted attempts of a job, including the first; after the last one the job is dead. */
  readonly attempts: number
  /** The maximum share by which a wait is lengthened or shortened, so that jobs that failed together do not return together. */
  readonly jitter: number
}

/** The waits are about 2 s, 4 s, 8 s and 16 s; then the job is dead. */
export const defaultRetry: RetryPolicy = { attempts: 5, firstMs: 2_000, capMs: 900_000, jitter: 0.2 }

/** The minimum and the maximum of a wait that a provider asks for. */
const minAskedMs = 1_000
const maxAskedMs = 86_400_000

/**
 * `unavailable`: the attempt had no effect, and the other side may come back. `transient`: a later attempt may succeed, but this one may have
 * had an effect or a cost. `permanent`: no attempt can succeed. `quotes`: the detail quotes outside text, so the record of the job shows it and
 * no log does.
 */
export type Failure = {
  readonly detail: string
  readonly quotes?: boolean | undefined
  /** The text for the log, if the detail names the recipient of a reply. */
  readonly logged?: string | undefined
  /** The usage of the attempt, by budget. */
  readonly settled?: readonly SettledTurn[] | undefined
  /** Only of a turn: how long its attempts took in all, without those that had no effect. */
  readonly spentMs?: number | undefined
  /** The messages of the reply as the attempt has stored them. */
  readonly posts?: readonly StoredPost[] | undefined
} & (
  | {
      readonly kind: 'transient'
      readonly retryAfterMs?: number | undefined
      /** Only for one of several recipients: its earlier attempts that counted. Then the attempts of the job do not matter. */
      readonly tries?: number | undefined
    }
  | { readonly kind: 'unavailable'; readonly retryAfterMs?: number | undefined }
  | { readonly kind: 'permanent'; readonly status: 'error' | 'timeout' }
)

export type RetryChoice =
  | { readonly kind: 'retry'; readonly afterMs: number; readonly error: string; readonly counted: boolean }
  | { readonly kind: 'dead'; readonly error: string; readonly status: 'error' | 'timeout' }

/**
 * The failures of several recipients as one failure. The step is tried again while a recipient may succeed later; a recipient that failed
 * permanently gets no further attempt. The wait is the longest wait that a recipient asks for.
 */
export function joinFailures(failures: readonly [Failure, ...Failure[]]): Failure {
  const [first, ...others] = failures
  if (others.length === 0) return first
  const shared = {
    detail: failures.map(({ detail }) => detail).join(' '),
    quotes: failures.some(({ quotes }) => quotes === true),
    logged: failures.map(({ logged, detail }) => logged ?? detail).join(' '),
  }
  const again = failures.filter((failure) => failure.kind !== 'permanent')
  if (again.length === 0) return { ...shared, kind: 'permanent', status: 'error' }
  const asked = again.flatMap(({ retryAfterMs }) => retryAfterMs ?? [])
  const retryAfterMs = asked.length === 0 ? undefined : Math.max(...asked)
  const counted = again.filter((failure) => failure.kind === 'transient')
  if (counted.length === 0) return { ...shared, kind: 'unavailable', retryAfterMs }
  const tries = counted.flatMap((failure) => failure.tries ?? [])
  return { ...shared, kind: 'transient', retryAfterMs, tries: tries.length === 0 ? undefined : Math.max(...tries) }
}

/** Milliseconds to wait after `attempts` earlier counted attempts; `random` in [0, 1). */
export function toRetryMs(attempts: number, random: number, policy: RetryPolicy = defaultRetry): number {
  return jitter(toBackoffMs(attempts, policy), random, policy)
}

function jitter(ms: number, random: number, { jitter: share }: RetryPolicy): number {
  return Math.round(ms * (1 - share + 2 * share * random))
}

/** The facts on which the choice depends. */
type AttemptHistory = {
  /** Attempts that were counted before this one. */
  readonly attempts: number
  /** The time since the first failure of this step, in milliseconds; undefined if this is the first failure. */
  readonly failingForMs: number | undefined
  /** How long after its due time this attempt began, in milliseconds. */
  readonly overdueForMs: number
  /** The time for which the step is tried again while the other side is unavailable, in milliseconds. */
  readonly forMs: number
  /** In [0, 1). */
  readonly random: number
  readonly policy?: RetryPolicy
}

/**
 * While the other side is unavailable, no attempt is counted. The delays grow with the length of the outage, up to `forMs` in all. An attempt
 * that began long after its due time is never the last one: nobody has tried in the meantime, and a machine that wakes has no network yet.
 */
export function chooseRetry(failure: Failure, given: AttemptHistory): RetryChoice {
  const { attempts, failingForMs, overdueForMs, forMs, random, policy = defaultRetry } = given
  const { detail } = failure
  if (failure.kind === 'permanent') return { kind: 'dead', error: detail, status: failure.status }
  const askedMs = clampAskedMs(failure.retryAfterMs)
  if (failure.kind === 'unavailable') {
    const awayMs = failingForMs ?? 0
    if (awayMs >= forMs && overdueForMs <= policy.capMs) return { kind: 'dead', error: detail, status: 'error' }
    const growingMs = Math.min(policy.capMs, Math.max(policy.firstMs, awayMs))
    return { kind: 'retry', afterMs: askedMs ?? jitter(growingMs, random, policy), error: detail, counted: false }
  }
  const { tries = attempts } = failure
  if (tries + 1 >= policy.attempts) return { kind: 'dead', error: detail, status: 'error' }
  const backoffMs = toRetryMs(tries, random, policy)
  const counted = failure.tries === undefined
  return { kind: 'retry', afterMs: Math.max(backoffMs, askedMs ?? 0), error: detail, counted }
}

/** The wait that a provider asks for, within sensible limits; undefined if it asks for none. */
export function clampAskedMs(retryAfterMs: number | undefined): number | undefined {
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs)) return undefined
  return Math.min(maxAskedMs, Math.max(minAskedMs, retryAfterMs))
}

/** A step to record, with the rows that belong to it. */
export type StepRecord = Pick<
  JobReport,
  'events' | 'messages' | 'keeps' | 'consumed' | 'runnerState' | 'recipient' | 'posts' | 'settled'
> & {
  readonly kind: 'recorded'
  readonly step: Omit<Step, 'name' | 'at'>
  /** Whether events are still waiting for a turn that should come soon. */
  readonly leavesEvents?: boolean
}

/**
 * The step is tried again after `afterMs`, and never ends the job. `logged`: the reason for the log, if the step failed.
 */
export type StepDelay = {
  readonly kind: 'later'
  readonly afterMs: number
  readonly reason: string
  readonly logged?: string | undefined
}

export type StepWait = { readonly kind: 'waits'; readonly reason: string; readonly budget: string }

/**
 * A step to record, or the reason why there is none. `aborted`: the signal ended first, and the result is unknown. `held`: the step was not
 * begun, and a hold keeps the job back. `waits`: the store has queued the job again, until the budget may have room.
 */
export type StepOutcome =
  | StepRecord
  | Failure
  | { readonly kind: 'aborted' }
  | { readonly kind: 'held' }
  | StepWait
  | StepDelay
