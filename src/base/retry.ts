// The pauses between the attempts of a repeated call.
import { setTimeout as sleep } from 'node:timers/promises'

export type Backoff = {
  /** The pause after the first failure, in milliseconds. It doubles after each further failure. */
  readonly firstMs: number
  readonly capMs: number
}

/** The pause after a failure, in milliseconds. `failures`: the number of failures before that one. */
export function toBackoffMs(failures: number, { firstMs, capMs }: Backoff): number {
  return Math.min(capMs, firstMs * 2 ** failures)
}

/** Rejects when the signal is aborted. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>

export const sleepUnlessAborted: Sleep = (ms, signal) => sleep(ms, undefined, { signal })
