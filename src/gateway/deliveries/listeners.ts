// What the parts of a gateway are told of deliveries. The lists of listeners are in `app.ts`, in the order of their calls. No listener delays an answer.
import type { Delivery } from '../../core/model/delivery.ts'
import { hopsHeader, readHops } from '../../core/model/hops.ts'
import type { Meter } from '../../model/meter.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import type { Generation } from '../generation/generation.ts'
import { type Hook, toHookLabel } from '../../core/mapping/hook.ts'
import type { DeliveryAnswer, Settlement } from '../../store/records.ts'

/** A request that brings a delivery. `isLate`: it was refused when it arrived. */
export type Arriving = {
  readonly delivery: Delivery
  readonly hook: Hook
  readonly client: string
  readonly isLate: boolean
}

/** A delivery that has a row. `before`: its state until now. */
export type Waiting = {
  readonly delivery: Pick<Delivery, 'id' | 'method' | 'path' | 'headers' | 'source' | 'event' | 'receivedAt'>
  readonly hook: Hook
  readonly before: 'pending' | 'parked'
}

/** A delivery that was stored, or whose outcome was stored. `at`: the time after the commit, in milliseconds since the epoch. */
export type StoredDelivery = ((Arriving & { readonly kind: 'new' }) | (Waiting & { readonly kind: 'settled' })) & {
  readonly settlement: Settlement
  readonly at: number
}

export type OnStored = (stored: StoredDelivery) => void

/** Called when a request repeats the delivery `first`. */
export type OnRepeated = (repeated: Arriving & { readonly first: DeliveryAnswer }) => void

/** Called when a decision is stored, or refuses the request. If the delivery has no answer yet, the call comes before the answer. */
export type OnDecided = (delivery: Delivery, decision: Decision, generation: Generation) => void

/** Called when a delivery becomes parked. */
export type OnParked = (parked: {
  readonly deliveryId: string
  readonly hook: string
  readonly waitsFor: string | undefined
  readonly hops: number
}) => void

/** Whether a delivery became parked, and was not parked before. */
export function isParkedNow(stored: StoredDelivery): boolean {
  const { state, problem } = stored.settlement
  return state === 'parked' && problem !== undefined && !(stored.kind === 'settled' && stored.before === 'parked')
}

export function reportParked(stored: StoredDelivery, onParked: OnParked): void {
  if (!isParkedNow(stored)) return
  const { delivery, settlement } = stored
  const { id: deliveryId, path: hook, headers } = delivery
  onParked({ deliveryId, hook, waitsFor: settlement.waitsFor, hops: readHops(headers[hopsHeader] ?? '') })
}

/** Counts a new delivery, and measures the time of its request. */
export function countStored(stored: StoredDelivery, meter: Meter): void {
  if (stored.kind !== 'new') return
  const { delivery, hook, settlement, isLate, at } = stored
  const seconds = isLate ? undefined : (at - delivery.receivedAt) / 1_000
  meter('deliveries', { outcome: settlement.state, hook: toHookLabel(hook, delivery.path) }, seconds)
}
