// What goes back to the sender: made before the delivery is stored, sent after, and sent again to a duplicate.
import type { PlannedAction } from '../model/action.ts'
import { Problem } from '../model/problem.ts'
import type { Answered, NewJob } from '../store/store.ts'

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
