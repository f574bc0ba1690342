// Waits before the next try.
import { setTimeout as sleep } from 'node:timers/promises'

export type Backoff = {
  /** Milliseconds after the first failure, doubled after each further one. */
  readonly firstMs: number
  readonly capMs: number
}

/** Milliseconds to wait; `failures` counts those before this one. */
export function toBackoffMs(failures: number, { firstMs, capMs }: Backoff): number {
  return Math.min(capMs, firstMs * 2 ** failures)
}

/** Rejects when the signal is aborted. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>

export const sleepUnlessAborted: Sleep = (ms, signal) => sleep(ms, undefined, { signal })
