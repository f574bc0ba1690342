// The states of threads.
// ```
// standby ──▶ serving ──▶ retiring (its calls in flight may end) ──▶ gone
//   │          └──── stopped: its other calls run again ─────────▶ gone
//   └─▶ rerun: one call that was in flight in a stopped thread ──▶ gone
// ```
import type { IsolatedReruns } from './isolated-reruns.ts'
import type { InFlightCall } from './calls-in-flight.ts'
import type { Standby } from './standby.ts'
import type { Thread } from './thread.ts'

type ThreadLifecycle = {
  readonly serving: ReadonlySet<Thread>
  /** All threads except the standby. */
  working(): Thread[]
  /** Adds serving threads up to the limit, as long as threads can be started. */
  fill(): void
  /** Replaces a blocked thread with a free one, and returns the free one. Returns the blocked one if it cannot be replaced. */
  replaceBlocked(blocked: Thread): Thread
  /** Gives the thread no more calls. It ends after its last call in flight. */
  retire(thread: Thread): void
  /** Called when a call of the thread has ended. */
  handleCallEnd(thread: Thread): void
  end(thread: Thread): void
  /** Terminates the thread, and returns its calls in flight. */
  remove(thread: Thread): InFlightCall[]
  /** Resolves when all terminated threads have ended. */
  allEnded(): Promise<unknown>
}

/** `max`: the maximum number of serving threads. */
export function createThreadLifecycle({
  max,
  standby,
  reruns,
}: {
  max: number
  standby: Standby
  reruns: IsolatedReruns
}): ThreadLifecycle {
  const serving = new Set<Thread>()
  const retiring = new Set<Thread>()
  const ends = new Set<Promise<void>>()

  function fill(): void {
    while (serving.size < max) {
      const thread = standby.take()
      if (thread === undefined) return
      serving.add(thread)
    }
  }

  function retire(thread: Thread): void {
    if (serving.delete(thread)) retiring.add(thread)
    if (thread.inFlight.size === 0 && !reruns.threads.has(thread)) end(thread)
    if (serving.size < max && serving.size + retiring.size > 0) fill()
  }

  function end(thread: Thread): void {
    serving.delete(thread)
    retiring.delete(thread)
    reruns.drop(thread)
    standby.drop(thread)
    const ending = thread.end().finally(() => ends.delete(ending))
    ends.add(ending)
  }

  return {
    serving,
    working: () => [...serving, ...retiring, ...reruns.threads],
    fill,
    replaceBlocked: (blocked) => {
      if (retiring.size >= 2 * max) return blocked
      const fresh = standby.take()
      if (fresh === undefined) return blocked
      serving.add(fresh)
      retire(blocked)
      return fresh
    },
    retire,
    handleCallEnd: (thread) => {
      if (thread.inFlight.size > 0) return
      if (retiring.has(thread) || reruns.threads.has(thread)) end(thread)
      else if (thread.hasLowPriority()) retire(thread)
      reruns.startNext()
    },
    end,
    remove: (thread) => {
      const inFlightCalls = thread.takeAll()
      end(thread)
      return inFlightCalls
    },
    allEnded: () => Promise.all(ends),
  }
}
