// This gateway as one of several on a store: what it does for all of them, and what it learns of the others.
import type { Effects } from '../effects/effects.ts'
import type { Log } from '../model/log.ts'
import { createNamedLeases, type Duty, type LeaseTimes, type NamedLeases } from '../store/named-leases.ts'
import type { Store } from '../store/store.ts'

/** What acts when this gateway gets or loses a duty, and on the signals of others. */
export type NodeActors = {
  readonly effects: Pick<Effects, 'poke' | 'lookForWakes' | 'timekeeperChanged'>
  readonly mailbox: { apply(): void }
  readonly drain: { look(): void }
}

export type Node = {
  readonly leases: NamedLeases
  /** Each is done by one gateway: the heartbeats of the intervals, the watched mailbox, the deletion of old deliveries. */
  readonly duties: Readonly<Record<'heartbeats' | 'mailbox' | 'retention', Duty>>
  start(actors: NodeActors): void
  stop(): Promise<void>
}

export function createNode(parts: { store: Store; log: Log; leaseTimes?: LeaseTimes | undefined }): Node {
  const { store, log, leaseTimes: times } = parts
  const leases = createNamedLeases({ store, log, times })
  let actors: NodeActors | undefined
  let unsubscribe = () => {}
  return {
    leases,
    duties: {
      heartbeats: leases.duty('heartbeats', () => actors?.effects.timekeeperChanged()),
      mailbox: leases.duty('mailbox', () => actors?.mailbox.apply()),
      retention: leases.duty('retention', () => {}),
    },
    start(given) {
      actors = given
      const { effects, mailbox, drain } = given
      // a duty that it got before
      effects.timekeeperChanged()
      mailbox.apply()
      unsubscribe = store.subscribe((signal) => {
        if (signal === 'jobs') effects.poke()
        if (signal === 'waiting') drain.look()
        if (signal === 'wakes') void effects.lookForWakes()
      })
    },
    async stop() {
      unsubscribe()
      await leases.stop()
    },
  }
}
