/** Runs one piece of work after the other, in the order of the calls. Work that fails does not stop the next one. */
export function createSerial(): <T>(work: () => T | Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => undefined)
    return mine
  }
}
