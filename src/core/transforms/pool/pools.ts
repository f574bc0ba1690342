// One pool for each environment and set of limits. It runs while a generation, a load or a call uses it.
import { createPool, type Pool, type PoolSettings } from './pool.ts'

export type SharedPool = {
  /** Equal settings have the same key. */
  readonly key: string
  readonly settings: PoolSettings
  /** Returns the pool. It runs until each call of `acquire` was followed by one of `release`. */
  acquire(): Pool
  release(): void
}

type Pools = {
  share(settings: PoolSettings): SharedPool
  /** The state of all running pools. */
  state(): ReturnType<Pool['state']>
  /** Ends all threads. Calls in flight and later calls fail. */
  close(): Promise<void>
}

type Running = { readonly pool: Pool; users: number }

export function createPools(options: Omit<Parameters<typeof createPool>[0], 'settings'>): Pools {
  const running = new Map<string, Running>()
  const ends = new Set<Promise<void>>()
  let isClosed = false

  function start(key: string, settings: PoolSettings): Running {
    const started = { pool: createPool({ ...options, settings }), users: 0 }
    if (isClosed) void started.pool.close()
    running.set(key, started)
    return started
  }

  function endUnused(key: string): void {
    const found = running.get(key)
    if (found === undefined || found.users > 0) return
    running.delete(key)
    const ending = found.pool.close().finally(() => ends.delete(ending))
    ends.add(ending)
  }

  return {
    share: ({ timeoutMs, memoryMb, workers, env }) => {
      const settings = { timeoutMs, memoryMb, workers, env }
      const key = JSON.stringify(settings)
      return {
        key,
        settings,
        acquire: () => {
          const found = running.get(key) ?? start(key, settings)
          found.users += 1
          return found.pool
        },
        release: () => {
          const found = running.get(key)
          if (found === undefined) return
          found.users -= 1
          // the pool may still run the call that released it
          if (found.users === 0) queueMicrotask(() => endUnused(key))
        },
      }
    },
    state: () => {
      const states = [...running.values()].map(({ pool }) => pool.state())
      return {
        threads: states.reduce((sum, { threads }) => sum + threads, 0),
        serving: states.flatMap(({ serving }) => serving),
      }
    },
    close: async () => {
      isClosed = true
      await Promise.all([...[...running.values()].map(({ pool }) => pool.close()), ...ends])
    },
  }
}
