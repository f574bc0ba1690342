// Which threads there are.
// ```
// standby ──▶ serving ──▶ retiring (its calls in flight may end) ──▶ gone
//   │          └──── stopped: no good call is lost with it ──────▶ gone
//   └─▶ rerun: one call that was in flight in a stopped one ─────▶ gone
// ```
import type { IsolatedReruns } from './isolated-reruns.ts'
import type { InFlightCall } from './calls-in-flight.ts'
import type { Standby } from './standby.ts'
import type { Thread } from './thread.ts'

export type ThreadLifecycle = {
  readonly serving: ReadonlySet<Thread>
  /** All but the standby. */
  working(): Thread[]
  /** As many serve as may, as far as threads start. */
  fill(): void
  /** A free thread serves in the place of this one, which is held; unless too many are held already. */
  replaceBusy(held: Thread): Thread
  /** No more calls; it ends with the last one that is in flight. */
  retire(thread: Thread): void
  /** A call of the thread is over. */
  callEnded(thread: Thread): void
  end(thread: Thread): void
  /** Ends it, and gives what was in flight there. */
  remove(thread: Thread): InFlightCall[]
  /** Resolves when all that were ended are gone. */
  allEnded(): Promise<unknown>
}

/** `most`: how many serve. */
export function createThreadLifecycle({
  most,
  standby,
  reruns,
}: {
  most: () => number
  standby: Standby
  reruns: IsolatedReruns
}): ThreadLifecycle {
  const serving = new Set<Thread>()
  const retiring = new Set<Thread>()
  const ends = new Set<Promise<void>>()

  function fill(): void {
    while (serving.size < most()) {
      const thread = standby.take()
      if (thread === undefined) return
      serving.add(thread)
    }
  }

  function retire(thread: Thread): void {
    if (serving.delete(thread)) retiring.add(thread)
    if (thread.inFlight.size === 0 && !reruns.threads.has(thread)) end(thread)
    if (serving.size < most() && serving.size + retiring.size > 0) fill()
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
    replaceBusy: (held) => {
      if (retiring.size >= 2 * most()) return held
      const fresh = standby.take()
      if (fresh === undefined) return held
      serving.add(fresh)
      retire(held)
      return fresh
    },
    retire,
    callEnded: (thread) => {
      if (thread.inFlight.size > 0) return
      if (retiring.has(thread) || reruns.threads.has(thread)) end(thread)
      else if (thread.isLowered()) retire(thread)
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
