// A request that was let in becomes a delivery: recognised if it repeats another one, decided, stored, and answered. If the code takes longer than
// its sender waits, the delivery is stored as pending, and settled after the answer.
import { within } from '../../base/time.ts'
import { toProblem, type TraceEntry } from '../../core/model/problem.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import {
  buildDelivery,
  checkBody,
  checkBodyLate,
  convertRequest,
  type InflatedRequest,
} from '../../core/mapping/delivery.ts'
import type { Generation } from '../generation/generation.ts'
import { findMapping, type Hook } from '../../core/mapping/hook.ts'
import { decide } from '../../core/mapping/pipeline.ts'
import type { DedupeKey } from '../../store/records.ts'
import type { Clock, Store } from '../../store/store.ts'
import { toFirstAnswer, toWaitingAnswer } from './answers.ts'
import { createDeduplicator, readDedupe, toEarlierDedupe } from './duplicates.ts'
import { createHeldSessions } from './held-sessions.ts'
import type { Arriving, OnRepeated } from './listeners.ts'
import { createQueues } from './queues.ts'
import type { Rerunner } from './rerun.ts'
import type { Deciding, Settler, Settling } from './settle.ts'
import { isRefused, toPendingSettlement } from './settlement.ts'
import { runInRequestSpan } from './spans.ts'
import { isUnmatched } from './unmatched.ts'

type ArrivalsParts = {
  readonly store: Pick<Store, 'findAnswer' | 'forget' | 'countQueuedOfKey' | 'holds'>
  readonly settler: Settler
  readonly rerunner: Pick<Rerunner, 'claim' | 'release' | 'settleLate'>
  readonly onRepeated: OnRepeated
  readonly clock: Clock
  readonly newId: () => string
  /** `hookloom dev`: answers contain the operator's problems, and a redelivery of a sender runs again. */
  readonly development: boolean
}

/** A request that was admitted. `trace`: the result of each proof. */
export type AdmittedRequest = InflatedRequest & {
  readonly hook: Hook
  readonly client: string
  readonly trace: readonly TraceEntry[]
}

/** A request that arrived earlier: it was refused then, or it arrived elsewhere. */
type EarlierArrival = {
  readonly kind: 'refused' | 'elsewhere'
  readonly requestId: string
  readonly receivedAt: number
}

export type Arrivals = {
  /**
   * Answers a request. Throws its refusal. `earlier`: if the request has no dedupe key, its request id becomes one, so that it runs only once.
   */
  answer(request: AdmittedRequest, generation: Generation, earlier?: EarlierArrival): Promise<ArrivalAnswer>
  /** Decides on a request that was refused before, and stores nothing. Throws if it would be refused again. */
  preview(
    request: AdmittedRequest,
    generation: Generation,
    refused: Pick<EarlierArrival, 'receivedAt'>,
  ): Promise<'ran' | 'repeated'>
}

/** `deliveryId`: the delivery that the request became, or repeats. */
type ArrivalAnswer = { readonly answer: Answer; readonly deliveryId: string }

/** A delivery that is decided for a sender who waits. `parkedAnswer`: the first answer of a delivery that was parked before; a new one has none. */
type Arrival = Deciding & Arriving & { readonly dedupe: DedupeKey | undefined; readonly parkedAnswer?: Answer }

export function createArrivals(parts: ArrivalsParts): Arrivals {
  const { store, settler, rerunner, clock, newId, development } = parts
  const once = createDeduplicator(store, development)
  const onceAfterRefusal = createDeduplicator(store, false)
  const { storeIfNotFull: inQueue } = createQueues(store)
  const addWait = createHeldSessions({ store, clock })

  function build(request: AdmittedRequest, receivedAt: number) {
    const { hook } = request
    const { head, body } = convertRequest(request, hook)
    return buildDelivery(head, body, { hook, id: newId(), receivedAt })
  }

  const preview: Arrivals['preview'] = async (request, generation, { receivedAt }) => {
    const delivery = build(request, receivedAt)
    const dedupe = readDedupe(delivery)
    if (dedupe !== undefined && (await store.findAnswer(dedupe.key)) !== undefined) return 'repeated'
    const decision = await decide(delivery, { hook: request.hook, newId })
    if (decision.kind !== 'accept') checkBody(delivery)
    if (isRefused(decision, generation)) throw decision.problem.withTrace(decision.trace)
    return 'ran'
  }

  async function answer(
    request: AdmittedRequest,
    generation: Generation,
    earlier?: EarlierArrival,
  ): Promise<ArrivalAnswer> {
    const { hook, client } = request
    const receivedAt = earlier?.receivedAt ?? clock()
    const isLate = earlier?.kind === 'refused'
    try {
      const delivery = build(request, receivedAt)
      const dedupe = readDedupe(delivery) ?? (earlier && toEarlierDedupe(delivery, earlier.requestId))
      const arrival = { delivery, hook, generation, client, isLate, dedupe: dedupe?.key }
      const runFirst = () => decideAndStore(arrival)
      let deliveryId = delivery.id
      if (dedupe === undefined) return { answer: await runFirst(), deliveryId }
      const given = await (isLate ? onceAfterRefusal : once)(dedupe, {
        onKnown: () => checkBody(delivery),
        onRepeat: (first) => {
          deliveryId = first.deliveryId
          parts.onRepeated({ delivery, hook, client, isLate, first })
        },
        runFirst,
        // a parked delivery that its sender repeats runs under its old id, so that it stays one delivery
        rerunParked: (id, parkedAnswer) => {
          deliveryId = id
          return decideAndStore({ ...arrival, delivery: { ...delivery, id }, parkedAnswer })
        },
      })
      return { answer: given, deliveryId }
    } catch (error) {
      const problem = toProblem(error)
      throw problem.trace.length > 0 ? problem : problem.withTrace(request.trace)
    }
  }

  return { answer, preview }

  function decideAndStore(arrival: Arrival): Promise<Answer> {
    return runInRequestSpan(arrival, () => {
      const deciding = settler.decide(arrival)
      return deciding instanceof Promise ? storeInTime(deciding, arrival) : storeDecision(deciding, arrival)
    })
  }

  /** Stores a decision of code, which may take longer than the sender waits. */
  async function storeInTime(deciding: Promise<Decision>, arrival: Arrival): Promise<Answer> {
    const decision = await waitForCode(deciding, arrival.generation, arrival.generation.config.hooks.answerWithinMs)
    return decision === undefined ? storePending(deciding, arrival) : storeDecision(decision, arrival)
  }

  /** Stores a delivery whose transform still runs when the time for the answer is over. */
  async function storePending(deciding: Promise<Decision>, arrival: Arrival): Promise<Answer> {
    const { delivery, hook, generation, parkedAnswer } = arrival
    checkBodyLate(delivery, deciding)
    // before its row is stored, because other gateways see the row at once
    await rerunner.claim([delivery.id])
    const pending = toPendingSettlement(delivery, generation.id, findMapping(hook, delivery).mapping?.id)
    // a delivery that was parked before stays so until then
    const storing =
      parkedAnswer === undefined
        ? settler.append(arrival, { settlement: pending, answer: toWaitingAnswer(delivery.id, 'pending') })
        : Promise.resolve({ isStored: true, outcome: parkedAnswer })
    const { outcome, isStored } = await storing.catch(async (error: unknown) => {
      await rerunner.release([delivery.id])
      throw error
    })
    // the delivery is on disk, and is settled when the transform ends
    if (isStored)
      void rerunner.settleLate(deciding, delivery, generation, parkedAnswer === undefined ? 'pending' : 'parked')
    else await rerunner.release([delivery.id])
    return outcome
  }

  function storeDecision(decision: Decision, arrival: Arrival): Promise<Answer> {
    // the parts of a long list are stored after the answer
    if ('splits' in decision) return storePending(Promise.resolve(decision), arrival)
    return settler.settle(decision, toSettling(arrival))
  }

  function toSettling(arrival: Arrival): Settling<Answer> {
    const { delivery, hook, generation, parkedAnswer } = arrival
    return {
      delivery,
      hook,
      generation,
      inQueue,
      review(decision) {
        // a body that only code reads was parsed for certain if the code returned an action; after another decision it may still be unparsed
        if (decision.kind !== 'accept') checkBody(delivery)
        if (isRefused(decision, generation)) return decision.problem.withTrace(decision.trace)
        // no mapping takes it now, so it stays parked
        if (parkedAnswer !== undefined && isUnmatched(decision)) return { outcome: parkedAnswer }
        return decision
      },
      async write(settlement, decision, moves) {
        const first = toFirstAnswer(decision, delivery.id, await addWait(settlement), development)
        if (parkedAnswer === undefined) return settler.append(arrival, { settlement, answer: first }, moves)
        const settled = await settler.complete({ delivery, hook, before: 'parked' }, settlement, moves)
        return settled === 'moved' ? settled : { isStored: settled, outcome: settled ? first : parkedAnswer }
      },
      // if the code takes longer than the sender waits, it continues after the answer
      async again(deciding) {
        const leftMs = Math.max(0, delivery.receivedAt + generation.config.hooks.answerWithinMs - clock())
        const decision = await waitForCode(deciding, generation, leftMs)
        return decision ?? { outcome: await storePending(deciding, arrival) }
      },
    }
  }
}

/** The decision of code; undefined after `ms` milliseconds, unless a failure of the code refuses the request. */
function waitForCode(deciding: Promise<Decision>, { config }: Generation, ms: number): Promise<Decision | undefined> {
  return config.hooks.onTransformError === 'reject' ? deciding : within(ms, deciding)
}
