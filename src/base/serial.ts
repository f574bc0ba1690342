import { setImmediate as nextTurn } from 'node:timers/promises'

/** Runs one piece of work after the other, in the order of the calls. Work that fails does not stop the next one. */
export function createSerialQueue(): <T>(work: () => T | Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => undefined)
    return mine
  }
}

const inTurn = createSerialQueue()

/**
 * Resolves in a later turn of the event loop, after the events that are already waiting. Each turn has only one caller. So long work that is done in
 * slices delays a request by one slice, however many callers do such work at the same time.
 */
export function yieldToEventLoop(): Promise<void> {
  return inTurn(() => nextTurn())
}
