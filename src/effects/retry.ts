// How a step ends, when a failed step is tried again, and when its job is dead. Pure: the clock and the random number are passed in.
import { type Backoff, toBackoffMs } from '../base/retry.ts'
import type { Step } from '../model/job.ts'
import type { JobReport } from '../store/store.ts'

export type RetryPolicy = Backoff & {
  /** Counted attempts of a job, the first included; after the last one it is dead. */
  readonly attempts: number
  /** Share by which a wait is lengthened or shortened, so that jobs that failed together do not return together. */
  readonly jitter: number
}

/** 2 s, 4 s, 8 s, 16 s, then dead. */
export const defaultRetry: RetryPolicy = { attempts: 5, firstMs: 2_000, capMs: 600_000, jitter: 0.2 }

/** From then on a job that is only asked to wait is given up as well. */
const horizonMs = 86_400_000

/** What a provider may ask us to wait: never so little that we hammer it, never longer than a day. */
const shortestAskedMs = 1_000
const longestAskedMs = 86_400_000

/**
 * `transient` may pass, `rate-limited` asked us to wait, `permanent` will not pass. `quotes`: the detail has words of
 * others in it, so the job's record shows it and no log does.
 */
export type Failure = {
  readonly detail: string
  readonly quotes?: boolean | undefined
  /** What a log shows in place of the detail, where the detail names the recipient of a reply. */
  readonly logged?: string | undefined
} & (
  | { readonly kind: 'transient' | 'rate-limited'; readonly retryAfterMs?: number | undefined }
  | { readonly kind: 'permanent'; readonly status: 'error' | 'timeout' }
)

export type Verdict =
  | { readonly kind: 'retry'; readonly runAt: number; readonly error: string; readonly counted: boolean }
  | { readonly kind: 'dead'; readonly error: string; readonly status: 'error' | 'timeout' }

/** Milliseconds to wait after `attempts` counted attempts before this failure; `random` in [0, 1). */
export function toRetryMs(attempts: number, random: number, policy: RetryPolicy = defaultRetry): number {
  const { jitter } = policy
  return Math.round(toBackoffMs(attempts, policy) * (1 - jitter + 2 * jitter * random))
}

/** `attempts`: those counted before this one; `createdAt`: when the job was accepted. A rate limit uses no attempt up, for a day. */
export function toVerdict(
  failure: Failure,
  {
    attempts,
    createdAt,
    now,
    random,
    policy = defaultRetry,
  }: { attempts: number; createdAt: number; now: number; random: number; policy?: RetryPolicy },
): Verdict {
  const { detail } = failure
  if (failure.kind === 'permanent') return { kind: 'dead', error: detail, status: failure.status }
  const backoffMs = toRetryMs(attempts, random, policy)
  const askedMs = toAskedMs(failure.retryAfterMs)
  if (failure.kind === 'rate-limited' && now - createdAt < horizonMs) {
    return { kind: 'retry', runAt: now + (askedMs ?? backoffMs), error: detail, counted: false }
  }
  if (attempts + 1 >= policy.attempts) return { kind: 'dead', error: detail, status: 'error' }
  return { kind: 'retry', runAt: now + Math.max(backoffMs, askedMs ?? 0), error: detail, counted: true }
}

function toAskedMs(retryAfterMs: number | undefined): number | undefined {
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs)) return undefined
  return Math.min(longestAskedMs, Math.max(shortestAskedMs, retryAfterMs))
}

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
