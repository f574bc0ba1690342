// Reads deliveries that wait, one after the other.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OpenDelivery } from '../../store/records.ts'
import type { Store } from '../../store/store.ts'

type WalkOptions = {
  readonly store: Pick<Store, 'openDeliveries' | 'countInState'>
  readonly query: {
    readonly state: 'pending' | 'parked'
    readonly waitsFor?: string
    readonly notFailedBy?: readonly string[]
  }
  /** Deliveries for which it returns true are left out. */
  readonly isSkipped?: (deliveryId: string) => boolean
}

/**
 * The waiting deliveries in arrival order, with one body in memory at a time. The walk visits at most as many deliveries as waited at its
 * start: new ones must not prolong it forever.
 */
export async function* walkWaiting({
  store,
  query,
  isSkipped = () => false,
}: WalkOptions): AsyncGenerator<OpenDelivery> {
  let after: string | undefined
  let left: number | undefined
  while (left !== 0) {
    const [open] = await store.openDeliveries({ ...query, limit: 1, after })
    if (!open) return
    left ??= await store.countInState(query.state)
    after = open.deliveryId
    if (!isSkipped(after)) {
      left -= 1
      yield open
    }
    // store reads of SQLite are synchronous: without this pause, a hundred thousand of them would block every request
    await nextTurn()
  }
}
