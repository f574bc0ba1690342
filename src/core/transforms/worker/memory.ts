// Measures the memory of one worker: its heap and its buffers.
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** The shortest time between two checks at the ends of calls, in milliseconds. A check costs a microsecond. */
const betweenChecksMs = 10
/** The shortest time between two garbage collections, in milliseconds. A collection costs 5 to 50 ms. */
const betweenCollectionsMs = 250

/** Whether more than `limitMb` are in use. Garbage does not count: it is collected before the function returns true. */
export function createMemoryLimit(limitMb: number): { isOver(): boolean } {
  const limit = limitMb * 1024 * 1024
  let nextCheck = 0
  let nextCollection = 0
  let collect: (() => void) | undefined
  const now = performance.now.bind(performance)
  const isUsed = () => {
    const { used_heap_size, external_memory } = getHeapStatistics()
    return used_heap_size + external_memory > limit
  }
  return {
    isOver: () => {
      const at = now()
      if (at < nextCheck) return false
      nextCheck = at + betweenChecksMs
      if (!isUsed() || at < nextCollection) return false
      nextCollection = at + betweenCollectionsMs
      collect ??= findCollector()
      collect()
      if (!isUsed()) return false
      // V8 of Node 24 frees the buffers of one collection while others run, and counts them until the next collection
      collect()
      return isUsed()
    },
  }
}

/** V8's function `gc`, which exists only in a context that is made while a flag is set. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const gc: unknown = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return typeof gc === 'function' ? () => void gc() : () => {}
}
