// A decision as the rows that make it durable.
import type { PlannedAction } from '../model/action.ts'
import { Problem, toProblemRecord } from '../model/problem.ts'
import type { Answered, NewJob, DedupeKey, NewDelivery, Settlement } from '../store/store.ts'
import { planJobs, whyDeferred } from '../effects/plan.ts'
import { type Delivery, toDeliveryHead } from '../model/delivery.ts'
import type { Log } from '../model/log.ts'
import type { Decision } from '../pipeline/pipeline.ts'
import type { Generation } from '../pipeline/generation.ts'

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
  log.warn({ deliveryId: id, hook: path }, `parked: ${problem.detail} "hookloom show ${id}" shows the details.`)
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

export type Answer = {
  readonly status: number
  /** JSON text; undefined where the status has no body. */
  readonly body: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** The answer of accepted actions; `jobs` stand in the order of the actions. One action answers as its endpoint would. */
export function toAcceptedAnswer(
  deliveryId: string,
  actions: readonly PlannedAction[],
  jobs: readonly Pick<NewJob, 'id' | 'steps'>[],
): Answer {
  const [only, ...others] = actions
  if (only !== undefined && others.length === 0) {
    return only.kind === 'wake'
      ? ok({ deliveryId, mode: only.action.mode, ...(isDeferred(jobs[0]) ? { heartbeat: 'deferred' } : {}) })
      : ok({ deliveryId, runId: jobs[0]?.id, sessionKey: only.sessionKey })
  }
  const runIds = jobs.flatMap(({ id }, index) => (actions[index]?.kind === 'agent' ? [id] : []))
  return ok({ deliveryId, runIds, wakes: actions.length - runIds.length })
}

/** The step `wake` says why it has to wait, where it has to. */
function isDeferred(job: Pick<NewJob, 'steps'> | undefined): boolean {
  return job?.steps.some(({ name, detail }) => name === 'wake' && detail !== undefined) === true
}

/** 200: the delivery is on disk and waits, parked for the operator or pending on its transform. */
export function toWaitingAnswer(deliveryId: string, status: 'parked' | 'pending'): Answer {
  return ok({ deliveryId, status })
}

export const skippedAnswer: Answer = { status: 204, body: undefined }

/** The first answer again. */
export function toReplay(first: Answered): Answer {
  return { status: first.status, body: first.body, headers: { 'idempotent-replay': 'true' } }
}

/** Whoever gets one of these has proved nothing, and could keep a connection for ever by asking again and again. */
const strangers: ReadonlySet<number> = new Set([401, 403, 429])

/** `development`: the frame of an operator's problem is shown too. */
export function toRefusalAnswer(problem: Problem, development = false): Answer {
  const { status } = problem
  const frame = development && problem.frame !== undefined ? { frame: problem.frame } : {}
  return {
    status,
    body: JSON.stringify({ ok: false, error: problem.message, code: problem.code, ...frame }),
    headers: {
      ...(strangers.has(status) ? { connection: 'close' } : {}),
      ...(problem.code === 'method-not-allowed' ? { allow: 'POST' } : {}),
      ...(problem.retryAfterSeconds === undefined ? {} : { 'retry-after': String(problem.retryAfterSeconds) }),
    },
  }
}

/** The same answer with the problem that parked it, for a developer's eyes. */
export function withProblem(answer: Answer, problem: Problem): Answer {
  const body: unknown = JSON.parse(answer.body ?? '{}')
  const { code, message: detail, frame } = problem
  return { ...answer, body: JSON.stringify(Object.assign({}, body, { problem: { code, detail, frame } })) }
}

function ok(fields: Record<string, unknown>): Answer {
  return { status: 200, body: JSON.stringify({ ok: true, ...fields }) }
}
