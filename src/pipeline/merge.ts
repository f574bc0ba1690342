// Joins the rendered fields of a mapping and the result of its code to one action, and checks it against one schema. Also builds what
// templates, transforms and prompts see of a delivery.
import { type Origin, Action } from '../model/action.ts'
import type { Delivery } from '../model/delivery.ts'
import { readBodyText, readPayload } from '../model/parse-body.ts'
import { type TransformCall, AgentResult, WakeResult } from '../model/transform.ts'
import { readCorrespondent } from './sources.ts'
import type { TemplateScope } from './template.ts'
import type { z } from 'zod'
import { describeFirstIssue } from '../model/issue.ts'
import { isJsonObject, describeValueKind } from '../base/json.ts'
import { findNearest } from '../base/text.ts'
import { Problem } from '../model/problem.ts'
import type { SenderResponse } from '../model/response.ts'
import type { CompiledMapping } from './compile.ts'
import type { KeyOrigin } from '../model/permission.ts'

/** An action before the check, who chose its session key, and the answer that goes with it. */
export type ActionDraft = {
  readonly fields: { kind: 'wake' | 'agent' } & Record<string, unknown>
  readonly keyOrigin: KeyOrigin
  readonly response: SenderResponse | undefined
}

/** The action of the mapping, without its transform. */
export function renderDraft(compiled: CompiledMapping, scope: TemplateScope): ActionDraft {
  const { mapping } = compiled
  const { keyOrigin } = compiled
  const response = compiled.response?.render(scope)
  const body = compiled.body?.render(scope)
  const { allowUnsafeExternalContent, wakeMode } = mapping
  if (mapping.action === 'wake') {
    return { fields: { kind: 'wake', text: body, mode: wakeMode, allowUnsafeExternalContent }, keyOrigin, response }
  }
  const { agentId, deliver, channel, to, model, thinking, timeoutSeconds } = mapping
  return {
    fields: {
      kind: 'agent',
      message: body,
      // a blank name counts as none; the schema refuses a blank key
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
    response,
  }
}

/**
 * Merges one result of a transform into the draft of the mapping. A result of the other kind starts with an empty draft. Trust is
 * always set by the mapping. Throws `transform-result-invalid` with the field.
 */
export function mergeResult(draft: ActionDraft, result: unknown, module: string): ActionDraft {
  if (!isJsonObject(result)) {
    throw new Problem(
      'transform-result-invalid',
      result === undefined
        ? `${module} returned undefined. Return {} to keep the mapping's action, or null to skip.`
        : `${module} returned ${describeValueKind(result)}, expected an object, an array of objects, or null to skip.`,
    )
  }
  if (Object.hasOwn(result, 'allowUnsafeExternalContent')) {
    throw new Problem(
      'transform-result-invalid',
      `${module} returned allowUnsafeExternalContent, which only the configuration may set. Set it in the mapping.`,
    )
  }
  const { fields } = draft
  const kind = result['kind'] === undefined ? fields.kind : result['kind']
  if (kind !== 'wake' && kind !== 'agent') {
    throw new Problem(
      'transform-result-invalid',
      `${module} returned a kind that is neither "wake" nor "agent". Leave it out to keep the kind of the mapping.`,
    )
  }
  const parsed = (kind === 'wake' ? WakeResult : AgentResult).safeParse(result)
  if (!parsed.success) {
    throw new Problem('transform-result-invalid', `${module} returned ${describeFault(parsed.error, result, kind)}`)
  }
  const { response = draft.response, ...changed } = parsed.data
  const given = Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined))
  const { allowUnsafeExternalContent } = fields
  const base = kind === fields.kind ? fields : { allowUnsafeExternalContent }
  // the code belongs to the operator, so only the prefixes limit a key that it chose
  return {
    fields: { ...base, ...given, kind },
    keyOrigin: Object.hasOwn(given, 'sessionKey') ? 'code' : draft.keyOrigin,
    response,
  }
}

/** Why a result is invalid. An unknown field is a misspelling, or a field of the other action. */
function describeFault(error: z.ZodError, result: unknown, kind: 'wake' | 'agent'): string {
  const [issue] = error.issues
  if (issue?.code !== 'unrecognized_keys') return `${describeFirstIssue(error, result)}.`
  const [field = ''] = issue.keys
  const fields = { wake: Object.keys(WakeResult.shape), agent: Object.keys(AgentResult.shape) }
  const other = kind === 'wake' ? 'agent' : 'wake'
  const what = `the field ${JSON.stringify(field.slice(0, 60))}, which the action "${kind}" does not have`
  if (fields[other].includes(field))
    return `${what}. It is a field of the action "${other}": return kind: "${other}" too.`
  const near = findNearest(field, fields[kind])
  return near === undefined ? `${what}. It has ${fields[kind].join(', ')}.` : `${what}. Did you mean "${near}"?`
}

/** Checks a draft. Throws `payload-invalid` with the field, what was expected, and the kind of value that was found. */
export function parseAction({ fields }: ActionDraft): Action {
  const parsed = Action.safeParse(fields)
  if (parsed.success) return parsed.data
  throw new Problem('payload-invalid', `${describeFirstIssue(parsed.error, fields)}.`)
}

export function toTemplateScope(delivery: Delivery): TemplateScope {
  const { headers, query, path, source, event, body, receivedAt } = delivery
  return {
    payload: () => readPayload(body),
    bodyText: () => readBodyText(body),
    headers,
    query,
    path,
    source,
    event,
    now: () => new Date(receivedAt).toISOString(),
  }
}

const nothing = new TextEncoder().encode('null')

/** `isItem`: the delivery is one item of a `forEach`. Its body is made here, as JSON, whatever the content type says. */
export function toTransformCall(
  delivery: Delivery,
  { isItem, serves }: { isItem: boolean } & Pick<TransformCall, 'serves'>,
): TransformCall {
  const { headers, query, url, path, method, source, event, receivedAt, id, body } = delivery
  const head = { headers, query, url, path, method, source, event, receivedAt, deliveryId: id }
  if (isItem) return { head, body: Buffer.from(JSON.stringify(readPayload(body))), syntax: 'json', serves }
  // an accepted empty body is the payload `null`
  return { head, body: body.bytes.byteLength === 0 ? nothing : body.bytes, syntax: body.syntax, serves }
}

export function toOrigin(delivery: Delivery): Origin {
  const { path, source, sender } = delivery
  const { from, subject } = sender === undefined ? {} : readCorrespondent(sender, delivery)
  return {
    hook: path,
    ...(source === undefined ? {} : { source }),
    ...(from === undefined ? {} : { from }),
    ...(subject === undefined ? {} : { subject }),
  }
}
