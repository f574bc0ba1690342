// How much memory the code of one worker holds: its heap and its buffers.
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Milliseconds between two looks at call ends. A look costs a microsecond. */
const betweenLooksMs = 10
/** Milliseconds between two collections that find out what is garbage. One costs 5 to 50 ms. */
const betweenCollectionsMs = 250

/** Whether more than `limitMb` are in use. Garbage does not count: before it says yes, it collects. */
export function createMemoryLimit(limitMb: number): { isOver(): boolean } {
  const limit = limitMb * 1024 * 1024
  let nextLook = 0
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
      if (at < nextLook) return false
      nextLook = at + betweenLooksMs
      if (!isUsed() || at < nextCollection) return false
      nextCollection = at + betweenCollectionsMs
      collect ??= toCollector()
      collect()
      return isUsed()
    },
  }
}

/** V8's own `gc`, which it shows only when asked, and then only to new contexts. */
function toCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const gc: unknown = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return typeof gc === 'function' ? () => void gc() : () => {}
}
