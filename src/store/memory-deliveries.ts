// Deliveries of the memory store as it keeps them, and as it gives them back.
import type { Job } from '../model/job.ts'
import type {
  Answered,
  DedupeKey,
  DeliveryRecord,
  KeptRequest,
  NewDelivery,
  OpenDelivery,
  Settlement,
} from './store.ts'

/** A delivery as it stands. */
export type Kept = Omit<NewDelivery, keyof Settlement> & {
  settlement: Omit<Settlement, 'jobs'>
  settledAt: number | undefined
  bodyDiffered: boolean
}

export function isWaiting({ settlement: { state } }: Kept): boolean {
  return state === 'pending' || state === 'parked'
}

/** `before`: the request that was kept so far. */
export function toKept(
  settlement: Settlement,
  now: number,
  before?: KeptRequest,
): Pick<Kept, 'settlement' | 'settledAt'> {
  const waits = settlement.state === 'pending' || settlement.state === 'parked'
  const request = settlement.request ?? (waits ? before : undefined)
  const copy = request && { head: request.head, body: new Uint8Array(request.body) }
  return { settlement: { ...settlement, request: copy }, settledAt: waits ? undefined : now }
}

export function toKey({ hook, key }: Pick<DedupeKey, 'hook' | 'key'>): string {
  return JSON.stringify([hook, key])
}

export function toAnswered({ id, settlement, answer, dedupe }: Kept): Answered {
  return { deliveryId: id, state: settlement.state, ...answer, bodyHash: dedupe?.bodyHash ?? '' }
}

export function toOpen({ id, receivedAt, hook, settlement }: Kept): OpenDelivery[] {
  const { state, waitsFor, generation, request } = settlement
  if ((state !== 'pending' && state !== 'parked') || !request) return []
  return [{ deliveryId: id, receivedAt, state, hook, waitsFor, generation, request }]
}

export function toRecord({ id, settlement, ...kept }: Kept, jobs: readonly Job[]): DeliveryRecord {
  return {
    deliveryId: id,
    receivedAt: kept.receivedAt,
    hook: kept.hook,
    source: kept.source,
    event: kept.event,
    mappingId: settlement.mappingId,
    generation: settlement.generation,
    transformHash: settlement.transformHash,
    state: settlement.state,
    bodyDiffered: kept.bodyDiffered,
    problem: settlement.problem,
    trace: settlement.trace,
    log: settlement.log,
    jobs,
  }
}
