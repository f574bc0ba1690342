// Second tries: a call that was in flight in a thread that had to be stopped runs again once, in a thread that it has for itself.
// What stops that one, too, is known to be the reason.
import type { Task } from './calls-in-flight.ts'
import type { Thread } from './thread.ts'

export type IsolatedReruns = {
  readonly threads: ReadonlySet<Thread>
  /** The call waits for its thread until `begin`. */
  add(task: Task): void
  /** Gives what waits a thread, as far as there is room. */
  startNext(): void
  /** The thread goes. */
  drop(thread: Thread): void
  /** What waits still; it will not run here. */
  takeAll(): Task[]
}

export function createIsolatedReruns(options: {
  /** Threads at the most. */
  most: () => number
  take: () => Thread | undefined
  /** The call is in flight now. */
  posted: () => void
  /** No thread starts. */
  failed: (task: Task) => void
}): IsolatedReruns {
  const { most, take, posted, failed } = options
  const threads = new Set<Thread>()
  const waiting: Task[] = []
  return {
    threads,
    add: (task) => void waiting.push(task),
    startNext: () => {
      while (threads.size < most()) {
        const task = waiting.shift()
        if (task === undefined) return
        const thread = take()
        if (thread === undefined) {
          failed(task)
          continue
        }
        threads.add(thread)
        thread.post(task)
        posted()
      }
    },
    drop: (thread) => void threads.delete(thread),
    takeAll: () => waiting.splice(0),
  }
}
