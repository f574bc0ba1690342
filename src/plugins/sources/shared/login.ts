// A login that runs share: servers lock accounts and limit connections, and any number of runs may wait for files of one mailbox.
import { chooseRetryMs, SourceFailure } from './kit.ts'

/** A refused login is not repeated soon: servers lock accounts. */
export const refusedLoginMs = 300_000

/**
 * Logs in once for all who ask at the same time. After a failure, nobody logs in before a pause is over that all share: until then each gets the
 * failure again, with the rest of the pause.
 */
export function createSharedLogin<Result>(clock: () => number, login: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined
  let failures = 0
  let paused: { readonly until: number; readonly message: string } | undefined

  async function attempt(): Promise<Result> {
    const leftMs = paused === undefined ? 0 : paused.until - clock()
    if (paused !== undefined && leftMs > 0) {
      const next = `The next login, for all runs that wait for files, is in ${Math.ceil(leftMs / 1_000)} s.`
      throw new SourceFailure(`${paused.message} ${next}`, { retryAfterMs: leftMs })
    }
    try {
      const result = await login()
      failures = 0
      return result
    } catch (thrown) {
      if (!(thrown instanceof SourceFailure)) throw thrown
      const retryAfterMs = chooseRetryMs(thrown, failures)
      failures += 1
      paused = { until: clock() + retryAfterMs, message: thrown.message }
      throw new SourceFailure(thrown.message, { retryAfterMs, cause: thrown })
    }
  }

  return () => (running ??= attempt().finally(() => (running = undefined)))
}
