// The processor time that may be spent on learning: a share of what the process uses anyway, so that learning costs the same small part of
// every load. Counted in milliseconds.

/** One percent and a half: with what it takes to note a request, the cost stays below three percent. */
const shareOfUsed = 0.015
/** Of the time that passes, so that few requests are all learnt from. */
const shareOfElapsed = 0.000_5
/** What may be saved up: the first hundreds of requests are all learnt from. */
const most = 100

/** To ask the system for the used time takes a microsecond, and every request asks whether time is left. */
const refillAfterMs = 20

export type Allowance = {
  /** Whether some time is left. */
  has(): boolean
  /** Runs the work, and takes its time from the allowance. */
  spend(work: () => void): void
}

type AllowanceParts = {
  /** Milliseconds that pass. */
  readonly clock: () => number
  /** Milliseconds of processor time that all threads of the process have used. */
  readonly used: () => number
}

export function createAllowance({ clock, used }: AllowanceParts): Allowance {
  let left = most
  let before = { at: clock(), used: used() }

  function refill(): void {
    const now = { at: clock(), used: used() }
    left = Math.min(most, left + shareOfUsed * (now.used - before.used) + shareOfElapsed * (now.at - before.at))
    before = now
  }

  return {
    has() {
      if (left <= 0 && clock() - before.at >= refillAfterMs) refill()
      return left > 0
    },
    spend(work) {
      refill()
      const started = before
      work()
      // a pause of the thread is not its time, and neither is what other threads did
      left -= Math.min(clock() - started.at, used() - started.used)
    },
  }
}
