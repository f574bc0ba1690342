// Retries work until it succeeds, and keeps work from running twice at the same time.
import { Problem, type Sleep } from '../shared/kit.ts'

/** Whether only a person can fix the cause of the error, so that a retry does not help. */
export function isConsentMissing(error: unknown): error is Problem {
  return error instanceof Problem && error.code === 'gmail-consent-missing'
}

type RetryOptions = {
  /** The waits before the second, third, … try, in milliseconds. All further tries use the last value. */
  readonly waits: readonly number[]
  readonly pause: Sleep
  readonly signal: AbortSignal
  readonly onFailure: (error: unknown) => void
}

/** Retries `work` until it succeeds. Rejects when the consent is missing or the signal is aborted. */
export async function retryUntilDone<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { waits, pause, signal, onFailure } = options
  for (let failures = 0; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted || isConsentMissing(error)) throw error
      onFailure(error)
      await pause(waits[Math.min(failures, waits.length - 1)] ?? 60_000, signal)
    }
  }
}

/** Makes a function that never runs twice at the same time: calls during a run get its result. */
export function singleFlight<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => (running ??= work().finally(() => (running = undefined)))
}

/** Makes a function that never runs twice at the same time: calls during a run share one further run, which starts afterwards. */
export function coalesce<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  let next: Promise<T> | undefined
  const run = async (): Promise<T> => {
    try {
      return await work()
    } finally {
      // the waiting run starts at once, so that a call at this moment does not start another one
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
