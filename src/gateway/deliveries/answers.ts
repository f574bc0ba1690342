// The answers to the sender of a delivery that is on disk.
import type { Answer } from '../../core/mapping/answer.ts'
import type { PlannedAction } from '../../core/model/action.ts'
import type { Problem } from '../../core/model/problem.ts'
import type { DeliveryAnswer, NewJob, Settlement } from '../../store/records.ts'
import type { SenderResponse } from '../../core/model/response.ts'
import type { StoredDecision } from '../../core/mapping/decision.ts'

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
