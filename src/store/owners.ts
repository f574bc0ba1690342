// What the owners of a store share: who they are, what one of them has for itself, and what they tell each other.

/** A gateway on a store. `address`: where its hooks are. */
export type NodeInfo = {
  readonly id: string
  readonly version: string
  readonly generation: string
  readonly address: string
}

/** `seenAt`: when it joined last, by the clock of the store. */
export type NodeRecord = NodeInfo & { readonly seenAt: number }

/** A right that one owner has at a time, such as to watch a mailbox. */
export type Lease = { readonly name: string; readonly fence: number }

/**
 * What another owner left to do. `jobs`: a job may be claimed. `waiting`: a delivery is pending or parked. `wakes`: an event that asks for
 * a turn is not consumed; it is not signalled at once, because its owner queues the turn.
 */
export type Signal = 'jobs' | 'waiting' | 'wakes'

/** Failed attempts of clients. `scope`: what they tried to open. */
export type FailuresQuery = {
  readonly scope: string
  readonly clients: readonly { readonly client: string; readonly count: number }[]
  readonly failures: number
  readonly windowMs: number
  readonly lockMs: number
}
