// Who still works with which generation: it lives as long as it serves or a request holds it.
import type { Generation } from '../pipeline/generation.ts'

export type Holds = {
  /** Makes a generation known and holds it. */
  begin(generation: Generation): () => void
  /** Holds a generation for whoever asks; the answer, called once or more, lets it go. No effect on one that is gone. */
  hold(generation: Generation): () => void
  /** Resolves when nobody holds the generation any more. */
  gone(generation: Generation): Promise<void>
}

type Entry = { count: number; readonly waiting: (() => void)[] }

export function createHolds(): Holds {
  const entries = new Map<Generation, Entry>()

  function hold(generation: Generation): () => void {
    const entry = entries.get(generation)
    if (entry === undefined) return () => {}
    entry.count += 1
    let held = true
    return () => {
      if (!held) return
      held = false
      entry.count -= 1
      if (entry.count > 0) return
      entries.delete(generation)
      for (const done of entry.waiting) done()
    }
  }

  return {
    begin(generation) {
      entries.set(generation, { count: 0, waiting: [] })
      return hold(generation)
    },
    hold,
    gone(generation) {
      const entry = entries.get(generation)
      if (entry === undefined) return Promise.resolve()
      return new Promise((resolve) => entry.waiting.push(resolve))
    },
  }
}
