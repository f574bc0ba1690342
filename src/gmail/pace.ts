// Time for a watcher: waits that end with it, work that is tried until it is done, and work that never runs twice at once.
import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '../model/problem.ts'

/** Rejects when the signal ends. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>

export const pause: Pause = (ms, signal) => sleep(ms, undefined, { signal })

/** Only a person can end this: trying again is of no use. */
export function isConsentMissing(error: unknown): error is Problem {
  return error instanceof Problem && error.code === 'gmail-consent-missing'
}

export type Patience = {
  /** Milliseconds before the second try, the third, …; the last one stands for all that follow. */
  readonly waits: readonly number[]
  readonly pause: Pause
  readonly signal: AbortSignal
  readonly onFailure: (error: unknown) => void
}

/** What `work` comes to, however often it must be tried. Rejects when the consent is gone or the signal ends. */
export async function untilDone<T>(work: () => Promise<T>, patience: Patience): Promise<T> {
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

/** Whoever asks while it runs gets what that run comes to. */
export function singleFlight<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => (running ??= work().finally(() => (running = undefined)))
}

/** Whoever asks while it runs waits for one further run, which begins after he asked. */
export function coalesce<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  let next: Promise<T> | undefined
  const run = async (): Promise<T> => {
    try {
      return await work()
    } finally {
      // the run that waits takes its place in the same moment: whoever asks just then must not begin one beside it
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
