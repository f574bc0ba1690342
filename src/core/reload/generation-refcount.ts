// Counts the references to generations. A generation is in use while it serves, or while a request uses it.

type GenerationRefcount<Generation> = {
  /** Starts to count the references to a generation, beginning with one reference. The returned function releases it. */
  add(generation: Generation): () => void
  /** Adds a reference, unless the generation is no longer counted. The returned function releases it; further calls do nothing. */
  acquire(generation: Generation): () => void
  /** Resolves when the last reference is released. */
  waitUntilUnused(generation: Generation): Promise<void>
}

type References = { count: number; readonly waiting: (() => void)[] }

export function createGenerationRefcount<Generation>(): GenerationRefcount<Generation> {
  const entries = new Map<Generation, References>()

  function acquire(generation: Generation): () => void {
    const entry = entries.get(generation)
    if (entry === undefined) return () => {}
    entry.count += 1
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      entry.count -= 1
      if (entry.count > 0) return
      entries.delete(generation)
      for (const done of entry.waiting) done()
    }
  }

  return {
    add(generation) {
      entries.set(generation, { count: 0, waiting: [] })
      return acquire(generation)
    },
    acquire,
    waitUntilUnused(generation) {
      const entry = entries.get(generation)
      if (entry === undefined) return Promise.resolve()
      return new Promise((resolve) => entry.waiting.push(resolve))
    },
  }
}
