// The pipe, from request to answer: admit, read, recognise, decide, store, answer. Nothing is sent before the store has it.
import type { Delivery } from '../model/delivery.ts'
import type { Log } from '../model/log.ts'
import type { Meter } from '../model/meter.ts'
import { type Problem, toProblem } from '../model/problem.ts'
import type { Decision } from '../pipeline/decision.ts'
import type { Generation } from '../pipeline/generation.ts'
import { decide } from '../pipeline/pipeline.ts'
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
import { checkBody, toDedupe, toDelivery } from './delivery.ts'
import { createEntry, type Incoming, type Trail } from './entry.ts'
import type { HandedSecrets } from './handed.ts'
import { createOnce } from './once.ts'
import type { Refusals } from './refusals.ts'
import type { Rerunner } from './rerun.ts'
import { type LastingDecision, tellParked, toPending, toSettlement } from './settlement.ts'

export type ReceiverParts = {
  readonly generation: () => Generation
  /** For as long as a request runs: the generation that it began with does not retire before it lets go. */
  readonly hold: (generation: Generation) => () => void
  readonly store: Store
  readonly admission: Admission
  readonly handed: HandedSecrets
  readonly refusals: Refusals
  readonly rerunner: Rerunner
  readonly clock: Clock
  readonly newId: () => string
  /** Called when jobs are stored. */
  readonly accepted: (jobs: Settlement['jobs']) => void
  /** `hookloom dev`: answers show operators' problems, and a sender's redelivery runs again. */
  readonly development: boolean
  readonly meter: Meter
  readonly log: Log
}

export type Receive = (incoming: Incoming) => Promise<Answer>

/** The one place that sees all of a request. Its answer is always an answer: nothing is thrown. */
export function createReceiver(parts: ReceiverParts): Receive {
  const { store, clock, newId, development } = parts
  const once = createOnce(store, development)
  const enter = createEntry(parts)

  return async function receive(incoming) {
    const trail: Trail = { hook: undefined, trace: [] }
    const generation = parts.generation()
    const letGo = parts.hold(generation)
    try {
      return await pass(incoming, generation, trail)
    } catch (error) {
      return refuse(toProblem(error), incoming.requestId, trail)
    } finally {
      letGo()
    }
  }

  async function pass(incoming: Incoming, generation: Generation, trail: Trail): Promise<Answer> {
    const entered = await enter(incoming, generation, trail)
    if (entered.kind === 'handshake') return entered.answer
    const receivedAt = clock()
    const delivery = toDelivery(entered.head, entered.body, { generation, id: newId(), receivedAt })
    const dedupe = toDedupe(delivery)
    if (dedupe === undefined) return handle(generation, delivery, undefined, trail)
    return once(dedupe, {
      recognised: () => checkBody(delivery),
      first: () => handle(generation, delivery, dedupe.key, trail),
      parkedAgain: (id, replay) =>
        handleAgain(generation, toDelivery(entered.head, entered.body, { generation, id, receivedAt }), replay, trail),
    })
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
      checkLate(delivery, deciding)
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
    const deciding = decide(generation, delivery, newId)
    const decision = await inPatience(deciding, generation, delivery.path)
    if (decision === undefined) {
      checkLate(delivery, deciding)
      // its row is durable since it was parked: what the transform comes to settles it later
      void parts.rerunner.settleLate(deciding, delivery, generation, 'parked')
      return replay
    }
    const { settlement, answer } = conclude(decision, delivery, generation, trail)
    if (!(await store.settle(delivery.id, settlement))) return replay
    parts.accepted(settlement.jobs)
    return answer
  }

  function conclude(decision: Decision, delivery: Delivery, generation: Generation, trail: Trail) {
    trail.trace = decision.trace
    // code that returned an action was given the payload; whatever else was decided may have left the body unread
    if (decision.kind !== 'accept') checkBody(delivery)
    if (decision.kind === 'refuse') throw decision.problem
    if (decision.kind === 'park' && generation.config.hooks.onTransformError === 'reject') throw decision.problem
    const settlement = toSettlement(decision, delivery, { generation, newId, now: clock() })
    return { settlement, answer: toAnswer(decision, delivery.id, settlement) }
  }

  function toAnswer(decision: LastingDecision, deliveryId: string, settlement: Settlement): Answer {
    if (decision.kind === 'skip') return skippedAnswer
    if (decision.kind === 'accept') {
      return toAcceptedAnswer(deliveryId, decision.actions, settlement.jobs)
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
    parts.meter('deliveries', { outcome: settlement.state })
    tellParked(parts.log, delivery, settlement)
    parts.accepted(settlement.jobs)
    return answer
  }

  function refuse(problem: Problem, requestId: string, trail: Trail): Answer {
    const { code, status, message: error } = problem
    parts.meter('refusals', { code })
    parts.refusals.add({ requestId, receivedAt: clock(), hook: trail.hook, status, code, error, trace: trail.trace })
    // in production refusals are kept, not logged: whoever sends them must not fill the disk
    if (development) parts.log.info({}, `${status} ${code}: ${error} "hookloom list --refused" has its reasons.`)
    if (code === 'internal-error')
      parts.log.error({ err: problem.cause, requestId }, 'a request failed inside the gateway')
    return toRefusalAnswer(problem, development)
  }
}

/** The body of a delivery whose transform still waits or runs. Throws `body-invalid`: then nobody waits for the decision. */
function checkLate(delivery: Delivery, deciding: Promise<Decision>): void {
  try {
    checkBody(delivery)
  } catch (error) {
    void deciding.catch(() => undefined)
    throw error
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
