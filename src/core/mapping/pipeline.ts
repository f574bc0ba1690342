// Makes a decision from a delivery. It reads only its arguments; only the transform may take time.
import type { PlannedAction } from '../model/action.ts'
import { Problem, type TraceEntry } from '../model/problem.ts'
import type { Delivery } from '../model/delivery.ts'
import { isJsonObject } from '../../base/json.ts'
import type { OnceKey, Transform } from '../model/transform.ts'
import type { CompiledMapping } from './compile.ts'
import type { Decision, Reasons } from './decision.ts'
import { findMapping, type Hook } from './hook.ts'
import {
  type ActionDraft,
  mergeResult,
  renderDraft,
  requireText,
  describeEmptyTemplate,
  splitTargets,
  parseAction,
  toTemplateScope,
  toTransformCall,
} from './merge.ts'
import { countParts, type ItemsList, LongListProblem, maxActions, splitItems, toItemsProblem } from './items.ts'
import { cancelReason, readCancel } from './flow.ts'
import type { SenderResponse } from '../model/response.ts'
import { parseResponse } from './response.ts'
import { createDecisionState, type DecisionState, type StateReader } from './state.ts'

/** The maximum length of the text of all items of one delivery, in UTF-16 units. */
const maxText = 4_000_000
/** How many times the body the texts of a batch may be that is split. More than that repeats what is outside the list. */
const maxGrowth = 16

type NewId = () => string

/** The input of a decision besides the delivery. */
type DecisionInput = {
  readonly hook: Hook
  readonly newId: NewId
  /** Set if the decision is carried out. Absent: the call of a transform says that it serves no delivery. */
  readonly serves?: true
  /** Reads the memory of the transform. Absent: it is empty. */
  readonly readState?: StateReader | undefined
}

/**
 * Returns a promise only if code decides: any other request waits for nothing before it is stored. A refusal and a park are decisions
 * too. Throws `body-invalid` if an unparsed body is read before the transform runs.
 */
export function decide(delivery: Delivery, deciding: DecisionInput): Decision | Promise<Decision> {
  const { hook } = deciding
  if (hook.kind === 'built-in') return hook.policy.decideBuiltIn(delivery, deciding.newId)
  const { mapping, trace } = findMapping(hook, delivery)
  if (mapping !== undefined) return decideMapped(delivery, mapping, trace, deciding)
  const reasons: Reasons = { mappingId: undefined, transformHash: undefined, retain: undefined, trace, log: [] }
  return { kind: 'skip', isByCode: false, why: 'no mapping matched', ...reasons }
}

function decideMapped(
  delivery: Delivery,
  compiled: CompiledMapping,
  trace: readonly TraceEntry[],
  deciding: DecisionInput,
): Decision | Promise<Decision> {
  const { id: mappingId, mapping, transform } = compiled
  const log: string[] = []
  const reasons: Reasons = { mappingId, transformHash: transform?.hash, retain: mapping.retain, trace, log }
  if (compiled.isCancelledBy(delivery)) {
    const cancel = readCancel(compiled, toTemplateScope(delivery))
    if (cancel instanceof Problem) return { kind: 'refuse', problem: cancel, ...reasons }
    return { kind: 'skip', isByCode: true, why: cancelReason, ...reasons, log: [cancelReason], cancel }
  }
  if (deciding.hook.policy.isOwn(delivery))
    return { kind: 'skip', isByCode: true, why: ownComment, ...reasons, log: [ownComment] }
  const plans = createPlans(compiled, deciding)
  if (transform !== undefined) {
    const state = createDecisionState(transform.module, deciding.readState)
    return decideByTransform(delivery, { compiled, transform, serves: deciding.serves, state, plans, log, reasons })
  }
  try {
    const { list, deliveries, whyNone } = splitItems(delivery, compiled.forEach)
    if (whyNone !== undefined) return toNothing(whyNone, reasons)
    let names: readonly string[] | undefined
    for (const item of deliveries) {
      const scope = toTemplateScope(item)
      const draft = renderDraft(compiled, scope)
      requireText(compiled, draft)
      // one item that has the fields is enough
      if (names?.length !== 0) names = compiled.body?.listEmpty(scope) ?? []
      plans.add(item, splitTargets(draft), list)
    }
    const decision = plans.toDecision(reasons)
    const warning = describeEmptyTemplate(compiled, { names, syntax: delivery.body.syntax })
    if (warning === undefined || decision.kind === 'skip') return decision
    return { ...decision, log: [warning], warning }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    if (error instanceof LongListProblem) return toSplit(error, reasons)
    return isTooMany(error) ? toKept(error, reasons) : { kind: 'refuse', problem: error, ...reasons }
  }
}

/** The log shows the reason. */
function toNothing(why: string, reasons: Reasons): Extract<Decision, { kind: 'skip' }> {
  return { kind: 'skip', isByCode: false, why, ...reasons, log: [why] }
}

function toSplit({ list }: LongListProblem, reasons: Reasons): Decision {
  const why = `The ${list.count} items of ${list.text} are split into ${countParts(list)} deliveries.`
  return { kind: 'skip', isByCode: true, why, ...reasons, log: [why], splits: list }
}

/** The sender sends a batch that is too large again and again, and then never, so it is kept for the operator. */
function isTooMany({ code }: Problem): boolean {
  return code === 'too-many-items'
}

function toKept(problem: Problem, reasons: Reasons): Decision {
  return { kind: 'park', problem, waitsFor: undefined, ...reasons }
}

const ownComment = 'The request is about a comment that Hookloom posted.'

type TransformRun = {
  readonly compiled: CompiledMapping
  readonly transform: Transform
  readonly serves: true | undefined
  readonly state: DecisionState
  readonly plans: Plans
  /** The lines that the code logs are added here. */
  readonly log: string[]
  readonly reasons: Reasons
}

async function decideByTransform(delivery: Delivery, code: TransformRun): Promise<Decision> {
  const { compiled, transform, state, plans, reasons } = code
  try {
    const { list, deliveries, whyNone } = splitItems(delivery, compiled.forEach)
    if (whyNone !== undefined) return toNothing(whyNone, reasons)
    for (const item of deliveries) plans.add(item, (await runTransform(item, code)).flatMap(splitTargets), list)
    return { ...plans.toDecision(reasons), state: state.changes() }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    if (error instanceof LongListProblem) return toSplit(error, reasons)
    // an invalid result of code is the operator's fault; an invalid body or payload is the sender's
    if (isTooMany(error)) return toKept(error, reasons)
    const isSenders = error instanceof SenderFault || error.code === 'body-invalid'
    if (isSenders) return { kind: 'refuse', problem: error, ...reasons }
    return { kind: 'park', problem: toOperatorProblem(error, transform), waitsFor: transform.module, ...reasons }
  }
}

/** The actions of a delivery, item by item, and their limits. */
function createPlans(
  { mapping, jobKeys, transform, flow, identity }: CompiledMapping,
  { hook: { policy }, newId }: DecisionInput,
) {
  const { forEach = '' } = mapping
  const actions: PlannedAction[] = []
  let response: SenderResponse | undefined
  let once: OnceKey | undefined
  let written = 0
  let added = 0
  return {
    add(item: Delivery, drafts: readonly ActionDraft[], list: ItemsList | undefined): void {
      const { count = 1 } = list ?? {}
      added += 1
      for (const draft of drafts) {
        const ofFlow = { flow, returned: draft.flow, ring: identity.ring }
        const input = { keyOrigin: draft.keyOrigin, delivery: item, jobKeys, newId, flow: ofFlow }
        const planned = policy.plan(parseAction(draft), input)
        written += planned.kind === 'wake' ? planned.action.text.length : planned.action.message.length
        actions.push(planned)
        response = draft.response
        once = draft.once
      }
      // every item repeats the fields outside the array: a small request must not become a large one on disk
      if (list !== undefined && count > 1 && written > maxText) {
        const expected = (written / added) * count
        if (expected <= maxGrowth * item.body.bytes.length) throw new LongListProblem(list)
        throw toItemsProblem(forEach, `the texts of its items have more than ${maxText} characters in all`)
      }
      if (actions.length <= maxActions) return
      if (list !== undefined && count > 1) throw new LongListProblem(list)
      if (transform === undefined) throw toItemsProblem(forEach, `it makes more than ${maxActions} messages`)
      throw new Problem(
        'transform-result-invalid',
        `${transform.module} returned ${actions.length} actions for one delivery, expected at most ${maxActions}.`,
      )
    },
    toDecision(reasons: Reasons): Extract<Decision, { kind: 'accept' | 'skip' }> {
      if (actions.length > 0) {
        const isOnly = actions.length === 1 && forEach === ''
        return {
          kind: 'accept',
          actions,
          response: isOnly ? response && parseResponse(response) : undefined,
          once,
          ...reasons,
        }
      }
      return { kind: 'skip', isByCode: true, why: `${transform?.module} returned null or an empty array`, ...reasons }
    },
  }
}

type Plans = ReturnType<typeof createPlans>

/** A fault of the sender that the thread of the transform found: an invalid body, or a payload that does not match the schema of the transform. */
class SenderFault extends Problem {}

async function runTransform(
  delivery: Delivery,
  { compiled, transform, serves, state, log }: TransformRun,
): Promise<ActionDraft[]> {
  const draft = renderDraft(compiled, toTemplateScope(delivery))
  const isItem = compiled.mapping.forEach !== undefined
  const outcome = await transform.run(toTransformCall(delivery, { isItem, serves, readState: state.readState() }))
  log.push(...outcome.log)
  if (outcome.kind !== 'returned') {
    const { code, detail, frame } = outcome.problem
    const Kind = outcome.kind === 'refused' ? SenderFault : Problem
    throw new Kind(code, detail, frame === undefined ? {} : { frame })
  }
  if (outcome.state !== undefined) state.add(outcome.state)
  if (outcome.value === null) return []
  const results = Array.isArray(outcome.value) ? outcome.value : [outcome.value]
  const isOnly = results.length === 1 && compiled.mapping.forEach === undefined
  const field = ['response', 'dedupe'].find((name) =>
    results.some((result) => isJsonObject(result) && result[name] !== undefined),
  )
  if (!isOnly && field !== undefined) {
    throw new Problem(
      'transform-result-invalid',
      `${transform.module} returned a ${field} with one of several actions. Only a delivery with exactly one action has one: leave it out.`,
    )
  }
  return results.map((result: unknown) => mergeResult(draft, result, transform.module))
}

function toOperatorProblem(problem: Problem, transform: Transform): Problem {
  if (problem.code.startsWith('transform-')) return problem
  return new Problem('transform-result-invalid', `${transform.module} returned an invalid action: ${problem.message}`, {
    cause: problem,
  })
}
