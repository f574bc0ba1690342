// The pipe, from request to answer: admit, read, recognise, decide, store, answer. No success is answered before the delivery is stored.
import { within } from '../base/time.ts'
import { inSpan } from '../base/trace.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Log, Meter } from '../model/log.ts'
import type { Retain } from '../model/mapping.ts'
import { forgetPayload } from '../model/parse-body.ts'
import { type Problem, toProblem } from '../model/problem.ts'
import { type Decision, decide } from '../pipeline/pipeline.ts'
import type { Generation } from '../pipeline/generation.ts'
import { type Hook, toHookLabel } from '../pipeline/hook.ts'
import type { DedupeKey, Settlement } from '../store/records.ts'
import type { Clock, Store } from '../store/store.ts'
import { type Admission, toHookName, toUrlPath } from './admission.ts'
import {
  type Answer,
  skippedAnswer,
  toAcceptedAnswer,
  toRefusalAnswer,
  toReplay,
  toWaitingAnswer,
  withProblem,
  type LastingDecision,
  logDelivery,
  type OnParked,
  toPending,
  toRow,
  toSettlement,
} from './settlement.ts'
import { checkBody, toDelivery, withoutMultipart } from './delivery.ts'
import { createEntry, type Entered, type Incoming } from './entry.ts'
import type { HandedSecrets } from './handed.ts'
import { createOnce, toDedupe } from './duplicates.ts'
import type { RefusalLog, Refusals } from './refusals.ts'
import type { Rerunner } from './rerun.ts'

export type ReceiverParts = {
  readonly generation: () => Generation
  /** Keeps a generation from retiring while a request uses it. Call the returned function at the end. */
  readonly hold: (generation: Generation) => () => void
  readonly store: Store
  readonly admission: Admission
  readonly handed: HandedSecrets
  readonly refusals: Refusals
  readonly refusalLog: RefusalLog
  readonly rerunner: Rerunner
  readonly clock: Clock
  readonly newId: () => string
  /** Called when jobs are stored. */
  readonly accepted: (jobs: Settlement['jobs']) => void
  readonly parked?: OnParked
  /** `hookloom dev`: answers contain the operator's problems, and a redelivery of a sender runs again. */
  readonly development: boolean
  /** See `toSettlement`. */
  readonly keepByDefault: Retain
  readonly meter: Meter
  readonly log: Log
}

type EnteredDelivery = Extract<Entered, { kind: 'delivery' }>
type Handling = { readonly hook: Hook; readonly generation: Generation }

/** How a delivery becomes durable. A new delivery gets a row; a parked one already has one. */
type Row = {
  /** The state before it is settled. */
  readonly state: 'pending' | 'parked'
  /** For a transform that still runs. `isOurs`: no other request settles the delivery. */
  wait(settlement: Settlement): Promise<{ answer: Answer; isOurs: boolean }>
  settle(settlement: Settlement, answer: Answer): Promise<Answer>
}

export type Receive = (incoming: Incoming) => Promise<Answer>

/** The only function that sees a whole request. It always returns an answer and never throws. */
export function createReceiver(parts: ReceiverParts): Receive {
  const { store, clock, newId, development } = parts
  const once = createOnce(store, development)
  const enter = createEntry(parts)

  return async function receive(incoming) {
    const generation = parts.generation()
    const letGo = parts.hold(generation)
    try {
      const answer = await pass(incoming, generation)
      parts.refusals.forget(incoming.requestId)
      return answer
    } catch (error) {
      return refuse(toProblem(error), incoming, generation)
    } finally {
      letGo()
    }
  }

  async function pass(incoming: Incoming, generation: Generation): Promise<Answer> {
    const entered = await enter(incoming, generation)
    if (entered.kind === 'handshake') return entered.answer
    try {
      return await take(entered, generation)
    } catch (error) {
      const problem = toProblem(error)
      throw problem.trace.length > 0 ? problem : problem.because(entered.trace)
    }
  }

  async function take({ hook, ...request }: EnteredDelivery, generation: Generation): Promise<Answer> {
    const receivedAt = clock()
    const { head, body } = await withoutMultipart(hook, request)
    const delivery = toDelivery(head, body, { hook, id: newId(), receivedAt })
    const dedupe = toDedupe(delivery)
    const context = { hook, generation }
    if (dedupe === undefined) return handle(delivery, context, toNewRow(delivery, { hook, dedupe: undefined }))
    return once(dedupe, {
      recognised: () => checkBody(delivery),
      first: () => handle(delivery, context, toNewRow(delivery, { hook, dedupe: dedupe.key })),
      // a sender repeats a parked delivery: it runs under its old id, so that it stays one delivery
      parkedAgain: (id, replay) => {
        const again = { ...delivery, id }
        return handle(again, context, toParkedRow(again, replay))
      },
    })
  }

  function handle(delivery: Delivery, handling: Handling, row: Row): Promise<Answer> {
    const { id, path, source, event, headers } = delivery
    const attributes = { 'hookloom.hook': path, 'hookloom.source': source, 'hookloom.event': event }
    return inSpan('hook', { traceId: id, attributes, traceparent: headers['traceparent'] }, async (span) => {
      const answer = await decideAndStore(delivery, handling, row)
      span.setAttribute('http.response.status_code', answer.status)
      return answer
    })
  }

  async function decideAndStore(delivery: Delivery, { hook, generation }: Handling, row: Row): Promise<Answer> {
    const { config } = generation
    const deciding = decide(delivery, { hook, config, newId })
    const patienceMs =
      hook.runsCode && config.hooks.onTransformError === 'park' ? config.hooks.answerWithinMs : undefined
    // undefined: the transform still runs and the time for the answer is over
    const decision = patienceMs === undefined ? await deciding : await within(patienceMs, deciding)
    if (decision === undefined) {
      checkLate(delivery, deciding)
      // before the row is there for other gateways
      await parts.rerunner.claim([delivery.id])
      const { answer, isOurs } = await row.wait(toPending(delivery, generation.id)).catch(async (error: unknown) => {
        await parts.rerunner.release([delivery.id])
        throw error
      })
      // the delivery is on disk, and is settled when the transform ends
      if (isOurs) void parts.rerunner.settleLate(deciding, delivery, generation, row.state)
      else await parts.rerunner.release([delivery.id])
      return answer
    }
    // code that returned an action has parsed the payload; after any other decision the body may be unparsed
    if (decision.kind !== 'accept') checkBody(delivery)
    const isRejected = decision.kind === 'park' && config.hooks.onTransformError === 'reject'
    if (decision.kind === 'refuse' || isRejected) throw decision.problem.because(decision.trace)
    const settlement = toSettlement(decision, delivery, {
      generation,
      newId,
      now: clock(),
      keepByDefault: parts.keepByDefault,
    })
    // what waits for the disk is copied by each garbage collection
    forgetPayload(delivery.body)
    return row.settle(settlement, toAnswer(decision, delivery.id, settlement))
  }

  /** For a delivery that is not stored yet. */
  function toNewRow(delivery: Delivery, { hook, dedupe }: { hook: Hook; dedupe: DedupeKey | undefined }): Row {
    async function append(settlement: Settlement, answer: Answer): Promise<{ answer: Answer; isOurs: boolean }> {
      const appended = await store.append(toRow(delivery, { settlement, answer, dedupe }))
      if (appended.kind === 'duplicate') return { answer: toReplay(appended.first), isOurs: false }
      const now = clock()
      const label = toHookLabel(hook, delivery.path)
      parts.meter('deliveries', { outcome: settlement.state, hook: label }, (now - delivery.receivedAt) / 1_000)
      logDelivery(parts, delivery, settlement, { now })
      parts.accepted(settlement.jobs)
      return { answer, isOurs: true }
    }
    return {
      state: 'pending',
      wait: (settlement) => append(settlement, toWaitingAnswer(delivery.id, 'pending')),
      settle: async (settlement, answer) => (await append(settlement, answer)).answer,
    }
  }

  /** For a delivery that was parked before. `replay` is the answer that it got then. */
  function toParkedRow(delivery: Delivery, replay: Answer): Row {
    return {
      state: 'parked',
      wait: async () => ({ answer: replay, isOurs: true }),
      async settle(settlement, answer) {
        if (!(await store.settle(delivery.id, settlement))) return replay
        parts.accepted(settlement.jobs)
        logDelivery(parts, delivery, settlement, { now: clock(), before: 'parked' })
        return answer
      },
    }
  }

  function toAnswer(decision: LastingDecision, deliveryId: string, settlement: Settlement): Answer {
    if (decision.kind === 'skip') return skippedAnswer
    if (decision.kind === 'accept') {
      return toAcceptedAnswer(deliveryId, decision.actions, settlement.jobs)
    }
    const parked = toWaitingAnswer(deliveryId, 'parked')
    return development ? withProblem(parked, decision.problem) : parked
  }

  function refuse(problem: Problem, { req, requestId }: Incoming, generation: Generation): Answer {
    const { config } = generation
    const { code, status, message: error, trace } = problem
    const url = req.url ?? '/'
    const hook = toHookName(url, config.hooks.path)
    parts.meter('refusals', { code, hook: hook === undefined ? '' : toHookLabel(generation.hook(hook), hook) })
    parts.refusals.add({
      requestId,
      receivedAt: clock(),
      hook,
      path: toUrlPath(url),
      ...parts.admission.callerOf(req, config),
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

/** Checks the body of a delivery whose transform still runs. Throws `body-invalid`; then the decision is not used. */
function checkLate(delivery: Delivery, deciding: Promise<Decision>): void {
  try {
    checkBody(delivery)
  } catch (error) {
    void deciding.catch(() => undefined)
    throw error
  }
}
