// The pipe, from request to answer: admit, read, recognise, decide, store, answer. Nothing is sent before the store has it.
import type { IncomingMessage } from 'node:http'
import type { Delivery, DeliveryHead, TraceEntry } from '../model/delivery.ts'
import type { Log } from '../model/log.ts'
import { Problem, toProblem } from '../model/problem.ts'
import type { Decision } from '../pipeline/decision.ts'
import { type Generation, toBodyLimit } from '../pipeline/generation.ts'
import { decide, isHook } from '../pipeline/pipeline.ts'
import type { Clock, DedupeKey, Settlement, Store } from '../store/store.ts'
import type { Admission } from './admission.ts'
import {
  type Answer,
  skippedAnswer,
  toAcceptedAnswer,
  toRefusalAnswer,
  toReplay,
  toWaitingAnswer,
  withProblem,
} from './answer.ts'
import { readBody } from './body.ts'
import { toDedupe, toDelivery } from './delivery.ts'
import { createOnce } from './once.ts'
import type { Refusals } from './refusals.ts'
import type { Rerunner } from './rerun.ts'
import { hasWork, type LastingDecision, toPending, toSettlement } from './settlement.ts'

export type Incoming = {
  readonly req: IncomingMessage
  readonly requestId: string
  /** Answers `Expect: 100-continue`; called just before the body is read. */
  readonly continueNow: () => void
}

export type ReceiverParts = {
  readonly generation: () => Generation
  readonly store: Store
  readonly admission: Admission
  readonly refusals: Refusals
  readonly rerunner: Rerunner
  readonly clock: Clock
  readonly newId: () => string
  /** Called when jobs were stored. */
  readonly accepted: () => void
  /** `hookloom dev`: answers show operators' problems, and a sender's redelivery runs again. */
  readonly development: boolean
  readonly log: Log
}

/** What is known of a request so far, for the record of a refusal. */
type Trail = { hook: string | undefined; trace: readonly TraceEntry[] }

export type Receive = (incoming: Incoming) => Promise<Answer>

/** The one place that sees all of a request. Its answer is always an answer: nothing is thrown. */
export function createReceiver(parts: ReceiverParts): Receive {
  const { store, clock, newId, development } = parts
  const once = createOnce(store, development)

  return async function receive(incoming) {
    const trail: Trail = { hook: undefined, trace: [] }
    try {
      return await pass(incoming, trail)
    } catch (error) {
      return refuse(toProblem(error), incoming.requestId, trail)
    }
  }

  async function pass(incoming: Incoming, trail: Trail): Promise<Answer> {
    const generation = parts.generation()
    const head = parts.admission.admit(incoming.req, generation.config)
    trail.hook = head.path
    if (!isHook(generation, head.path)) throw new Problem('hook-unknown', 'No hook has this name.')
    const delivery = await read(incoming, head, generation)
    const dedupe = toDedupe(delivery)
    if (dedupe === undefined) return handle(generation, delivery, undefined, trail)
    return once(dedupe, {
      first: () => handle(generation, delivery, dedupe.key, trail),
      parkedAgain: (deliveryId, replay) => handleAgain(generation, { ...delivery, id: deliveryId }, replay, trail),
    })
  }

  async function read(incoming: Incoming, head: DeliveryHead, generation: Generation): Promise<Delivery> {
    const { bytes } = await readBody(incoming.req, {
      limit: toBodyLimit(generation, head.path),
      timeoutMs: generation.config.server.bodyTimeoutMs,
      continueNow: incoming.continueNow,
    })
    return toDelivery(head, bytes, newId(), clock())
  }

  async function handle(
    generation: Generation,
    delivery: Delivery,
    dedupe: DedupeKey | undefined,
    trail: Trail,
  ): Promise<Answer> {
    const deciding = decide(generation, delivery, newId)
    const decision = await inPatience(deciding, generation, delivery.path)
    if (decision === undefined) {
      const pending = toPending(delivery, generation.id)
      const answer = toWaitingAnswer(delivery.id, 'pending')
      const stored = await append(delivery, pending, answer, dedupe)
      // the transform goes on; its delivery is on disk and is settled when it ends
      if (stored === answer) void parts.rerunner.settleLate(deciding, delivery, generation)
      return stored
    }
    const { settlement, answer } = conclude(decision, delivery, generation, trail)
    return append(delivery, settlement, answer, dedupe)
  }

  /** A sender sent a parked delivery again: it runs under its old id, so that it is still one delivery. */
  async function handleAgain(
    generation: Generation,
    delivery: Delivery,
    replay: Answer,
    trail: Trail,
  ): Promise<Answer> {
    const decision = await decide(generation, delivery, newId)
    const { settlement, answer } = conclude(decision, delivery, generation, trail)
    if (!(await store.settle(delivery.id, settlement))) return replay
    if (hasWork(settlement)) parts.accepted()
    return answer
  }

  function conclude(decision: Decision, delivery: Delivery, generation: Generation, trail: Trail) {
    trail.trace = decision.trace
    if (decision.kind === 'refuse') throw decision.problem
    if (decision.kind === 'park' && generation.config.hooks.onTransformError === 'reject') throw decision.problem
    const settlement = toSettlement(decision, delivery, { generation: generation.id, newId, now: clock() })
    return { settlement, answer: toAnswer(decision, delivery.id, settlement) }
  }

  function toAnswer(decision: LastingDecision, deliveryId: string, settlement: Settlement): Answer {
    if (decision.kind === 'skip') return skippedAnswer
    if (decision.kind === 'accept') {
      return toAcceptedAnswer(
        deliveryId,
        decision.actions,
        settlement.jobs.map((job) => job.id),
      )
    }
    const parked = toWaitingAnswer(deliveryId, 'parked')
    return development ? withProblem(parked, decision.problem) : parked
  }

  async function append(
    delivery: Delivery,
    settlement: Settlement,
    answer: Answer,
    dedupe: DedupeKey | undefined,
  ): Promise<Answer> {
    const { id, receivedAt, path: hook, source, event } = delivery
    const row = {
      id,
      receivedAt,
      hook,
      source,
      event,
      dedupe,
      answer: { status: answer.status, body: answer.body ?? '' },
    }
    const appended = await store.append({ ...settlement, ...row })
    if (appended.kind === 'duplicate') return toReplay(appended.first)
    if (hasWork(settlement)) parts.accepted()
    return answer
  }

  function refuse(problem: Problem, requestId: string, trail: Trail): Answer {
    const { code, status, message: error } = problem
    parts.refusals.add({ requestId, receivedAt: clock(), hook: trail.hook, status, code, error, trace: trail.trace })
    if (code === 'internal-error')
      parts.log.error({ err: problem.cause, requestId }, 'a request failed inside the gateway')
    return toRefusalAnswer(problem, development)
  }
}

/** The decision, or undefined when a transform is still at it and the sender's patience ends. */
async function inPatience(
  deciding: Promise<Decision>,
  generation: Generation,
  path: string,
): Promise<Decision | undefined> {
  const { hooks } = generation.config
  const waits =
    hooks.onTransformError === 'park' && generation.router.candidates(path).some(({ transform }) => transform)
  if (!waits) return deciding
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, hooks.answerWithinMs, undefined)
  })
  try {
    return await Promise.race([deciding, patience])
  } finally {
    clearTimeout(timer)
  }
}
