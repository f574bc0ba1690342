// Waits that end with the watcher, work that is retried until it is done, and work that never runs twice at the same time.
import type { Sleep } from '../base/retry.ts'
import { Problem } from '../model/problem.ts'

/** True: only a person can fix this, and a retry does not help. */
export function isConsentMissing(error: unknown): error is Problem {
  return error instanceof Problem && error.code === 'gmail-consent-missing'
}

type Patience = {
  /** Milliseconds before the second try, the third, …; the last value is used for all further tries. */
  readonly waits: readonly number[]
  readonly pause: Sleep
  readonly signal: AbortSignal
  readonly onFailure: (error: unknown) => void
}

/** Retries `work` until it succeeds. Rejects when the consent is missing or the signal ends. */
export async function retryUntilDone<T>(work: () => Promise<T>, patience: Patience): Promise<T> {
  const { waits, signal, onFailure } = patience
  for (let failures = 0; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted || isConsentMissing(error)) throw error
      onFailure(error)
      await patience.pause(waits[Math.min(failures, waits.length - 1)] ?? 60_000, signal)
    }
  }
}

/** Calls during a run share its result. */
export function singleFlight<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => (running ??= work().finally(() => (running = undefined)))
}

/** Calls during a run share one further run, which starts after the current one. */
export function coalesce<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  let next: Promise<T> | undefined
  const run = async (): Promise<T> => {
    try {
      return await work()
    } finally {
      // the waiting run takes over at once, so that a call at this moment does not start another one
      running = next
    }
  }
  return () => {
    if (running === undefined) return (running = run())
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = undefined
        return (running = run())
      })
    return next
  }
}
