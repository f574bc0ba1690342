// The processor time for learning, in milliseconds: a share of the time for which the event loop is busy anyway, so that learning costs the
// same small part of every load.

/**
 * Half a percent. Together with the cost of noting requests, and of collecting the garbage of the payloads that were read, this stays below
 * three percent.
 */
const shareOfBusy = 0.005
/** The share of the elapsed time, so that a gateway with few requests learns from all of them. */
const shareOfElapsed = 0.000_5
/** The first requests are learnt from however busy the machine is: what is known of a new hook must not depend on its load. */
const alwaysLearnt = 500
/**
 * The maximum that can be saved. Also the maximum debt: after work during which the process
 * paused for long, learning continues after at most twenty busy seconds.
 */
const maxSaved = 100

export type Allowance = {
  /** Whether some time is left. */
  hasTime(): boolean
  /** Runs the work, and takes its time from the allowance. */
  spend(work: () => void): void
}

type AllowanceParts = {
  /** The present time in milliseconds, by a clock that is never set back. */
  readonly clock: () => number
  /** The milliseconds for which the event loop was busy. It is read often, so it must not need a system call. */
  readonly busy: () => number
}

export function createAllowance({ clock, busy }: AllowanceParts): Allowance {
  let left = maxSaved
  let first = alwaysLearnt
  const read = () => ({ at: clock(), busy: busy() })
  let before = read()

  function refill(): void {
    const now = read()
    left = Math.min(maxSaved, left + shareOfBusy * (now.busy - before.busy) + shareOfElapsed * (now.at - before.at))
    before = now
  }

  return {
    hasTime() {
      if (first > 0) return true
      if (left <= 0) refill()
      return left > 0
    },
    spend(work) {
      refill()
      work()
      const after = read()
      if (first > 0) {
        first -= 1
        before = after
        return
      }
      left = Math.max(-maxSaved, left - (after.at - before.at))
      // the time of the work itself does not count as busy
      before = after
    },
  }
}
