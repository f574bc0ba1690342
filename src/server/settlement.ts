// A decision as the rows that make it durable.
import { planJobs, whyDeferred } from '../effects/plan.ts'
import { type Delivery, toDeliveryHead } from '../model/delivery.ts'
import type { Log } from '../model/log.ts'
import { toProblemRecord } from '../model/problem.ts'
import type { Decision } from '../pipeline/decision.ts'
import type { Generation } from '../pipeline/generation.ts'
import type { DedupeKey, NewDelivery, Settlement } from '../store/store.ts'
import type { Answer } from './answer.ts'

/** A decision that leaves a row; a refusal leaves none. */
export type LastingDecision = Exclude<Decision, { kind: 'refuse' }>

export function toSettlement(
  decision: LastingDecision,
  delivery: Delivery,
  context: { generation: Generation; newId: () => string; now: number },
): Settlement {
  const { generation, newId, now } = context
  const { mappingId, transformHash, trace, log } = decision
  const reasons = { mappingId, transformHash, trace, log, generation: generation.id }
  switch (decision.kind) {
    case 'accept':
      return {
        ...reasons,
        state: 'accepted',
        jobs: planJobs(decision.actions, {
          newId,
          now,
          whyDeferred: (agentId) => whyDeferred(generation.config, agentId, now),
        }),
        request: decision.retain ? toKeptRequest(delivery) : undefined,
      }
    case 'park':
      return {
        ...reasons,
        state: 'parked',
        jobs: [],
        problem: toProblemRecord(decision.problem),
        waitsFor: decision.waitsFor,
        request: toKeptRequest(delivery),
      }
    case 'skip':
      return { ...reasons, state: 'skipped', jobs: [] }
  }
}

export function tellParked(log: Log, { id, path }: Delivery, { problem }: Settlement): void {
  if (problem === undefined) return
  log.warn({ deliveryId: id, hook: path }, `parked: ${problem.detail} "hookloom show ${id}" has the rest.`)
}

/** The row of a new delivery: what became of it, and the answer that a duplicate gets again. */
export function toRow(
  delivery: Delivery,
  { settlement, answer, dedupe }: { settlement: Settlement; answer: Answer; dedupe: DedupeKey | undefined },
): NewDelivery {
  const { id, receivedAt, path: hook, source, event } = delivery
  const { status, body = '' } = answer
  return { ...settlement, id, receivedAt, hook, source, event, dedupe, answer: { status, body } }
}

/** The settlement of a delivery whose transform still runs. */
export function toPending(delivery: Delivery, generation: string): Settlement {
  return {
    state: 'pending',
    mappingId: undefined,
    generation,
    jobs: [],
    trace: [],
    log: [],
    request: toKeptRequest(delivery),
  }
}

function toKeptRequest(delivery: Delivery): Settlement['request'] {
  return { head: toDeliveryHead(delivery), body: delivery.body.bytes }
}
