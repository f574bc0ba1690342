// Up to two batches are in flight, each on one connection. Appends that arrive meanwhile form the next batch. There is no timer.
import { Problem } from '../../core/model/problem.ts'
import { storeUnavailable } from '../rules.ts'
import type { Appended, NewDelivery } from '../records.ts'
import { RefusedStatement } from './errors.ts'

const maxInFlight = 2
const batchLimit = 256

type Call = {
  readonly delivery: NewDelivery
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: unknown) => void
}

type Batches = {
  append(delivery: NewDelivery): Promise<Appended>
  waiting(): number
}

/**
 * `store` commits a batch, all or nothing. The deliveries of a batch that Postgres refuses are stored one by one, so that only the faulty one
 * fails.
 */
export function createBatches(options: {
  readonly store: (batch: readonly NewDelivery[]) => Promise<Appended[]>
  /** The maximum number of waiting calls. Further calls are refused. */
  readonly maxQueued: number
}): Batches {
  const { store, maxQueued } = options
  let waiting: Call[] = []
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

  /** The next batch in order of arrival. It ends before a delivery whose dedupe key is already in the batch. */
  function take(): readonly Call[] {
    const keys = new Set<string>()
    let end = 0
    for (const { delivery } of waiting.slice(0, batchLimit)) {
      const key = delivery.dedupe && `${delivery.hook}\0${delivery.dedupe.key}`
      if (key !== undefined && keys.has(key)) break
      if (key !== undefined) keys.add(key)
      end += 1
    }
    const batch = waiting.slice(0, end)
    waiting = waiting.slice(end)
    return batch
  }

  async function commit(batch: readonly Call[]): Promise<void> {
    try {
      const appended = await store(batch.map(({ delivery }) => delivery))
      for (const [index, { resolve, reject }] of batch.entries()) {
        const result = appended[index]
        if (result) resolve(result)
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
    append(delivery) {
      if (waiting.length >= maxQueued) {
        return Promise.reject(storeUnavailable('The store cannot keep up: its queue is full.', 1))
      }
      return new Promise((resolve, reject) => {
        waiting.push({ delivery, resolve, reject })
        schedule()
      })
    },
    waiting: () => waiting.length,
  }
}
