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

  /** Adds what the time since the last call allows. Returns the processor time that the process used since then. */
  function refill(): number {
    const now = { at: clock(), used: used() }
    const usedMs = now.used - before.used
    left = Math.min(most, left + shareOfUsed * usedMs + shareOfElapsed * (now.at - before.at))
    before = now
    return usedMs
  }

  return {
    has() {
      if (left <= 0 && clock() - before.at >= refillAfterMs) refill()
      return left > 0
    },
    spend(work) {
      const startedAt = clock()
      work()
      const elapsedMs = clock() - startedAt
      // asked once for each request; `refill` changes `left`, so it is called first
      const usedMs = refill()
      // a pause of the thread is not the time of the work
      left -= Math.min(elapsedMs, usedMs)
    },
  }
}
