// A dry run: shows what this configuration would make of a delivery, and why. Uses no store and no gateway.
import { newId } from '../base/id.ts'
import { cut, findNearest, formatQuantity } from '../base/text.ts'
import type { PlannedAction } from '../core/model/action.ts'
import type { Delivery } from '../core/model/delivery.ts'
import { normalizeHookName } from '../core/model/mapping-rules.ts'
import { exitCodes, Problem, toProblemRecord } from '../core/model/problem.ts'
import type { SenderResponse } from '../core/model/response.ts'
import { type Explanation, type FieldOrigins, explain } from '../gateway/replay/explain.ts'
import type { Generation } from '../gateway/generation/generation.ts'
import { createGeneration } from '../gateway/generation/generation.ts'
import { buildDelivery, toLocalHead } from '../core/mapping/delivery.ts'
import { createBench } from './checks/bench.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { readInput } from './requests/input.ts'
import { cutLine, describeFailure, indent, renderTable, renderTrace } from './terminal/print.ts'
import { toActionFields } from '../gateway/deliveries/records.ts'

type RunOptions = { hook: string; file: string; headers: readonly string[]; event: string | undefined }

export async function run(context: Context, options: RunOptions): Promise<number> {
  const bench = createBench(context)
  try {
    const { parts } = await withProgress(context, 'Loading the transforms', () => bench.load([]))
    const generation = createGeneration(parts)
    const delivery = await readDelivery(context, generation, options)
    return printExplanation(context, await withProgress(context, 'Running', () => explain(generation, delivery, newId)))
  } finally {
    await bench.close()
  }
}

function printExplanation(context: Context, explanation: Explanation): number {
  if (context.json) context.printJson(buildExplanationFields(explanation))
  else print(context, explanation)
  const { decision } = explanation
  return 'problem' in decision ? exitCodes[decision.problem.kind] : exitCodes.ok
}

async function readDelivery(
  context: Context,
  generation: Generation,
  { hook: name, file, headers, event }: RunOptions,
): Promise<Delivery> {
  const path = normalizeHookName(name)
  const hook = generation.findHook(path)
  if (hook.kind === 'unknown') throw toUnknownHookProblem(generation, path)
  const input = await readInput(context, { file, headers })
  const head = toLocalHead(hook, { prefix: generation.config.hooks.path, path, headers: input.headers })
  const delivery = buildDelivery(head, Buffer.from(input.body), { hook, id: newId(), receivedAt: Date.now() })
  return event === undefined ? delivery : { ...delivery, event }
}

function toUnknownHookProblem({ config }: Generation, path: string): Problem {
  const named = config.hooks.mappings.flatMap(({ match }) => match.path ?? [])
  const presets = config.hooks.presets.map((preset) => (typeof preset === 'string' ? preset : preset.name))
  const names = ['wake', 'agent', ...named, ...presets]
  const near = findNearest(path, names)
  const next = near === undefined ? `Hooks: ${names.join(', ')}.` : `Did you mean ${near}?`
  return new Problem('hook-unknown', `No hook has the name "${cutLine(path, 60)}". ${next}`)
}

const decisionNames = { accept: 'accept', skip: 'skip', park: 'park', refuse: 'refusal' } as const

function buildExplanationFields({ decision, trace, origins }: Explanation): object {
  return {
    decision: decisionNames[decision.kind],
    mappingId: decision.mappingId ?? null,
    actions: decision.kind === 'accept' ? decision.actions.map(toActionFields) : [],
    origins,
    trace,
    response: decision.kind === 'accept' ? (decision.response ?? null) : null,
    why: decision.kind === 'skip' ? decision.why : null,
    problem: 'problem' in decision ? toProblemRecord(decision.problem) : null,
    log: decision.log,
  }
}

function print(context: Context, { decision, trace, origins }: Explanation): void {
  const blocks = [
    ...(trace.length === 0 ? [] : [renderTrace(trace)]),
    ...(decision.log.length === 0 ? [] : [`Log\n${indent(decision.log.join('\n'))}`]),
    ...(decision.kind === 'accept'
      ? decision.actions.map((planned, index) => renderAction(planned, origins[index] ?? {}))
      : []),
  ]
  if (blocks.length > 0) context.print(`${blocks.join('\n\n')}\n`)
  switch (decision.kind) {
    case 'accept':
      if (decision.response !== undefined) context.print(`${renderResponse(decision.response)}\n`)
      return context.print(`accept: ${formatQuantity(decision.actions.length, 'action')}`)
    case 'skip':
      return context.print(`skip: ${cutLine(decision.why, 500)}`)
    case 'park':
      context.print(`park: this code would park the delivery${isLoadFailure(decision.problem) ? lastGoodNote : ''}`)
      return context.note(describeFailure(decision.problem))
    case 'refuse':
      context.print(`refusal: the sender would be answered ${decision.problem.status}`)
      return context.note(describeFailure(decision.problem))
  }
}

function renderResponse({ status, contentType, body }: SenderResponse): string {
  return `Answer to the sender: ${status} ${contentType}\n${indent(cut(body, 4_000))}`
}

const lastGoodNote = '; a running gateway keeps its last good version'

/** Whether the code does not load, and so cannot be live. Code that throws on this delivery may be live. */
function isLoadFailure({ code }: Problem): boolean {
  return code === 'transform-missing' || code === 'transform-build-failed' || code === 'transform-load-failed'
}

function renderAction(planned: PlannedAction, origins: FieldOrigins): string {
  const rows = Object.entries(toActionFields(planned))
    .filter(([name, value]) => name !== 'kind' && value !== undefined)
    .map(([name, value]) => [name, cutLine(String(value), 80), origins[name] ?? ''])
  return renderTable([planned.kind, 'value', 'from'], rows)
}
