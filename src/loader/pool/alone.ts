// Second tries: a call that was in flight in a thread that had to be stopped runs again once, in a thread that it has for itself.
// What stops that one, too, is known to be the reason.
import type { Job } from './flights.ts'
import type { Thread } from './thread.ts'

export type Alone = {
  readonly threads: ReadonlySet<Thread>
  /** The call waits for its thread until `begin`. */
  add(job: Job): void
  /** Gives what waits a thread, as far as there is room. */
  begin(): void
  /** The thread goes. */
  drop(thread: Thread): void
  /** What waits still; it will not run here. */
  takeAll(): Job[]
}

export function createAlone(options: {
  /** Threads at the most. */
  most: () => number
  take: () => Thread | undefined
  /** The call is in flight now. */
  posted: () => void
  /** No thread starts. */
  failed: (job: Job) => void
}): Alone {
  const { most, take, posted, failed } = options
  const threads = new Set<Thread>()
  const waiting: Job[] = []
  return {
    threads,
    add: (job) => void waiting.push(job),
    begin: () => {
      while (threads.size < most()) {
        const job = waiting.shift()
        if (job === undefined) return
        const thread = take()
        if (thread === undefined) {
          failed(job)
          continue
        }
        threads.add(thread)
        thread.post(job)
        posted()
      }
    },
    drop: (thread) => void threads.delete(thread),
    takeAll: () => waiting.splice(0),
  }
}
