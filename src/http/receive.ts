// The pipe from request to answer: admit, read, recognise, decide, store, answer. The answer of success is sent after the delivery is stored.
import { within } from '../base/time.ts'
import { isTraced } from '../base/trace.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Log, Meter } from '../model/log.ts'
import type { Retain } from '../model/config/mapping.ts'
import { forgetPayload } from '../model/body.ts'
import { toProblem } from '../model/problem.ts'
import type { Decision } from '../pipeline/decision.ts'
import { decide } from '../pipeline/pipeline.ts'
import type { Generation } from '../pipeline/generation.ts'
import { findMapping, type Hook, toHookLabel } from '../pipeline/hook.ts'
import type { Settlement } from '../store/records.ts'
import type { Clock, Store } from '../store/store.ts'
import type { Access } from './access.ts'
import type { Auditor } from './audit.ts'
import type { Admission } from './admission.ts'
import { toFirstAnswer } from '../deliveries/answers.ts'
import { isRefused, toPendingSettlement, toSettlement } from '../deliveries/settlement.ts'
import type { OnDecided, OnParked } from '../deliveries/listeners.ts'
import type { Answer } from '../pipeline/answer.ts'
import { buildDelivery, checkBody, checkBodyLate, convertRequest } from '../pipeline/delivery.ts'
import { createEntry, type EntryResult, type Incoming } from './entry.ts'
import type { HandshakeSecrets } from './handshake-secrets.ts'
import { createDeduplicator, readDedupe, toRefusedDedupe } from '../deliveries/duplicates.ts'
import { listStateChanges } from '../deliveries/module-state.ts'
import { movesCursors, writeDecision } from '../deliveries/once.ts'
import { createHeldSessions } from '../deliveries/held-sessions.ts'
import { createQueues } from '../deliveries/queues.ts'
import type { Quarantine } from '../deliveries/refused/quarantine.ts'
import type { RefusedRequest } from '../deliveries/refused/calls.ts'
import { createRefuser } from './refuse.ts'
import type { RefusalLog, Refusals } from './refusals.ts'
import { runInRequestSpan } from './spans.ts'
import { type Repeats, toRepeatedDelivery } from '../deliveries/repeats.ts'
import type { Rerunner } from '../deliveries/rerun.ts'
import { createRuns, readWait, type StreamedAnswer } from './runs.ts'
import { takeUrlSecret } from './target.ts'
import type { SenderWatch } from '../deliveries/senders/watch.ts'
import type { ShapeLearner } from '../deliveries/shapes/learner.ts'
import { isUnmatched } from '../deliveries/unmatched.ts'
import { createNewWriter, createParkedWriter, type DeliveryWriter } from '../deliveries/writers.ts'

type ReceiverParts = {
  readonly generation: () => Generation
  /** Keeps a generation from retiring while a request uses it. Call the returned function at the end. */
  readonly acquire: (generation: Generation) => () => void
  readonly store: Store
  readonly access: Access
  readonly auditor: Pick<Auditor, 'perform'>
  readonly admission: Admission
  readonly handed: HandshakeSecrets
  readonly refusals: Refusals
  readonly refusalLog: RefusalLog
  readonly rerunner: Rerunner
  readonly repeats: Repeats
  readonly quarantine: Quarantine
  readonly senders: Pick<SenderWatch, 'noteAccepted' | 'noteRefused'>
  readonly shapes: Pick<ShapeLearner, 'note'>
  readonly clock: Clock
  readonly newId: () => string
  readonly lookForNew: (jobs: Settlement['jobs'], cancel: Settlement['cancel']) => void
  /** Called when jobs are stored. */
  readonly onAccepted: (jobs: Settlement['jobs']) => void
  readonly onParked?: OnParked
  readonly onDecided?: OnDecided
  readonly lookForJobs: () => void
  /** `hookloom dev`: answers contain the operator's problems, and a redelivery of a sender runs again. */
  readonly development: boolean
  /** How many requests are kept if neither the mapping nor `hooks.retain` says it. */
  readonly keepByDefault: Retain
  readonly meter: Meter
  readonly log: Log
}

type AdmittedRequest = Extract<EntryResult, { kind: 'delivery' }>
/** A delivery, the parts that the decision needs, and how the outcome is stored. */
type Handling = {
  readonly delivery: Delivery
  readonly hook: Hook
  readonly generation: Generation
  readonly writer: DeliveryWriter
}

export type Receiver = {
  /** The only function that sees a whole request. It always returns an answer and never throws. */
  receive(incoming: Incoming): Promise<StreamedAnswer>
  /** Answers all requests that wait for a run. From now on, none waits. */
  stopWaiting(): void
  /** Runs a refused request if it may enter now. `isDry`: stores nothing. `repeated`: it repeats a delivery. Throws if it is still refused. */
  receiveRefused(refused: RefusedRequest, options: { readonly isDry: boolean }): Promise<'ran' | 'repeated'>
}

export function createReceiver(parts: ReceiverParts): Receiver {
  const { store, clock, newId, development, keepByDefault } = parts
  const once = createDeduplicator(store, development)
  const onceAfterRefusal = createDeduplicator(store, false)
  const queues = createQueues(store)
  const addWait = createHeldSessions(parts)
  const { admitRequest, readmitRequest } = createEntry(parts)
  const runs = createRuns(parts)
  const answerRefusal = createRefuser(parts)

  async function receive(incoming: Incoming): Promise<StreamedAnswer> {
    const generation = parts.generation()
    takeUrlSecret(incoming.req, generation)
    const release = parts.acquire(generation)
    let requested: ReturnType<typeof readWait>
    let answer: Answer
    try {
      const entry = await admitRequest(incoming, generation)
      if (entry.kind === 'delivery') answer = await receiveDelivery(entry, generation)
      else answer = entry.kind === 'run' ? await runs.answer(entry) : entry.answer
      const mayWait = entry.kind === 'run' || (entry.kind === 'delivery' && entry.head.headers['prefer'] !== undefined)
      if (mayWait) requested = readWait(entry)
      if (parts.refusals.keepsRequests) parts.refusals.forget(incoming.requestId)
    } catch (error) {
      return answerRefusal(toProblem(error), incoming, generation)
    } finally {
      release()
    }
    // a request that waits keeps no generation in use
    return requested === undefined ? answer : runs.answerLater(requested, answer, incoming.res)
  }

  async function receiveRefused(refused: RefusedRequest, { isDry }: { readonly isDry: boolean }) {
    const { request, hook: path, receivedAt } = refused
    const generation = parts.generation()
    const release = parts.acquire(generation)
    try {
      const entry = await readmitRequest({ ...request, path }, receivedAt, generation)
      if (entry.kind !== 'delivery') return 'ran'
      if (isDry) return await previewRequest(entry, generation, receivedAt)
      const { headers } = await receiveDelivery(entry, generation, refused)
      return headers?.['idempotent-replay'] === 'true' ? 'repeated' : 'ran'
    } finally {
      release()
    }
  }

  return { receive, receiveRefused, stopWaiting: runs.stopWaiting }

  /** Decides on a request and stores nothing. Throws if it would be refused. */
  async function previewRequest(entry: AdmittedRequest, generation: Generation, receivedAt: number) {
    const { hook } = entry
    const { head, body } = convertRequest(entry, hook)
    const delivery = buildDelivery(head, body, { hook, id: newId(), receivedAt })
    const dedupe = readDedupe(delivery)
    if (dedupe !== undefined && (await store.findAnswer(dedupe.key)) !== undefined) return 'repeated'
    const decision = await decide(delivery, { hook, config: generation.config, newId })
    if (decision.kind !== 'accept') checkBody(delivery)
    if (isRefused(decision, generation)) throw decision.problem.withTrace(decision.trace)
    return 'ran'
  }

  /** `refused`: the request was refused before. If it has no dedupe key, its request id becomes one, so that it runs only once. */
  async function receiveDelivery(
    request: AdmittedRequest,
    generation: Generation,
    refused?: RefusedRequest,
  ): Promise<Answer> {
    const { hook, client } = request
    const receivedAt = refused?.receivedAt ?? clock()
    const label = toHookLabel(hook, request.head.path)
    parts.quarantine.noteAdmitted(label, client)
    try {
      const { head, body } = convertRequest(request, hook)
      const delivery = buildDelivery(head, body, { hook, id: newId(), receivedAt })
      const dedupe = readDedupe(delivery) ?? (refused && toRefusedDedupe(delivery, refused.requestId))
      const isLate = refused !== undefined
      const writer = createNewWriter(parts, delivery, { hook, label, client, dedupe: dedupe?.key, isLate })
      const answerFirst = () => decideInSpan({ delivery, hook, generation, writer })
      if (dedupe === undefined) return await answerFirst()
      let storedId = delivery.id
      const answer = await (isLate ? onceAfterRefusal : once)(dedupe, {
        onKnown: () => checkBody(delivery),
        onRepeat: (known) => {
          storedId = known.deliveryId
          if (!isLate) parts.senders.noteAccepted(delivery, { hook, label, client })
          parts.repeats.note(toRepeatedDelivery(delivery, hook, known))
        },
        runFirst: answerFirst,
        // a parked delivery that its sender repeats runs under its old id, so that it stays one delivery
        rerunParked: (id, firstAnswer) => {
          storedId = id
          const again = { ...delivery, id }
          return decideInSpan({
            delivery: again,
            hook,
            generation,
            writer: createParkedWriter(parts, again, { hook, firstAnswer }),
          })
        },
      })
      if (isLate) parts.refusals.noteRan(refused.requestId, storedId)
      return answer
    } catch (error) {
      const problem = toProblem(error)
      throw problem.trace.length > 0 ? problem : problem.withTrace(request.trace)
    }
  }

  function decideInSpan(handling: Handling): Promise<Answer> {
    return isTraced() ? runInRequestSpan(handling, () => decideAndStore(handling)) : decideAndStore(handling)
  }

  function decideAndStore(handling: Handling): Promise<Answer> {
    const deciding = startDecision(handling)
    return deciding instanceof Promise ? storeInTime(deciding, handling) : storeDecision(deciding, handling)
  }

  function startDecision({ delivery, hook, generation }: Handling): Decision | Promise<Decision> {
    const { read: readState } = parts.rerunner.state
    return decide(delivery, { hook, config: generation.config, newId, serves: true, readState })
  }

  /** Stores a decision of code, which may take longer than the sender waits. */
  async function storeInTime(deciding: Promise<Decision>, handling: Handling): Promise<Answer> {
    const { generation } = handling
    const { onTransformError, answerWithinMs } = generation.config.hooks
    const decision = await (onTransformError === 'reject' ? deciding : within(answerWithinMs, deciding))
    return decision === undefined ? storePending(deciding, handling) : storeDecision(decision, handling)
  }

  /** Stores a delivery whose transform still runs when the time for the answer is over. */
  async function storePending(deciding: Promise<Decision>, handling: Handling): Promise<Answer> {
    const { delivery, hook, generation, writer } = handling
    checkBodyLate(delivery, deciding)
    // before its row is stored, because other gateways see the row at once
    await parts.rerunner.claim([delivery.id])
    const pending = toPendingSettlement(delivery, generation.id, findMapping(hook, delivery).mapping?.id)
    const { answer, isOurs } = await writer.storePending(pending).catch(async (error: unknown) => {
      await parts.rerunner.release([delivery.id])
      throw error
    })
    // the delivery is on disk, and is settled when the transform ends
    if (isOurs) void parts.rerunner.settleLate(deciding, delivery, generation, writer.state)
    else await parts.rerunner.release([delivery.id])
    return answer
  }

  function storeDecision(decision: Decision, handling: Handling): Promise<Answer> {
    // the parts of a long list are stored after the answer
    if ('splits' in decision) return storePending(Promise.resolve(decision), handling)
    const changes = hasCode(decision) ? listStateChanges(decision) : []
    if (changes.length === 0) return storeFresh(decision, handling)
    return parts.rerunner.state.runInTurn(changes, () => storeFresh(decision, handling))
  }

  /**
   * Stores a decision. If other deliveries have changed the state that its code read, runs the code again until they have not. If this takes longer
   * than the sender waits, it continues after the answer.
   */
  async function storeFresh(decision: Decision, handling: Handling): Promise<Answer> {
    const { delivery, generation } = handling
    const { onTransformError, answerWithinMs } = generation.config.hooks
    for (let current = decision; ;) {
      const answer = await queues.storeIfNotFull(current, () => storeIfFresh(current, handling))
      if (answer !== undefined) {
        if (hasCode(current) || current.kind === 'park') parts.onDecided?.(delivery, current, generation)
        return answer
      }
      const deciding = Promise.resolve(startDecision(handling))
      const leftMs = Math.max(0, delivery.receivedAt + answerWithinMs - clock())
      const next = await (onTransformError === 'reject' ? deciding : within(leftMs, deciding))
      if (next === undefined) return storePending(deciding, handling)
      current = next
    }
  }

  /** Stores a decision. Returns undefined, and stores nothing, if other deliveries have changed the state that the decision is based on. */
  async function storeIfFresh(decision: Decision, handling: Handling): Promise<Answer | undefined> {
    const { delivery, generation, writer } = handling
    // a body that only code reads was parsed for certain if the code returned an action; after another decision it may still be unparsed
    if (decision.kind !== 'accept') checkBody(delivery)
    if (isRefused(decision, generation)) {
      parts.onDecided?.(delivery, decision, generation)
      throw decision.problem.withTrace(decision.trace)
    }
    if (writer.ifUnmatched !== undefined && isUnmatched(decision)) return writer.ifUnmatched
    const settlement = toSettlement(decision, delivery, { generation, newId, now: clock(), keepByDefault })
    // every object that waits for the disk is copied by each garbage collection
    forgetPayload(delivery.body)
    const answer = toFirstAnswer(decision, delivery.id, await addWait(settlement), development)
    if (!hasCode(decision) || !movesCursors(decision)) return (await writer.settle(settlement, answer)).answer
    const given = { store, clock, state: parts.rerunner.state }
    const settle = (moves: Parameters<typeof writer.settleWith>[0]) => writer.settleWith(moves, settlement, answer)
    const stored = await writeDecision(given, { decision, deliveryId: delivery.id }, settle)
    if (stored === 'stale') return undefined
    return 'written' in stored ? stored.written.answer : await storeIfFresh(stored.instead, handling)
  }
}

/** Whether the mapping of a decision has code that loaded. Only code changes state, takes a dedupe key and has a shadow. */
const hasCode = ({ transformHash }: Decision): boolean => transformHash !== undefined
