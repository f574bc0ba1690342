// State that the owners of a store share: their records, their leases, and their signals to each other.

/** A gateway on a store. `address`: the URL of its hooks. */
export type NodeInfo = {
  readonly id: string
  readonly version: string
  readonly generation: string
  readonly address: string
}

/** `seenAt`: the time at which it last joined, by the clock of the store. */
export type NodeRecord = NodeInfo & { readonly seenAt: number }

/** A right that only one owner has at a time, such as the right to watch a mailbox. */
export type Lease = { readonly name: string; readonly fence: number }

/**
 * Work that another owner stored. `jobs`: a job may be claimed. `waiting`: a delivery is pending or parked. `wakes`: an event that asks for a
 * turn is not consumed; it is not signalled at once, because the owner that stored it queues the turn.
 */
export type Signal = 'jobs' | 'waiting' | 'wakes'

/** Failed attempts of clients. `scope`: the name of the throttle that counts them. */
export type FailuresQuery = {
  readonly scope: string
  readonly clients: readonly { readonly client: string; readonly count: number }[]
  readonly failures: number
  readonly windowMs: number
  readonly lockMs: number
}
