// Rendered fields and what code returned, made one action and held against one schema.
import type { z } from 'zod'
import { Action } from '../model/action.ts'
import { toFirstIssue } from '../model/issue.ts'
import { isJsonObject, toKindOf } from '../base/json.ts'
import { nearestOf } from '../base/text.ts'
import { Problem } from '../model/problem.ts'
import { AgentResult, WakeResult } from '../model/transform.ts'
import type { CompiledMapping } from './compile.ts'
import type { KeyOrigin } from './policy.ts'
import type { TemplateScope } from './template.ts'

/** An action before it is checked, and who chose its session key. */
export type Draft = {
  readonly fields: { kind: 'wake' | 'agent' } & Record<string, unknown>
  readonly keyOrigin: KeyOrigin
}

/** What the mapping alone makes of a delivery. */
export function renderDraft(compiled: CompiledMapping, scope: TemplateScope): Draft {
  const { mapping } = compiled
  const { keyOrigin } = compiled
  const body = compiled.body?.render(scope)
  const { allowUnsafeExternalContent, wakeMode } = mapping
  if (mapping.action === 'wake') {
    return { fields: { kind: 'wake', text: body, mode: wakeMode, allowUnsafeExternalContent }, keyOrigin }
  }
  const { agentId, deliver, channel, to, model, thinking, timeoutSeconds } = mapping
  return {
    fields: {
      kind: 'agent',
      message: body,
      // a name that renders blank is no name; a key that renders blank is refused by the schema
      name: compiled.name?.render(scope).trim() || undefined,
      sessionKey: compiled.sessionKey?.render(scope),
      agentId,
      wakeMode,
      deliver,
      channel,
      to,
      model,
      thinking,
      timeoutSeconds,
      allowUnsafeExternalContent,
    },
    keyOrigin,
  }
}

/**
 * One result of a transform laid over the mapping's draft. A result of the other kind starts over; trust is the mapping's either way.
 * Throws `transform-result-invalid` naming the field.
 */
export function mergeResult(draft: Draft, result: unknown, module: string): Draft {
  if (!isJsonObject(result)) {
    throw new Problem(
      'transform-result-invalid',
      result === undefined
        ? `${module} returned undefined. Return {} to keep the mapping's action, null to skip.`
        : `${module} returned ${toKindOf(result)}, expected an object, an array of objects, or null to skip.`,
    )
  }
  if (Object.hasOwn(result, 'allowUnsafeExternalContent')) {
    throw new Problem(
      'transform-result-invalid',
      `${module} returned allowUnsafeExternalContent, which only the configuration may set. Set it on the mapping.`,
    )
  }
  const { fields } = draft
  const kind = result['kind'] === undefined ? fields.kind : result['kind']
  if (kind !== 'wake' && kind !== 'agent') {
    throw new Problem(
      'transform-result-invalid',
      `${module} returned a kind that is neither "wake" nor "agent". Leave it out to keep the mapping's.`,
    )
  }
  const parsed = (kind === 'wake' ? WakeResult : AgentResult).safeParse(result)
  if (!parsed.success) {
    throw new Problem('transform-result-invalid', `${module} returned ${toFault(parsed.error, result, kind)}`)
  }
  const given = Object.fromEntries(Object.entries(parsed.data).filter(([, value]) => value !== undefined))
  const { allowUnsafeExternalContent } = fields
  const base = kind === fields.kind ? fields : { allowUnsafeExternalContent }
  // code is the operator's own: a key that it chose obeys the prefixes alone
  return {
    fields: { ...base, ...given, kind },
    keyOrigin: Object.hasOwn(given, 'sessionKey') ? 'operator' : draft.keyOrigin,
  }
}

/** What of a result does not fit. An unknown field is a slip, or one of the other action. */
function toFault(error: z.ZodError, result: unknown, kind: 'wake' | 'agent'): string {
  const [issue] = error.issues
  if (issue?.code !== 'unrecognized_keys') return `${toFirstIssue(error, result)}.`
  const [field = ''] = issue.keys
  const fields = { wake: Object.keys(WakeResult.shape), agent: Object.keys(AgentResult.shape) }
  const other = kind === 'wake' ? 'agent' : 'wake'
  const what = `the field ${JSON.stringify(field.slice(0, 60))}, which the action "${kind}" does not have`
  if (fields[other].includes(field)) return `${what}. With kind: "${other}" it is that action.`
  const near = nearestOf(field, fields[kind])
  return near === undefined ? `${what}. It has ${fields[kind].join(', ')}.` : `${what}. Did you mean "${near}"?`
}

/** A draft as an action. Throws `payload-invalid` naming the field, what was expected and what kind of value came. */
export function toAction({ fields }: Draft): Action {
  const parsed = Action.safeParse(fields)
  if (parsed.success) return parsed.data
  throw new Problem('payload-invalid', `${toFirstIssue(parsed.error, fields)}.`)
}
