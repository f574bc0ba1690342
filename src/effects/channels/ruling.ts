// A provider's own error code, where it says more than the status.
import { toRetryAfterMs, toWait } from '../../base/http.ts'
import { type Failed, type FailureContext, toFailure } from './failure.ts'
import type { HttpOutcome } from './http.ts'

export type Ruling = {
  readonly kind: Failed['kind']
  /** What it means and the next move, as sentences. */
  readonly hint: string
  readonly retryAfterMs?: number
}

/** The failure by its ruling; by its status where there is none. */
export function toRuled(
  outcome: HttpOutcome,
  { ruling, ...context }: Pick<FailureContext, 'provider' | 'code'> & { ruling: Ruling | undefined },
): Failed {
  const failed = toFailure(outcome, { ...context, hint: ruling?.hint })
  if (ruling === undefined || outcome.kind !== 'answer') return failed
  const { kind, retryAfterMs = toRetryAfterMs(outcome.headers) } = ruling
  const { detail } = failed
  return kind === 'rate-limited' || kind === 'transient' ? { kind, detail, ...toWait(retryAfterMs) } : { kind, detail }
}

/** The failure of a request that could not have posted anything: an unknown fate does no harm there. */
export function toUnposted(failed: Failed): Failed {
  return failed.kind === 'ambiguous' ? { kind: 'transient', detail: failed.detail } : failed
}
