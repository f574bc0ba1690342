// What the parts of a gateway are told of deliveries.
import type { Delivery } from '../model/delivery.ts'
import type { Decision } from '../pipeline/decision.ts'
import type { Generation } from '../pipeline/generation.ts'

/** Called when a delivery becomes parked. */
export type OnParked = (parked: {
  readonly deliveryId: string
  readonly hook: string
  readonly waitsFor: string | undefined
  readonly hops: number
}) => void

/**
 * Called when the decision of a mapping with code is stored or refuses the request; for other decisions, it may be called. If the delivery has no
 * answer yet, the call comes before the answer. Must not throw.
 */
export type OnDecided = (delivery: Delivery, decision: Decision, generation: Generation) => void
