// Turns a decision into the rows that make it durable, and into the answer to the sender.
import type { Answer } from '../pipeline/answer.ts'
import type { PlannedAction } from '../model/action.ts'
import { Problem, toProblemRecord } from '../model/problem.ts'
import type { DeliveryAnswer, KeptRequest, NewJob, DedupeKey, NewDelivery, Settlement } from '../store/records.ts'
import { planJobs, toWakeStep } from '../jobs/plan.ts'
import { type Delivery, toDeliveryHead } from '../model/delivery.ts'
import { hopsHeader, readHops } from '../model/hops.ts'
import type { Log } from '../model/log.ts'
import type { Retain } from '../model/config/mapping.ts'
import type { SenderResponse } from '../model/response.ts'
import type { Decision, StoredDecision } from '../pipeline/decision.ts'
import type { Generation } from '../pipeline/generation.ts'
import type { Hook } from '../pipeline/hook.ts'
import { findSender } from '../pipeline/sources.ts'
import { formatCommand } from '../base/shell.ts'

/** `keepByDefault` applies if neither the mapping nor `hooks.retain` says how many requests are kept. */
export function toSettlement(
  decision: StoredDecision,
  delivery: Delivery,
  context: { generation: Generation; newId: () => string; now: number; keepByDefault: Retain },
): Settlement {
  const { generation, newId, now, keepByDefault } = context
  const retain = decision.retain ?? generation.config.hooks.retain ?? keepByDefault
  const { mappingId, transformHash, trace, log } = decision
  const problem = decision.kind === 'park' ? toProblemRecord(decision.problem) : undefined
  const waitsFor = decision.kind === 'park' ? decision.waitsFor : undefined
  const taker = mappingId === undefined ? undefined : generation.mappings.find(({ id }) => id === mappingId)
  const jobs = decision.kind === 'accept' ? toJobs(decision.actions) : []
  const { request, ringSize } = chooseKeptRequest(delivery, decision.kind === 'park' || retain)
  return {
    state: states[decision.kind],
    mappingId,
    generation: generation.id,
    transformHash,
    waitsFor,
    jobs,
    problem,
    trace,
    log,
    warning: decision.kind === 'accept' ? decision.warning : undefined,
    request,
    ringSize,
    ringName: taker?.identity.ring,
    cancel: decision.kind === 'skip' && decision.cancel ? { ...decision.cancel, reason: cancelledReason } : undefined,
  }

  function toJobs(actions: readonly PlannedAction[]): NewJob[] {
    const { config } = generation
    const wakeStep = (agentId: string) => toWakeStep(config, agentId, now)
    const planned = planJobs(actions, { newId, now, wakeStep, ring: taker?.identity.ring })
    const { sentAt = now } = delivery.admitted
    return sentAt === now ? planned : planned.map((job) => shortenExpiry(job, now - sentAt))
  }
}

/** Shortens the expiry of a turn whose request was sent a while ago: the turn expires as if the request had arrived when it was sent. */
function shortenExpiry(job: NewJob, lateMs: number): NewJob {
  const { flow } = job
  if (flow?.expiresMs === undefined) return job
  return { ...job, flow: { ...flow, expiresMs: Math.max(0, flow.expiresMs - lateMs) } }
}

const cancelledReason = 'A later request matched flow.cancelOn.'

const states = { accept: 'accepted', park: 'parked', skip: 'skipped' } as const

/** The maximum number of bytes of a head and its body. Together with the size of the largest ring, this limits the space of a mapping. */
const maxKeptBytes = 262_144

function chooseKeptRequest(delivery: Delivery, retain: Retain): Pick<Settlement, 'request' | 'ringSize'> {
  if (retain === false) return { request: undefined, ringSize: undefined }
  const request = toKeptRequest(delivery)
  if (retain === true) return { request, ringSize: undefined }
  const bytes = request.body.byteLength + Buffer.byteLength(JSON.stringify(request.head))
  return { request: bytes > maxKeptBytes ? 'too large' : request, ringSize: retain }
}

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

/** Writes the log line of a delivery, and reports a parked one. `before`: its state until now; undefined for a new one. */
export function logDelivery(
  { log, onParked }: { readonly log: Log; readonly onParked?: OnParked | undefined },
  delivery: Pick<Delivery, 'id' | 'method' | 'path' | 'headers' | 'source' | 'event' | 'receivedAt'>,
  settlement: Settlement,
  {
    now,
    before,
    hook,
  }: { now: number; before?: 'pending' | 'parked' | 'refused' | undefined; hook: Pick<Hook, 'mappings'> },
): void {
  const { id: deliveryId, method, path } = delivery
  const { source, event } = findKnownWords(delivery, hook)
  const { state, problem, mappingId, warning } = settlement
  if (state === 'parked' && problem !== undefined) {
    // a delivery that was parked before was reported when it was parked
    if (before === 'parked') return
    const text = `parked: ${problem.detail} "${formatCommand`hookloom show ${deliveryId}`}" shows the details.`
    log.error({ deliveryId, hook: path }, text)
    onParked?.({
      deliveryId,
      hook: path,
      waitsFor: settlement.waitsFor,
      hops: readHops(delivery.headers[hopsHeader] ?? ''),
    })
    return
  }
  if (warning !== undefined) log.warn({ deliveryId, hook: path, mappingId }, `${mappingId}: ${warning}`)
  const actions = settlement.jobs.filter(({ planned }) => 'action' in planned).map(({ planned }) => planned.kind)
  const outcome = actions.length > 3 ? `${actions.length} actions` : actions.join(', ') || state
  const tookMs = now - delivery.receivedAt
  const took = before === 'parked' || before === 'refused' ? `was ${before}` : `${tookMs} ms`
  log.info(
    { deliveryId, delivery: { method, hook: path, source, event, state, mappingId, actions, tookMs } },
    `${method} ${path}${event === undefined ? '' : ` ${event}`} → ${outcome}  ${took}  ${deliveryId}`,
  )
}

/**
 * The source and the event of a delivery, each only if it is the name of a known sender, the value of a header, or a word of the
 * configuration. Texts of the payload are left out.
 */
export function findKnownWords(
  { source, event, headers }: Pick<Delivery, 'source' | 'event' | 'headers'>,
  { mappings }: Pick<Hook, 'mappings'>,
): Pick<Delivery, 'source' | 'event'> {
  const isNamed = (word: string, key: 'source' | 'event') =>
    mappings.some(({ match }) => [match[key]].flat().includes(word))
  const isKnownSource = source !== undefined && (findSender(source) !== undefined || isNamed(source, 'source'))
  const isKnownEvent = event !== undefined && (Object.values(headers).includes(event) || isNamed(event, 'event'))
  return { source: isKnownSource ? source : undefined, event: isKnownEvent ? event : undefined }
}

/** The row of a new delivery, with its outcome and the answer that a duplicate gets again. */
export function toDeliveryRow(
  delivery: Delivery,
  { settlement, answer, dedupe }: { settlement: Settlement; answer: Answer; dedupe: DedupeKey | undefined },
): NewDelivery {
  const { id, receivedAt, path: hook, source, event } = delivery
  const { status, body = '', contentType } = answer
  // not `{ ...settlement, id, … }`: V8 needs 5 µs for the spread, and 0.2 µs for this order
  return { id, receivedAt, hook, source, event, dedupe, answer: { status, body, contentType }, ...settlement }
}

/**
 * The settlement of a delivery whose transform still runs. `mappingId`: the mapping that took it; undefined if no mapping has taken it yet, so
 * that the mappings may still skip it.
 */
export function toPendingSettlement(delivery: Delivery, generation: string, mappingId?: string): Settlement {
  return {
    state: 'pending',
    mappingId,
    generation,
    jobs: [],
    trace: [],
    log: [],
    request: toKeptRequest(delivery),
  }
}

function toKeptRequest(delivery: Delivery): KeptRequest {
  return { head: toDeliveryHead(delivery), body: delivery.body.bytes }
}

/** Whether the answer is a refusal, so that nothing is stored. */
export function isRefused(
  decision: Decision,
  { config }: Generation,
): decision is Extract<Decision, { kind: 'refuse' | 'park' }> {
  return decision.kind === 'refuse' || (decision.kind === 'park' && config.hooks.onTransformError === 'reject')
}

/** The answer to a delivery that is stored. `waits`: why its only run waits. `development`: the answer to a parked delivery includes the problem. */
export function toFirstAnswer(
  decision: StoredDecision,
  deliveryId: string,
  { jobs, waits }: Pick<Settlement, 'jobs'> & { readonly waits?: string | undefined },
  development: boolean,
): Answer {
  if (decision.kind === 'skip') return skippedAnswer
  if (decision.kind === 'accept') {
    const { actions, response } = decision
    if (response !== undefined) return toCustomAnswer(deliveryId, response)
    return toAcceptedAnswer(deliveryId, actions, jobs, waits)
  }
  const parked = toWaitingAnswer(deliveryId, 'parked')
  return development ? addProblem(parked, decision.problem) : parked
}

/** The answer to accepted actions; `jobs` are in the order of the actions. A single action gets the answer of its endpoint, `wake` or `agent`. */
export function toAcceptedAnswer(
  deliveryId: string,
  actions: readonly PlannedAction[],
  jobs: readonly Pick<NewJob, 'id' | 'steps'>[],
  waits?: string,
): Answer {
  const [only, ...others] = actions
  if (only !== undefined && others.length === 0) {
    const [job] = jobs
    if (only.kind !== 'wake') {
      const sessionKey = only.kind === 'agent' ? only.sessionKey : undefined
      return toOkAnswer({ ok: true, deliveryId, runId: job?.id, sessionKey, waits })
    }
    const heartbeat = isDeferred(job) ? 'deferred' : undefined
    return toOkAnswer({ ok: true, deliveryId, mode: only.action.mode, heartbeat })
  }
  const runIds = jobs.flatMap(({ id }, index) => (actions[index]?.kind === 'wake' ? [] : [id]))
  return toOkAnswer({ ok: true, deliveryId, runIds, wakes: actions.length - runIds.length })
}

/** Whether the turn waits for the active hours. If heartbeats are off there is no turn, and the step `wake` is skipped. */
function isDeferred(job: Pick<NewJob, 'steps'> | undefined): boolean {
  return (
    job?.steps.some(({ name, state, detail }) => name === 'wake' && state === 'done' && detail !== undefined) === true
  )
}

/** The answer that a mapping or a transform set. The delivery id is in its headers, not in its body. */
function toCustomAnswer(deliveryId: string, { status, contentType, body }: SenderResponse): Answer {
  return { status, body, contentType, headers: toCustomHeaders(deliveryId, contentType) }
}

/** The body repeats text of the sender: a browser that shows it must not guess another type, run scripts or load anything. */
function toCustomHeaders(deliveryId: string, contentType: string): Record<string, string> {
  return {
    'content-type': `${contentType}; charset=utf-8`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    'x-delivery-id': deliveryId,
  }
}

/** The answer for a delivery that is on disk, parked or pending. */
export function toWaitingAnswer(deliveryId: string, status: 'parked' | 'pending'): Answer {
  return toOkAnswer({ ok: true, deliveryId, status })
}

export const skippedAnswer: Answer = { status: 204, body: undefined }

/** The first answer, marked as a repetition. */
export function toRepeatedAnswer({ deliveryId, status, body, contentType }: DeliveryAnswer): Answer {
  const custom = contentType === undefined ? {} : toCustomHeaders(deliveryId, contentType)
  return { status, body, contentType, headers: { ...custom, 'idempotent-replay': 'true' } }
}

/** The same answer with the problem that parked the delivery, for developers. */
function addProblem(answer: Answer, problem: Problem): Answer {
  const body: unknown = JSON.parse(answer.body ?? '{}')
  const { code, message: detail, frame } = problem
  return { ...answer, body: JSON.stringify(Object.assign({}, body, { problem: { code, detail, frame } })) }
}

function toOkAnswer(body: { ok: true; [field: string]: unknown }): Answer {
  return { status: 200, body: JSON.stringify(body) }
}
