// The outcome of a decision in a form that can be compared: without the ids of one run.
import type { JsonObject, JsonValue, SentValue } from '../../base/json.ts'
import { isJsonObject, isSameJson } from '../../base/json.ts'
import type { PlannedAction } from '../../core/model/action.ts'
import type { PlannedFlow } from '../../core/model/flow.ts'
import { JobKeys } from '../../core/model/job-keys.ts'
import type { Problem, ProblemRecord } from '../../core/model/problem.ts'
import type { SenderResponse } from '../../core/model/response.ts'
import type { Decision } from '../../core/mapping/decision.ts'

/** `why`: the reason for a skip. It is shown but not compared. */
export type Outcome = {
  readonly decision: 'accept' | 'skip' | 'park' | 'refuse'
  readonly mappingId: string | undefined
  readonly actions: readonly JsonObject[]
  /** Whether the actions have their flows. A stored job does not keep its flow. */
  readonly hasFlows: boolean
  /** The answer that replaces the receipt. `unknown`: the sender was answered before the delivery was decided. */
  readonly response: SenderResponse | 'unknown' | undefined
  readonly problem: Pick<ProblemRecord, 'code' | 'detail'> | undefined
  readonly why: string | undefined
}

/** `rejects`: whether `hooks.onTransformError` is `reject`, so that a delivery that would be parked is refused. */
export function toOutcome(decision: Decision, rejects: boolean): Outcome {
  const { mappingId } = decision
  const nothing = { mappingId, actions: [], hasFlows: true, response: undefined, problem: undefined, why: undefined }
  switch (decision.kind) {
    case 'accept':
      return {
        ...nothing,
        decision: 'accept',
        actions: decision.actions.map(toComparedAction),
        response: decision.response,
      }
    case 'skip':
      return { ...nothing, decision: 'skip', why: decision.why }
    case 'park':
      return { ...nothing, decision: rejects ? 'refuse' : 'park', problem: toComparedProblem(decision.problem) }
    case 'refuse':
      return toRefusedOutcome(decision.problem, mappingId)
  }
}

export function toRefusedOutcome(problem: Problem, mappingId?: string): Outcome {
  return {
    decision: 'refuse',
    mappingId,
    actions: [],
    hasFlows: true,
    response: undefined,
    problem: toComparedProblem(problem),
    why: undefined,
  }
}

function toComparedProblem({ code, message }: Problem): Outcome['problem'] {
  return { code, detail: message }
}

/** A key of a session or a flow that was generated for one run. */
const uniqueKey = /^hook:[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/
const newKey = 'hook:<new>'

const jobKeys = JobKeys.keyof().options

/** The action with its final agent and session, and the keys of the mapping that go into the job. Undefined fields are left out. */
export function toComparedAction(planned: PlannedAction): JsonObject {
  if (planned.kind === 'wake') return omitUndefined({ ...planned.action, agentId: planned.agentId })
  if (planned.kind === 'deliver') return omitUndefined({ ...planned.action, ...buildComparedFlow(planned.flow) })
  const { action, agentId, sessionKey, flow } = planned
  const isNew = action.sessionKey === undefined && uniqueKey.test(sessionKey)
  return omitUndefined({
    ...action,
    agentId,
    sessionKey: isNew ? newKey : sessionKey,
    ...Object.fromEntries(jobKeys.map((key) => [key, planned[key]])),
    ...buildComparedFlow(flow),
  })
}

function buildComparedFlow(flow: PlannedFlow | undefined): JsonObject {
  if (flow === undefined) return {}
  const isNew = uniqueKey.test(flow.key)
  return { flow: { key: isNew ? newKey : flow.key, onNew: flow.settings.onNew } }
}

function omitUndefined(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const defined: JsonObject = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) defined[name] = value
  return defined
}

/** `path` is, for example, `actions[0].message`, or `actions[1]` if only one side has the action. A missing value is undefined. */
export type Change = {
  readonly path: string
  readonly before: SentValue | undefined
  readonly after: SentValue | undefined
}

/** Lists the differences in the decision, the actions, the answer and the problem. If the decisions differ, only this difference is listed. */
export function listChanges(before: Outcome, after: Outcome): Change[] {
  if (before.decision !== after.decision)
    return [{ path: 'decision', before: describeOutcome(before), after: describeOutcome(after) }]
  const count = Math.max(before.actions.length, after.actions.length)
  const actions = Array.from({ length: count }, (_, index) => {
    const [old, now] = [before.actions[index], after.actions[index]]
    return old?.['kind'] === now?.['kind']
      ? listFieldChanges(`actions[${index}].`, old, now)
      : [buildWholeChange(index, old, now)]
  })
  const problems = [before.problem, after.problem].map(
    (problem) => problem && { ...problem, detail: removePosition(problem) },
  )
  const isKnown = before.response !== 'unknown' && after.response !== 'unknown'
  const knowsFlows = before.hasFlows && after.hasFlows
  return [
    ...actions.flat().filter(({ path }) => knowsFlows || !path.endsWith('].flow')),
    ...(isKnown ? listFieldChanges('response.', before.response, after.response) : []),
    ...listFieldChanges('problem.', problems[0], problems[1]),
  ]
}

function buildWholeChange(index: number, before: JsonValue | undefined, after: JsonValue | undefined): Change {
  return { path: `actions[${index}]`, before, after }
}

function listFieldChanges(prefix: string, before: unknown, after: unknown): Change[] {
  const [old, now] = [before, after].map((value) => (isJsonObject(value) ? value : {}))
  if (old === undefined || now === undefined) return []
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])]
  return names
    .filter((name) => !isSameJson(old[name], now[name]))
    .map((name) => ({ path: `${prefix}${name}`, before: old[name], after: now[name] }))
}

/** Removes line and column from a place, because an edit above it changes them. */
function removePosition({ detail }: NonNullable<Outcome['problem']>): string {
  return detail.replace(/:\d+(:\d+)?(?=[\s.,:)]|$)/g, '')
}

/** Describes an outcome in one line. */
export function describeOutcome({ decision, actions, problem, why }: Outcome): string {
  if (decision === 'skip') return why === undefined ? 'skip' : `skip: ${why}`
  if (problem !== undefined) return `${decision} ${problem.code}: ${problem.detail}`
  const [only, ...others] = actions
  if (decision !== 'accept' || only === undefined) return decision
  if (others.length > 0) return `accept ${actions.length} actions`
  const text = only['message'] ?? only['text']
  return `accept ${String(only['kind'])}: ${String(text)}`
}
