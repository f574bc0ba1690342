// The pipe from request to answer: admit, read, recognise, decide, store, answer. An answer of success is sent only after the delivery
// is stored.
import { within } from '../base/time.ts'
import { runInSpan } from '../base/trace.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Log, Meter } from '../model/log.ts'
import type { Retain } from '../model/mapping.ts'
import { forgetPayload } from '../model/parse-body.ts'
import { type Problem, toProblem } from '../model/problem.ts'
import { type Decision, decide } from '../pipeline/pipeline.ts'
import type { Generation } from '../pipeline/generation.ts'
import { findMapping, type Hook, toHookLabel } from '../pipeline/hook.ts'
import type { DedupeKey, Settlement } from '../store/records.ts'
import type { Clock, Store } from '../store/store.ts'
import { type Admission, readHookName, toUrlPath } from './admission.ts'
import {
  type Answer,
  skippedAnswer,
  toAcceptedAnswer,
  toCustomAnswer,
  toRefusalAnswer,
  toRepeatedAnswer,
  toWaitingAnswer,
  withProblem,
  type StoredDecision,
  logDelivery,
  findKnownWords,
  type OnParked,
  toPendingSettlement,
  toDeliveryRow,
  toSettlement,
} from '../deliveries/settlement.ts'
import { buildDelivery, checkBody, checkBodyLate, convertMultipart } from '../deliveries/delivery.ts'
import { createEntry, type EntryResult, type Incoming } from './entry.ts'
import type { HandshakeSecrets } from './handshake-secrets.ts'
import { createDeduplicator, readDedupe } from '../deliveries/duplicates.ts'
import type { RefusalLog, Refusals } from './refusals.ts'
import { type Repeats, toRepeatedDelivery } from '../deliveries/repeats.ts'
import type { Rerunner } from '../deliveries/rerun.ts'
import { isUntaken } from '../deliveries/untaken.ts'

type ReceiverParts = {
  readonly generation: () => Generation
  /** Keeps a generation from retiring while a request uses it. Call the returned function at the end. */
  readonly acquire: (generation: Generation) => () => void
  readonly store: Store
  readonly admission: Admission
  readonly handed: HandshakeSecrets
  readonly refusals: Refusals
  readonly refusalLog: RefusalLog
  readonly rerunner: Rerunner
  readonly repeats: Repeats
  readonly clock: Clock
  readonly newId: () => string
  /** Called when jobs are stored. */
  readonly onAccepted: (jobs: Settlement['jobs']) => void
  readonly onParked?: OnParked
  /** `hookloom dev`: answers contain the operator's problems, and a redelivery of a sender runs again. */
  readonly development: boolean
  /** See `toSettlement`. */
  readonly keepByDefault: Retain
  readonly meter: Meter
  readonly log: Log
}

type AdmittedRequest = Extract<EntryResult, { kind: 'delivery' }>
/** How a delivery becomes durable. A new delivery gets a row; a parked one already has one. */
type DeliveryWriter = {
  /** The state before it is settled. */
  readonly state: 'pending' | 'parked'
  /** The answer if no mapping takes a delivery that was parked before: it stays parked. */
  readonly ifUntaken?: Answer
  /** For a transform that still runs. `isOurs`: no other request settles the delivery. */
  wait(settlement: Settlement): Promise<{ answer: Answer; isOurs: boolean }>
  settle(settlement: Settlement, answer: Answer): Promise<{ answer: Answer }>
}

/** A delivery, what it is decided with, and how it is stored. */
type Handling = {
  readonly delivery: Delivery
  readonly hook: Hook
  readonly generation: Generation
  readonly writer: DeliveryWriter
}

export type Receive = (incoming: Incoming) => Promise<Answer>

/** The only function that sees a whole request. It always returns an answer and never throws. */
export function createReceiver(parts: ReceiverParts): Receive {
  const { store, clock, newId, development } = parts
  const once = createDeduplicator(store, development)
  const admitRequest = createEntry(parts)

  return async function receive(incoming) {
    const generation = parts.generation()
    const release = parts.acquire(generation)
    try {
      const entry = await admitRequest(incoming, generation)
      const answer = entry.kind === 'handshake' ? entry.answer : await receiveDelivery(entry, generation)
      parts.refusals.forget(incoming.requestId)
      return answer
    } catch (error) {
      return answerRefusal(toProblem(error), incoming, generation)
    } finally {
      release()
    }
  }

  async function receiveDelivery(request: AdmittedRequest, generation: Generation): Promise<Answer> {
    const { hook } = request
    const receivedAt = clock()
    try {
      const form = convertMultipart(request, hook)
      const { head, body } = form === undefined ? request : await form
      const delivery = buildDelivery(head, body, { hook, id: newId(), receivedAt })
      const dedupe = readDedupe(delivery)
      const first = () => handle({ delivery, hook, generation, writer: createNewWriter(delivery, hook, dedupe?.key) })
      if (dedupe === undefined) return await first()
      return await once(dedupe, {
        onKnown: () => checkBody(delivery),
        onRepeat: (known) => parts.repeats.note(toRepeatedDelivery(delivery, hook, known)),
        runFirst: first,
        // a parked delivery that its sender repeats runs under its old id, so that it stays one delivery
        rerunParked: (id, firstAnswer) => {
          const again = { ...delivery, id }
          return handle({ delivery: again, hook, generation, writer: createParkedWriter(again, hook, firstAnswer) })
        },
      })
    } catch (error) {
      const problem = toProblem(error)
      throw problem.trace.length > 0 ? problem : problem.withTrace(request.trace)
    }
  }

  function handle(handling: Handling): Promise<Answer> {
    const { id, path, headers } = handling.delivery
    const describeStart = () => {
      const { source, event } = findKnownWords(handling.delivery, handling.hook)
      return { 'hookloom.hook': path, 'hookloom.source': source, 'hookloom.event': event }
    }
    const toEnd = ({ status }: Answer) => ({ attributes: { 'http.response.status_code': status }, isFailed: false })
    return runInSpan(
      'hook',
      { traceId: id, describeStart, traceparent: headers['traceparent'], describeResult: toEnd },
      () => decideAndStore(handling),
    )
  }

  function decideAndStore(handling: Handling): Promise<Answer> {
    const { delivery, hook, generation } = handling
    const deciding = decide(delivery, { hook, config: generation.config, newId, serves: true })
    return deciding instanceof Promise ? storeInTime(deciding, handling) : storeDecision(deciding, handling)
  }

  /** For a decision of code, which may take longer than the sender waits. */
  async function storeInTime(deciding: Promise<Decision>, handling: Handling): Promise<Answer> {
    const { delivery, hook, generation, writer } = handling
    const { onTransformError, answerWithinMs } = generation.config.hooks
    const decision = await (onTransformError === 'reject' ? deciding : within(answerWithinMs, deciding))
    if (decision !== undefined) return storeDecision(decision, handling)
    // the transform still runs and the time for the answer is over
    checkBodyLate(delivery, deciding)
    // before other gateways can see the row
    await parts.rerunner.claim([delivery.id])
    const pending = toPendingSettlement(delivery, generation.id, findMapping(hook, delivery).mapping?.id)
    const { answer, isOurs } = await writer.wait(pending).catch(async (error: unknown) => {
      await parts.rerunner.release([delivery.id])
      throw error
    })
    // the delivery is on disk, and is settled when the transform ends
    if (isOurs) void parts.rerunner.settleLate(deciding, delivery, generation, writer.state)
    else await parts.rerunner.release([delivery.id])
    return answer
  }

  async function storeDecision(decision: Decision, { delivery, generation, writer }: Handling): Promise<Answer> {
    // code that returned an action has parsed the payload; after any other decision the body may be unparsed
    if (decision.kind !== 'accept') checkBody(delivery)
    const isRejected = decision.kind === 'park' && generation.config.hooks.onTransformError === 'reject'
    if (decision.kind === 'refuse' || isRejected) throw decision.problem.withTrace(decision.trace)
    if (writer.ifUntaken !== undefined && isUntaken(decision)) return writer.ifUntaken
    const now = clock()
    const settlement = toSettlement(decision, delivery, { generation, newId, now, keepByDefault: parts.keepByDefault })
    // each garbage collection copies the objects that wait for the disk
    forgetPayload(delivery.body)
    return (await writer.settle(settlement, toAnswer(decision, delivery.id, settlement))).answer
  }

  /** The writer of a delivery that is not stored yet. */
  function createNewWriter(delivery: Delivery, hook: Hook, dedupe: DedupeKey | undefined): DeliveryWriter {
    async function append(settlement: Settlement, answer: Answer): Promise<{ answer: Answer; isOurs: boolean }> {
      const appended = await store.append(toDeliveryRow(delivery, { settlement, answer, dedupe }))
      if (appended.kind === 'duplicate') {
        parts.repeats.note(toRepeatedDelivery(delivery, hook, appended.first))
        return { answer: toRepeatedAnswer(appended.first), isOurs: false }
      }
      const now = clock()
      const label = toHookLabel(hook, delivery.path)
      parts.meter('deliveries', { outcome: settlement.state, hook: label }, (now - delivery.receivedAt) / 1_000)
      logDelivery(parts, delivery, settlement, { now, hook })
      parts.onAccepted(settlement.jobs)
      return { answer, isOurs: true }
    }
    return {
      state: 'pending',
      wait: (settlement) => append(settlement, toWaitingAnswer(delivery.id, 'pending')),
      settle: append,
    }
  }

  /** The writer of a delivery that was parked before. */
  function createParkedWriter(delivery: Delivery, hook: Hook, firstAnswer: Answer): DeliveryWriter {
    return {
      state: 'parked',
      ifUntaken: firstAnswer,
      wait: async () => ({ answer: firstAnswer, isOurs: true }),
      async settle(settlement, answer) {
        if (!(await store.settle(delivery.id, settlement))) return { answer: firstAnswer }
        parts.onAccepted(settlement.jobs)
        logDelivery(parts, delivery, settlement, { now: clock(), before: 'parked', hook })
        return { answer }
      },
    }
  }

  function toAnswer(decision: StoredDecision, deliveryId: string, settlement: Settlement): Answer {
    if (decision.kind === 'skip') return skippedAnswer
    if (decision.kind === 'accept') {
      const { actions, response } = decision
      return response === undefined
        ? toAcceptedAnswer(deliveryId, actions, settlement.jobs)
        : toCustomAnswer(deliveryId, response)
    }
    const parked = toWaitingAnswer(deliveryId, 'parked')
    return development ? withProblem(parked, decision.problem) : parked
  }

  function answerRefusal(problem: Problem, { req, requestId }: Incoming, generation: Generation): Answer {
    const { config } = generation
    const { code, status, message: error, trace } = problem
    const url = req.url ?? '/'
    const hook = readHookName(url, config.hooks.path)
    parts.meter('refusals', { code, hook: hook === undefined ? '' : toHookLabel(generation.hook(hook), hook) })
    parts.refusals.add({
      requestId,
      receivedAt: clock(),
      hook,
      path: toUrlPath(url),
      ...parts.admission.findCaller(req, generation),
      status,
      code,
      error,
      trace,
    })
    if (!development) parts.refusalLog.count(code)
    else parts.log.info({}, `${status} ${code}: ${error} "hookloom list --refused" shows the reasons.`)
    if (code === 'internal-error')
      parts.log.error({ err: problem.cause, requestId }, 'a request failed inside the gateway')
    return toRefusalAnswer(problem, development)
  }
}
