/** The times at which the requests of an open loop are due, whether or not earlier requests are answered. */
export type Schedule = {
  readonly total: number
  /** The times, in order, that have come since the last call. */
  take(now: number): number[]
  readonly isDone: boolean
}

/** `perSecond` requests a second from `beginsAt` on, at equal distances. All times are in milliseconds of one clock. */
export function createSchedule(options: {
  readonly perSecond: number
  readonly seconds: number
  readonly beginsAt: number
}): Schedule {
  const { perSecond, seconds, beginsAt } = options
  const total = Math.round(perSecond * seconds)
  // from the number, not from the last time: sums of distances would drift
  const findTime = (number: number) => beginsAt + (number * 1_000) / perSecond
  let taken = 0
  return {
    total,
    take(now) {
      const first = taken
      while (taken < total && findTime(taken) <= now) taken += 1
      return Array.from({ length: taken - first }, (_, index) => findTime(first + index))
    },
    get isDone() {
      return taken === total
    },
  }
}
