// Deliveries that were answered 200 and that no mapping takes now, because a mapping, hook, preset or proof was removed or renamed. They stay
// parked.
import { missingMappingModule, listOpeningProofs } from '../../core/model/delivery.ts'
import { Problem, toProblemRecord } from '../../core/model/problem.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import type { DeliveryRecord, KeptRequest, OpenDelivery, Settlement } from '../../store/records.ts'

type UnmatchedDecision = Extract<Decision, { kind: 'skip' }>

/** Whether the mappings, and not a transform, skip a delivery. A new delivery then has the outcome `skipped`. */
export function isUnmatched(decision: Decision): decision is UnmatchedDecision {
  return decision.kind === 'skip' && !decision.isByCode
}

/** A waiting delivery whose request is what was stored. */
export type ReadableDelivery = OpenDelivery & { readonly request: KeptRequest }

export type UnmatchedDelivery = {
  readonly open: ReadableDelivery
  readonly record: DeliveryRecord
  /** A problem if no mapping can read the body of the delivery. */
  readonly decision: UnmatchedDecision | Problem
  /** The id of the generation that decided. */
  readonly generation: string
  readonly now: number
}

/** The settlement of a delivery that no mapping takes now. It keeps the request and the mapping that took it, and says since when none does. */
export function buildUnmatchedSettlement(delivery: UnmatchedDelivery): Settlement {
  const { open, record, decision, generation, now } = delivery
  const isKnown = open.waitsFor === missingMappingModule && record.problem !== undefined
  return {
    state: 'parked',
    mappingId: record.mappingId,
    generation,
    waitsFor: missingMappingModule,
    jobs: [],
    problem: isKnown
      ? record.problem
      : toProblemRecord(buildMissingMappingProblem(decision, now, listOpeningProofs(open.request.head.admitted))),
    trace: decision.trace,
    log: [],
  }
}

function buildMissingMappingProblem(
  decision: UnmatchedDecision | Problem,
  now: number,
  signedFor: readonly string[],
): Problem {
  const since = `since ${new Date(now).toISOString().slice(0, 16).replace('T', ' ')}Z`
  const place = signedFor.find((proof) => /^mapping-\d+$/.test(proof))
  const next =
    place === undefined
      ? 'The delivery runs when a mapping takes it.'
      : `Its proof is known only as "${place}", which may have been a position. To run it, set "id": "${place}" in the mapping of its sender.`
  return new Problem('mapping-missing', `${describeReason(decision, since)} ${next}`)
}

function describeReason(decision: UnmatchedDecision | Problem, since: string): string {
  if (decision instanceof Problem) return `No mapping takes it ${since}: ${decision.message}`
  const { mappingId, why } = decision
  return mappingId === undefined
    ? `No mapping takes it ${since}.`
    : `The mapping "${mappingId}" makes nothing of it ${since}: ${why}.`
}
