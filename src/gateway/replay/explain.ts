// Explains a decision: every mapping with its reason, and the origin of each field of an action.
import type { PlannedAction } from '../../core/model/action.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import type { TraceEntry } from '../../core/model/problem.ts'
import { isJsonObject, type JsonObject, type SentObject } from '../../base/json.ts'
import { Mapping } from '../../core/model/mapping.ts'
import { readPayload } from '../../core/model/body.ts'
import type { Transform } from '../../core/model/transform.ts'
import type { CompiledMapping } from '../../core/mapping/compile.ts'
import { mergeResult, renderDraft, splitTargets, toTemplateScope } from '../../core/mapping/merge.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import { decide } from '../../core/mapping/pipeline.ts'
import type { Generation } from '../generation/generation.ts'
import type { Hook } from '../../core/mapping/hook.ts'
import type { Template } from '../../core/mapping/template.ts'

/** Field → `request`, `template <key>`, `literal <key>`, `transform <module>`, `config <key>` or `default`. */
export type FieldOrigins = Readonly<Record<string, string>>

export type Explanation = {
  readonly decision: Decision
  /** The reason of every mapping, in order. Empty for `wake` and `agent`, which no mapping takes. */
  readonly trace: readonly TraceEntry[]
  /** The origins of the fields of each action, in the order of the actions. Empty unless the decision accepts. */
  readonly origins: readonly FieldOrigins[]
}

/** Decides as the gateway would, and records the reasons. */
export async function explain(generation: Generation, delivery: Delivery, newId: () => string): Promise<Explanation> {
  const results: unknown[] = []
  let taken: CompiledMapping | undefined
  const hook = generation.findHook(delivery.path)
  const find: Hook['find'] = (input, findDenial) => {
    const found = hook.find(input, findDenial)
    taken = found.mapping
    if (taken?.transform === undefined) return found
    return { ...found, mapping: { ...taken, transform: recordResults(taken.transform, results) } }
  }
  const decision = await decide(delivery, { hook: { ...hook, find }, newId })
  const { defaultSessionKey } = generation.config.hooks
  const actions = decision.kind === 'accept' ? decision.actions : []
  const resultOfAction = taken === undefined || actions.length === 0 ? [] : repeatForTargets(results, taken, delivery)
  return {
    decision,
    trace: hook.kind === 'built-in' ? [] : generation.explain(delivery),
    origins: actions.map((planned, index) => {
      const fields =
        taken === undefined
          ? toRequestOrigins(planned, delivery)
          : toMappedOrigins(planned, taken, resultOfAction[index])
      return planned.kind !== 'agent' ? fields : { ...toPolicyOrigins(defaultSessionKey), ...fields }
    }),
  }
}

/** Wraps a transform so that it also records each result that becomes an action, in order. */
function recordResults(transform: Transform, results: unknown[]): Transform {
  const { module, hash, problem } = transform
  return {
    module,
    hash,
    problem,
    async run(call) {
      const outcome = await transform.run(call)
      if (outcome.kind === 'returned' && outcome.value !== null) results.push(...[outcome.value].flat())
      return outcome
    },
  }
}

/** The result that each action was made from: a message with a list of recipients is one action for each of them. */
function repeatForTargets(results: readonly unknown[], compiled: CompiledMapping, delivery: Delivery): unknown[] {
  const draft = renderDraft(compiled, toTemplateScope(delivery))
  const module = compiled.transform?.module ?? ''
  return results.flatMap((result) => splitTargets(mergeResult(draft, result, module)).map(() => result))
}

/** The origins of the fields that the policy sets if an action does not have them. */
function toPolicyOrigins(defaultSessionKey: string | undefined): FieldOrigins {
  return {
    agentId: 'default',
    sessionKey: defaultSessionKey === undefined ? 'default' : 'config hooks.defaultSessionKey',
  }
}

function toRequestOrigins(planned: PlannedAction, { body }: Delivery): FieldOrigins {
  const payload = readPayload(body)
  const given = isJsonObject(payload) ? payload : {}
  return toOrigins(planned, (field) => {
    // a request cannot decide whether its text is trusted
    if (field === 'allowUnsafeExternalContent') {
      return 'allowUnsafeExternalContent' in planned.action && planned.action.allowUnsafeExternalContent
        ? 'config hooks.agent.allowUnsafeExternalContent'
        : 'default'
    }
    return hasField(given, field) ? 'request' : 'default'
  })
}

function toMappedOrigins(planned: PlannedAction, compiled: CompiledMapping, result: unknown): FieldOrigins {
  const given = isJsonObject(result) ? result : {}
  return toOrigins(planned, (field) =>
    hasField(given, field) ? `transform ${compiled.transform?.module}` : toMappingOrigin(field, planned, compiled),
  )
}

function toOrigins({ action }: PlannedAction, originOf: (field: string) => string): FieldOrigins {
  const fields = Object.entries(action).filter(([name, value]) => name !== 'kind' && value !== undefined)
  return Object.fromEntries(fields.map(([name]) => [name, originOf(name)]))
}

const defaults: JsonObject = { ...plainFields(Mapping.parse({})) }

function toMappingOrigin(field: string, planned: PlannedAction, compiled: CompiledMapping): string {
  const { mapping } = compiled
  // the configuration decides whether a text is trusted, even if the code changed the kind
  if (planned.kind !== mapping.action && field !== 'allowUnsafeExternalContent') return 'default'
  switch (field) {
    case 'message':
      return toTemplateOrigin('messageTemplate', mapping.messageTemplate && compiled.body)
    case 'text':
      return toTemplateOrigin('textTemplate', mapping.textTemplate && compiled.body)
    case 'name':
      return toTemplateOrigin('name', compiled.name)
    case 'sessionKey':
      return toTemplateOrigin('sessionKey', compiled.sessionKey)
    default: {
      const key = field === 'mode' ? 'wakeMode' : field
      const given = plainFields(mapping)[key]
      // a key with its default value counts as the default
      return given === undefined || given === defaults[key] ? 'default' : `literal ${key}`
    }
  }
}

function toTemplateOrigin(key: string, template: Template | '' | undefined): string {
  if (template === undefined || template === '') return 'default'
  return `${template.isStatic ? 'literal' : 'template'} ${key}`
}

function hasField(fields: SentObject, name: string): boolean {
  return Object.hasOwn(fields, name) && fields[name] !== undefined
}

/** The fields of a mapping that are plain values. */
function plainFields(mapping: Mapping): JsonObject {
  const plain: JsonObject = {}
  for (const [key, value] of Object.entries(mapping)) {
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') plain[key] = value
  }
  return plain
}
