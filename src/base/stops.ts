// Stops the parts of the gateway in the reverse order of their start. No part can prevent the others from stopping.
import { attemptWithin } from './time.ts'

export type Stops = {
  /** `part`: its name in a log line. */
  add(part: string, stop: () => unknown, limits?: { limitMs?: number }): void
  /** The time for all parts together. Without it, only the limit of each part applies. */
  setTotalLimitMs(totalMs: number): void
  /** Stops all parts. It never rejects: a part that throws or exceeds its limit is logged, and the stop continues. */
  run(): Promise<void>
}

const defaultLimitMs = 10_000

/** The minimum time of a part, even if the total time is used up. */
const minLimitMs = 1_000

export function createStops(log: { error(fields: object, line: string): void }): Stops {
  let totalMs = Number.POSITIVE_INFINITY
  const stops: { part: string; stop: () => unknown; limitMs: number }[] = []
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    const until = performance.now() + totalMs
    for (const { part, stop, limitMs: ownMs } of stops.toReversed()) {
      const limitMs = Math.max(minLimitMs, Math.min(ownMs, Math.round(until - performance.now())))
      const ended = await attemptWithin(limitMs, stop)
      if (ended.kind === 'late') log.error({ part, limitMs }, `${part} did not stop in time; the shutdown continues`)
      if (ended.kind === 'threw')
        log.error({ part, err: ended.thrown }, `${part} failed to stop; the shutdown continues`)
    }
  }

  return {
    add: (part, stop, { limitMs = defaultLimitMs } = {}) => void stops.push({ part, stop, limitMs }),
    setTotalLimitMs: (ms) => void (totalMs = ms),
    run: () => (running ??= run()),
  }
}
