// The durable values of a runner, in memory.
import { isDeepStrictEqual } from 'node:util'
import type { RunnerState, StoredValue } from '../model/runner.ts'

/** `clock`: in milliseconds since the epoch. */
export function createMemoryState(clock: () => number = Date.now): RunnerState {
  const values = new Map<string, StoredValue>()
  const readLive = (key: string) => {
    const found = values.get(key)
    return found !== undefined && found.until > clock() ? found : undefined
  }
  return {
    read: async (key) => readLive(key),
    async list(prefix) {
      const keys = [...values.keys()].filter((key) => key.startsWith(prefix))
      return keys.toSorted().flatMap((key) => {
        const found = readLive(key)
        return found === undefined ? [] : [{ key, ...found }]
      })
    },
    async write(changes) {
      if (!changes.every(({ key, from }) => isDeepStrictEqual(readLive(key), from))) return false
      for (const { key, to } of changes) {
        if (to === undefined) values.delete(key)
        else values.set(key, to)
      }
      return true
    },
  }
}
