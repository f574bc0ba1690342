// What the error code of a provider means, where it says more than the HTTP status.
import { toRetryAfterMs, toWait } from '../../base/http.ts'
import { type Failed, type FailureContext, toFailure } from './failure.ts'
import type { HttpOutcome } from './http.ts'

export type ErrorMeaning = {
  readonly kind: Failed['kind']
  /** What it means and the next move, as sentences. */
  readonly hint: string
  readonly retryAfterMs?: number
}

/** The failure by its meaning; by its status where there is none. */
export function toCodedFailure(
  outcome: HttpOutcome,
  { meaning, ...context }: Pick<FailureContext, 'provider' | 'code'> & { meaning: ErrorMeaning | undefined },
): Failed {
  const failed = toFailure(outcome, { ...context, hint: meaning?.hint })
  if (meaning === undefined || outcome.kind !== 'answer') return failed
  const { kind, retryAfterMs = toRetryAfterMs(outcome.headers) } = meaning
  const { detail } = failed
  return kind === 'rate-limited' || kind === 'transient' ? { kind, detail, ...toWait(retryAfterMs) } : { kind, detail }
}

/** The failure of a request that could not have posted anything: an unknown fate does no harm there. */
export function toFailureBeforePost(failed: Failed): Failed {
  return failed.kind === 'ambiguous' ? { kind: 'transient', detail: failed.detail } : failed
}
