// Records as values for the writer. The main thread makes the JSON, so that a batch is cloned as plain text.
import { toAnswerText } from '../answer-text.ts'
import type { Problem } from '../../core/model/problem.ts'
import { storeUnavailable } from '../rules.ts'
import type { SqlValue } from './driver.ts'
import {
  deliveryColumns,
  type EventValues,
  type JobValues,
  type Operation,
  type OperationOf,
  type RingValues,
  type WakeValues,
} from './operations.ts'
import type { JobReport, KeptRequest, NewDelivery, NewEvent, NewJob, NewTask, Settlement } from '../records.ts'
import { type CursorMoves, listMoves } from '../cursors.ts'
import { toOriginValue } from '../delivery-rows.ts'
import { sumEvent } from './sums.ts'

const stateAt = deliveryColumns.indexOf('state')

/** The values of `settlementColumns`. The body is copied, so that the copy can be transferred to the writer thread. */
function toSettlementValues(settlement: Settlement, { columns }: Work, at: number): SqlValue[] {
  const { state, request } = settlement
  const waits = state === 'pending' || state === 'parked'
  return [
    state,
    settlement.mappingId ?? null,
    settlement.generation,
    settlement.transformHash ?? null,
    settlement.waitsFor ?? null,
    settlement.problem ? JSON.stringify(settlement.problem) : null,
    toJsonList(settlement.trace),
    toJsonList(settlement.log),
    waits ? null : at,
    ...columns,
    ...(request === undefined ? [null, null] : toRequestValues(request)),
  ]
}

function toJsonList(list: readonly unknown[]): string {
  return list.length === 0 ? '[]' : JSON.stringify(list)
}

function toRequestValues(request: NonNullable<Settlement['request']>): SqlValue[] {
  return request === 'too large' ? ['', null] : [JSON.stringify(request.head), toOwnBytes(request)]
}

function toRingValues({ ringSize, mappingId, ringName = mappingId }: Settlement): RingValues | undefined {
  return ringSize === undefined ? undefined : { ringOf: ringName ?? '', size: ringSize }
}

function toOwnBytes({ body }: KeptRequest): Uint8Array {
  // not slice(): a small Buffer is part of a shared pool, and a clone would copy the whole pool
  return new Uint8Array(body)
}

/** The values of `deliveryColumns`. */
function toDeliveryValues(delivery: NewDelivery, work: Work, at: number): SqlValue[] {
  const { dedupe, answer } = delivery
  return [
    delivery.id,
    delivery.receivedAt,
    delivery.hook,
    delivery.source ?? null,
    delivery.event ?? null,
    dedupe && delivery.state !== 'skipped' ? dedupe.key : null,
    dedupe?.bodyHash ?? null,
    answer.status,
    toAnswerText(answer),
    toOriginValue(delivery),
    ...toSettlementValues(delivery, work, at),
  ]
}

function toJobValues({ id, planned, lane, state, steps, labels, flow, events, standsFor }: NewJob): JobValues {
  return {
    id,
    planned: JSON.stringify(planned),
    lane: flow === undefined ? (lane ?? null) : null,
    state,
    steps: JSON.stringify(steps),
    labels: labels === undefined ? null : JSON.stringify(labels),
    flow: flow && [flow.ring, flow.key, lane ?? null, flow.expiresMs ?? null, JSON.stringify(flow.settings)],
    events: events.map(toEventValues),
    standsFor: standsFor ?? null,
  }
}

type Work = {
  /** The values of plan, wake_id and wake_steps. */
  readonly columns: readonly [plan: string | null, wakeId: string | null, wakeSteps: string | null]
  readonly jobs: readonly JobValues[]
  readonly wake: WakeValues | undefined
}

/**
 * The only job of an accepted delivery has its plan in the row of the delivery, which no report writes again. If the job is a wake, it
 * needs no row.
 */
function splitWork({ state, jobs }: Settlement, id: string, at: number): Work {
  const [only, ...others] = jobs.filter(({ standsFor }) => standsFor === undefined)
  const tasks = jobs.filter(({ standsFor }) => standsFor !== undefined).map(toJobValues)
  if (only === undefined || others.length > 0 || state !== 'accepted')
    return { columns: [null, null, null], jobs: jobs.map(toJobValues), wake: undefined }
  const plan = JSON.stringify(only.planned)
  const wake = toWakeValues(only, id, at)
  if (wake === undefined)
    return { columns: [plan, null, null], jobs: [{ ...toJobValues(only), planned: '' }, ...tasks], wake }
  return { columns: [plan, only.id, JSON.stringify(only.steps)], jobs: tasks, wake }
}

/**
 * The values of a wake; undefined unless the job is a wake whose only event has its text and source. A text that SQLite would read differently from
 * JSON is stored with its event.
 */
function toWakeValues({ state, planned, events }: NewJob, deliveryId: string, at: number): WakeValues | undefined {
  const [event, ...others] = events
  if (state !== 'done' || planned.kind !== 'wake' || event === undefined || others.length > 0) return undefined
  const { text, source, agentId, sessionKey, trusted, wakes } = event
  const { action, origin } = planned
  if (text !== action.text || source !== (origin.source ?? origin.hook)) return undefined
  if (`${text}${source}`.includes('\0') || !isWellFormed(text) || !isWellFormed(source)) return undefined
  const marks = [trusted ? 1 : 0, wakes ? 1 : 0] as const
  return [agentId, sessionKey, ...marks, sumEvent([agentId, sessionKey, text, source, ...marks], deliveryId, at)]
}

const loneSurrogate = /\p{Surrogate}/u

function isWellFormed(text: string): boolean {
  return !loneSurrogate.test(text)
}

function toEventValues({ agentId, sessionKey, text, source, trusted, wakes }: NewEvent): EventValues {
  return [agentId, sessionKey, text, source, trusted ? 1 : 0, wakes ? 1 : 0]
}

export function toAppend(delivery: NewDelivery, at: number): OperationOf<'append'> {
  const { dedupe, state } = delivery
  const work = splitWork(delivery, delivery.id, at)
  return {
    kind: 'append',
    at,
    id: delivery.id,
    values: toDeliveryValues(delivery, work, at),
    key: dedupe && { ...dedupe, isStored: state !== 'skipped' },
    ring: toRingValues(delivery),
    jobs: work.jobs,
    wake: work.wake,
    cancel: delivery.cancel,
  }
}

export function toSettle(
  id: string,
  settlement: Settlement,
  { at, moves = [] }: { at: number; moves?: CursorMoves | undefined },
): OperationOf<'settle'> {
  const work = splitWork(settlement, id, at)
  const values = toSettlementValues(settlement, work, at)
  return {
    kind: 'settle',
    at,
    id,
    values,
    ring: toRingValues(settlement),
    jobs: work.jobs,
    wake: work.wake,
    cancel: settlement.cancel,
    moves: listMoves(moves),
  }
}

export function toAppendAll(
  deliveries: readonly NewDelivery[],
  moves: CursorMoves,
  at: number,
): OperationOf<'appendAll'> {
  return {
    kind: 'appendAll',
    at,
    appends: deliveries.map((delivery) => toAppend(delivery, at)),
    moves: listMoves(moves),
  }
}

export function toAddTask(task: NewTask, at: number): OperationOf<'addTask'> {
  const { id, planned, lane, standsFor, labels, unlessWithinMs = 0 } = task
  const texts = { planned: JSON.stringify(planned), labels: labels === undefined ? null : JSON.stringify(labels) }
  return { kind: 'addTask', at, id, ...texts, lane, standsFor, unlessWithinMs }
}

export function toReport(job: { id: string; fence: number }, report: JobReport, at: number): OperationOf<'report'> {
  const {
    steps = [],
    events = [],
    messages = [],
    runnerState,
    recipient,
    posts,
    outcome = { kind: 'goes on' },
  } = report
  return {
    kind: 'report',
    at,
    id: job.id,
    fence: job.fence,
    steps: steps.map((step) => ({ name: step.name, json: JSON.stringify(step) })),
    events: events.map(toEventValues),
    messages,
    keeps: report.keeps,
    consumed: (report.consumed ?? []).map(({ id, at }) => [id, at]),
    leavesLane: report.leavesLane === true,
    settled: report.settled ?? [],
    leaseMs: report.leaseMs,
    runnerState: runnerState === undefined || runnerState === null ? runnerState : JSON.stringify(runnerState),
    recipient: recipient && { channel: recipient.channel, to: recipient.to ?? null },
    posts: posts && JSON.stringify(posts),
    outcome: toCountedOutcome(outcome),
  }
}

function toCountedOutcome(
  outcome: NonNullable<JobReport['outcome']> | { readonly kind: 'goes on' },
): OperationOf<'report'>['outcome'] {
  if (outcome.kind === 'retry') return { counted: true, isDelay: false, ...outcome }
  return outcome.kind === 'dead' ? { counted: true, ...outcome } : outcome
}

/** The bytes that an operation takes while it waits for the writer: head and body of its request, and its jobs. */
export function measureOperationBytes(operation: Operation): number {
  if (operation.kind === 'appendAll')
    return operation.appends.reduce((total, each) => total + measureOperationBytes(each), 0)
  if (operation.kind !== 'append' && operation.kind !== 'settle') return 0
  return measureRequestBytes(operation.values) + measureJobBytes(operation.jobs) + measurePlanBytes(operation.values)
}

/** The bytes of a new delivery that will wait in the store: its request while it is pending or parked, and its queued jobs. */
export function measureWaitingBytes(operation: Operation): number {
  if (operation.kind === 'appendAll')
    return operation.appends.reduce((total, each) => total + measureWaitingBytes(each), 0)
  if (operation.kind !== 'append') return 0
  const state = operation.values[stateAt]
  const request = state === 'pending' || state === 'parked' ? measureRequestBytes(operation.values) : 0
  const queued = operation.jobs.filter((job) => job.state === 'queued')
  return request + measureJobBytes(queued) + (queued.length > 0 ? measurePlanBytes(operation.values) : 0)
}

/** A plan, the two columns of a wake, head and body are the last values of a settlement. */
function measurePlanBytes(values: readonly SqlValue[]): number {
  const plan = values.at(-5)
  return typeof plan === 'string' ? plan.length : 0
}

/** Head and body are the last values of an append and of a settlement. */
function measureRequestBytes(values: readonly SqlValue[]): number {
  const [head, body] = values.slice(-2)
  return (typeof head === 'string' ? head.length : 0) + (body instanceof Uint8Array ? body.byteLength : 0)
}

function measureJobBytes(jobs: readonly JobValues[]): number {
  return jobs.reduce((total, { planned }) => total + planned.length, 0)
}

/** The buffers of the bodies, which are transferred to the writer thread without a copy. */
export function toTransfers(operation: Operation): ArrayBuffer[] {
  if (operation.kind === 'appendAll') return operation.appends.flatMap(toTransfers)
  if (operation.kind !== 'append' && operation.kind !== 'settle') return []
  const body = operation.values.at(-1)
  return body instanceof Uint8Array && body.buffer instanceof ArrayBuffer ? [body.buffer] : []
}

/** The problem of an operation that failed alone: the rest of its batch was committed. */
export function toUnwritableProblem(cause: string | undefined): Problem {
  return storeUnavailable('The store cannot write this.', 5, cause)
}
