// Reruns: a call that had begun in a stopped thread runs again once, alone in its own thread. If that thread is stopped too, the call is the
// cause.
import type { Task } from './calls-in-flight.ts'
import type { Thread } from './thread.ts'

export type IsolatedReruns = {
  readonly threads: ReadonlySet<Thread>
  /** Adds a call, which waits for a thread until `startNext`. */
  add(task: Task): void
  /** Starts waiting calls in new threads, up to the limit. */
  startNext(): void
  /** Call it when the thread is being terminated. */
  drop(thread: Thread): void
  /** Takes all waiting calls, which then do not run here. */
  takeAll(): Task[]
}

export function createIsolatedReruns(options: {
  /** The maximum number of threads. */
  max: number
  take: () => Thread | undefined
  /** Called when a call was posted to its thread. */
  onPosted: () => void
  /** Called for a call for which no thread can be started. */
  onFailed: (task: Task) => void
}): IsolatedReruns {
  const { max, take, onPosted, onFailed } = options
  const threads = new Set<Thread>()
  const waiting: Task[] = []
  return {
    threads,
    add: (task) => void waiting.push(task),
    startNext: () => {
      while (threads.size < max) {
        const task = waiting.shift()
        if (task === undefined) return
        const thread = take()
        if (thread === undefined) {
          onFailed(task)
          continue
        }
        threads.add(thread)
        thread.post(task)
        onPosted()
      }
    },
    drop: (thread) => void threads.delete(thread),
    takeAll: () => waiting.splice(0),
  }
}
