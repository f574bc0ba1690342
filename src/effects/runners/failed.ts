// How a run ends without a reply, as a runner says it.
import type { RunResult } from '../../model/runner.ts'

export type Failed = Exclude<RunResult, { status: 'ok' | 'forwarded' }>

/** Another try would not help. */
export function permanent(detail: string): Failed {
  return { status: 'error', retryable: false, detail }
}

/** It may pass; `retryAfterMs` where the other side says when. */
export function retryable(detail: string, wait: { readonly retryAfterMs?: number } = {}): Failed {
  return { status: 'error', retryable: true, detail, ...wait }
}
