// Which threads there are.
// ```
// spare ──▶ serving ──▶ retiring (its calls in flight may end) ──▶ gone
//   │          └──── stopped: no good call is lost with it ──────▶ gone
//   └─▶ alone: one call that was in flight in a stopped one ─────▶ gone
// ```
import type { Alone } from './alone.ts'
import type { InFlight } from './flights.ts'
import type { Spare } from './spare.ts'
import type { Thread } from './thread.ts'

export type Roster = {
  readonly serving: ReadonlySet<Thread>
  /** All but the spare. */
  working(): Thread[]
  /** As many serve as may, as far as threads start. */
  fill(): void
  /** A free thread serves in the place of this one, which is held; unless too many are held already. */
  relieve(held: Thread): Thread
  /** No more calls; it ends with the last one that is in flight. */
  retire(thread: Thread): void
  /** A call of the thread is over. */
  eased(thread: Thread): void
  end(thread: Thread): void
  /** Ends it, and gives what was in flight there. */
  remove(thread: Thread): InFlight[]
  /** Resolves when all that were ended are gone. */
  gone(): Promise<unknown>
}

/** `most`: how many serve. */
export function createRoster({ most, spare, alone }: { most: () => number; spare: Spare; alone: Alone }): Roster {
  const serving = new Set<Thread>()
  const retiring = new Set<Thread>()
  const ends = new Set<Promise<void>>()

  function fill(): void {
    while (serving.size < most()) {
      const thread = spare.take()
      if (thread === undefined) return
      serving.add(thread)
    }
  }

  function retire(thread: Thread): void {
    if (serving.delete(thread)) retiring.add(thread)
    if (thread.inFlight.size === 0 && !alone.threads.has(thread)) end(thread)
    if (serving.size < most() && serving.size + retiring.size > 0) fill()
  }

  function end(thread: Thread): void {
    serving.delete(thread)
    retiring.delete(thread)
    alone.drop(thread)
    spare.drop(thread)
    const ending = thread.end().finally(() => ends.delete(ending))
    ends.add(ending)
  }

  return {
    serving,
    working: () => [...serving, ...retiring, ...alone.threads],
    fill,
    relieve: (held) => {
      if (retiring.size >= 2 * most()) return held
      const fresh = spare.take()
      if (fresh === undefined) return held
      serving.add(fresh)
      retire(held)
      return fresh
    },
    retire,
    eased: (thread) => {
      if (thread.inFlight.size > 0) return
      if (retiring.has(thread) || alone.threads.has(thread)) end(thread)
      else if (thread.isLowered()) retire(thread)
      alone.begin()
    },
    end,
    remove: (thread) => {
      const flights = thread.takeAll()
      end(thread)
      return flights
    },
    gone: () => Promise.all(ends),
  }
}
