// A walk through what waits in the store, oldest first: one body in memory at a time, and room for other work after each.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OpenDelivery, Store } from '../store/store.ts'

type Walk = {
  readonly store: Pick<Store, 'open' | 'counts'>
  readonly query: { readonly state: 'pending' | 'parked'; readonly waitsFor?: string }
  /** Those that are passed over. */
  readonly skips?: (deliveryId: string) => boolean
}

/** No more of them than wait at the beginning: what comes meanwhile must not keep the walk going. */
export async function* walkWaiting({ store, query, skips = () => false }: Walk): AsyncGenerator<OpenDelivery> {
  let left = (await store.counts()).deliveries[query.state]
  let after: string | undefined
  while (left > 0) {
    const [open] = await store.open({ ...query, limit: 1, after })
    if (!open) return
    after = open.deliveryId
    if (!skips(after)) {
      left -= 1
      yield open
    }
    // the store is read within one turn of the event loop: a hundred thousand reads would hold up every request
    await nextTurn()
  }
}
