// Calls that arrive together share a transaction. Those that arrive while it runs form the next batch. There is no timer.
import { Problem } from '../../core/model/problem.ts'
import { storeUnavailable } from '../rules.ts'
import { RefusedStatement } from './errors.ts'

const batchLimit = 256

type Call<Item, Result> = {
  readonly item: Item
  readonly resolve: (result: Result | Promise<Result>) => void
  readonly reject: (error: unknown) => void
}

type Batches<Item, Result> = {
  add(item: Item): Promise<Result>
  waiting(): number
}

/**
 * `store` commits a batch, all or nothing. The items of a batch that Postgres refuses are stored one by one, so that only the faulty one fails. A
 * result may come after the batch: the next batch does not wait for it.
 */
export function createBatches<Item, Result>(options: {
  readonly store: (batch: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>
  /** Two items with the same key are never in one batch. */
  readonly toKey: (item: Item) => string | undefined
  /** The maximum number of batches at the same time, each on one connection. */
  readonly maxInFlight: number
  /** The maximum number of waiting calls. Further calls are refused. */
  readonly maxQueued: number
}): Batches<Item, Result> {
  const { store, toKey, maxInFlight, maxQueued } = options
  let waiting: Call<Item, Result>[] = []
  let inFlight = 0
  let scheduled = false

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      flush()
    })
  }

  function flush(): void {
    if (inFlight >= maxInFlight || waiting.length === 0) return
    const batch = take()
    inFlight += 1
    void commit(batch).finally(() => {
      inFlight -= 1
      flush()
    })
  }

  /** The next batch in order of arrival. It ends before an item whose key is already in the batch. */
  function take(): readonly Call<Item, Result>[] {
    const keys = new Set<string>()
    let end = 0
    for (const { item } of waiting.slice(0, batchLimit)) {
      const key = toKey(item)
      if (key !== undefined && keys.has(key)) break
      if (key !== undefined) keys.add(key)
      end += 1
    }
    const batch = waiting.slice(0, end)
    waiting = waiting.slice(end)
    return batch
  }

  async function commit(batch: readonly Call<Item, Result>[]): Promise<void> {
    try {
      const results = await store(batch.map(({ item }) => item))
      for (const [index, { resolve, reject }] of batch.entries()) {
        const result = results[index]
        if (result !== undefined) resolve(result)
        else reject(storeUnavailable('The store cannot write this.', 5))
      }
    } catch (error) {
      const isRefused = error instanceof Problem && error.cause instanceof RefusedStatement
      if (batch.length === 1 || !isRefused) {
        for (const { reject } of batch) reject(error)
        return
      }
      for (const call of batch) await commit([call])
    }
  }

  return {
    add(item) {
      if (waiting.length >= maxQueued) {
        return Promise.reject(storeUnavailable('The store cannot keep up: its queue is full.', 1))
      }
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        schedule()
      })
    },
    waiting: () => waiting.length,
  }
}
