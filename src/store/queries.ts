// The queries of the store: filters of deliveries, and the steps of a search.
import type { DeliveryState } from '../core/model/delivery.ts'
import type { Row } from './rows.ts'

/** A search reads only the beginning of a payload, a message or a reply, up to this many bytes or characters. */
export const searchedBytes = 32_768

/** What looks for a time goes back this much further, because the clock may have been set back between two rows. */
export const clockMs = 3_600_000

export type StepQuery = {
  readonly before?: string | undefined
  readonly after?: string | undefined
  readonly rows: number
}

/** Where a step of a search ends. `receivedAt`: milliseconds since the epoch. */
export type SearchStep = { readonly id: string; readonly receivedAt: number }

export function toStep({ id, received_at: receivedAt }: Row): SearchStep {
  return { id: String(id), receivedAt: Number(receivedAt) }
}

/** Filters of `deliveries`. A delivery must match every filter that is given. `since` and `until` are milliseconds since the epoch. */
export type DeliveriesQuery = {
  readonly limit: number
  readonly state?: DeliveryState | undefined
  readonly hook?: string | undefined
  readonly source?: string | undefined
  readonly text?: string | undefined
  readonly since?: number | undefined
  /** Exclusive: deliveries of this moment are left out. */
  readonly until?: number | undefined
  readonly before?: string | undefined
  readonly from?: string | undefined
}

/** Filters of `keptDeliveries`. */
export type KeptQuery = {
  readonly limit: number
  /** The id of a delivery: only those that arrived before it; none if the store has no such id. */
  readonly before?: string | undefined
  readonly hook?: string | undefined
  readonly source?: string | undefined
  /** Only deliveries that were received at this moment or later. */
  readonly since?: number | undefined
  /** Ids of mappings: only deliveries that one of these mappings took. */
  readonly mappings?: readonly string[] | undefined
}
