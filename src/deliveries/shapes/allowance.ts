// The time that may be spent on learning: a share of the time for which the event loop is busy anyway, so that learning costs the same small
// part of every load. Counted in milliseconds.

/** Half a percent: with what it takes to note a request, and to collect the garbage of what was read, the cost stays below three percent. */
const shareOfBusy = 0.005
/** Of the time that passes, so that few requests are all learnt from. */
const shareOfElapsed = 0.000_5
/**
 * What may be saved up: the first hundreds of requests are all learnt from. Also what may be owed: after a long pause of the process in the
 * middle of the work, learning goes on after twenty busy seconds.
 */
const maxSaved = 100

export type Allowance = {
  /** Whether some time is left. */
  has(): boolean
  /** Runs the work, and takes its time from the allowance. */
  spend(work: () => void): void
}

type AllowanceParts = {
  /** Milliseconds that pass. */
  readonly clock: () => number
  /** Milliseconds for which the event loop was busy. Every request asks, so the answer must not need a system call. */
  readonly busy: () => number
}

export function createAllowance({ clock, busy }: AllowanceParts): Allowance {
  let left = maxSaved
  const read = () => ({ at: clock(), busy: busy() })
  let before = read()

  function refill(): void {
    const now = read()
    left = Math.min(maxSaved, left + shareOfBusy * (now.busy - before.busy) + shareOfElapsed * (now.at - before.at))
    before = now
  }

  return {
    has() {
      if (left <= 0) refill()
      return left > 0
    },
    spend(work) {
      refill()
      work()
      const after = read()
      left = Math.max(-maxSaved, left - (after.at - before.at))
      // the work itself earns nothing
      before = after
    },
  }
}
