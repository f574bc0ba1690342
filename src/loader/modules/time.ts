// Integrators' code under a clock. It ends the waiting, not the work: a thread that loops is the pool's to end.

/** `thrown` is whatever it was: not to be touched but through thrown.ts, its very traps may throw. */
export type Ended<T = unknown> = { kind: 'ended'; value: T } | { kind: 'threw'; thrown: unknown } | { kind: 'late' }

/** What `start` came to, a promise awaited. Never rejects; what comes after the time is up is dropped. */
export async function withinTime<T>(start: () => T | Promise<T>, timeoutMs: number): Promise<Ended<T>> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Ended<T>>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, { kind: 'late' })
  })
  try {
    return await Promise.race([toEnded(start), late])
  } finally {
    clearTimeout(timer)
  }
}

async function toEnded<T>(start: () => T | Promise<T>): Promise<Ended<T>> {
  try {
    return { kind: 'ended', value: await start() }
  } catch (thrown) {
    return { kind: 'threw', thrown }
  }
}
