// Joins the rendered fields of a mapping and the result of its code into one action, and checks it against one schema. Also builds the view of a
// delivery that templates, transforms and prompts get.
import { createHash } from 'node:crypto'
import { type Origin, Action } from '../model/action.ts'
import type { Delivery } from '../model/delivery.ts'
import { hopsHeader, readHops } from '../model/hops.ts'
import { type Body, readBodyText, readPayload } from '../model/body.ts'
import { type OnceKey, type TransformCall, AgentResult, DeliverResult, WakeResult } from '../model/transform.ts'
import { readAuthorAndSubject } from './sources.ts'
import type { TemplateScope } from './template.ts'
import type { z } from 'zod'
import { describeFirstIssue } from '../model/issue.ts'
import { isJsonObject, describeValueKind } from '../../base/json.ts'
import { stringify } from '../../base/sent-json.ts'
import { findNearest, takeStart } from '../../base/text.ts'
import { Problem } from '../model/problem.ts'
import type { Flow } from '../model/flow.ts'
import type { SenderResponse } from '../model/response.ts'
import type { CompiledMapping } from './compile.ts'
import type { KeyOrigin } from './policy.ts'

/** An action before the check, who chose its session key, and the answer that goes with it. */
export type ActionDraft = {
  readonly fields: { kind: Action['kind'] } & Record<string, unknown>
  readonly keyOrigin: KeyOrigin
  readonly response: SenderResponse | undefined
  readonly once?: OnceKey | undefined
  /** The flow that code returned, in place of that of the mapping. */
  readonly flow?: Flow | undefined
}

const results = { agent: AgentResult, wake: WakeResult, deliver: DeliverResult } as const
const actionKinds = ['agent', 'wake', 'deliver'] as const satisfies readonly Action['kind'][]

/**
 * Splits a draft whose recipient is a list. An action `deliver` becomes one draft for each recipient. An agent action stays one draft, and its run
 * delivers the reply to all recipients.
 */
export function splitTargets(draft: ActionDraft): ActionDraft[] {
  const { to, kind } = draft.fields
  if (!Array.isArray(to)) return [draft]
  const given = kind === 'agent' ? to.slice(0, 1) : to
  const others = kind === 'agent' && to.length > 1 ? { alsoTo: to.slice(1) } : {}
  return given.map((target: object) => ({ ...draft, fields: { ...draft.fields, to: undefined, ...target, ...others } }))
}

/** The action of the mapping, without its transform. */
export function renderDraft(compiled: CompiledMapping, scope: TemplateScope): ActionDraft {
  const { mapping, keyOrigin } = compiled
  const response = compiled.response?.render(scope)
  const body = compiled.body?.render(scope)
  const { allowUnsafeExternalContent, wakeMode } = mapping
  if (mapping.action === 'wake') {
    return { fields: { kind: 'wake', text: body, mode: wakeMode, allowUnsafeExternalContent }, keyOrigin, response }
  }
  const { agentId, deliver, channel, to, model, thinking, timeoutSeconds } = mapping
  // a blank name counts as none; the schema refuses a blank key
  const name = compiled.name?.render(scope).trim() || undefined
  if (mapping.action === 'deliver') {
    return { fields: { kind: 'deliver', message: body, name, channel, to }, keyOrigin, response }
  }
  return {
    fields: {
      kind: 'agent',
      message: body,
      name,
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
 * Merges one result of a transform into the draft of the mapping. A result of another kind starts with an empty draft.
 * `allowUnsafeExternalContent` is always that of the mapping. Throws `transform-result-invalid` with the field.
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
  if (kind !== 'wake' && kind !== 'agent' && kind !== 'deliver') {
    throw new Problem(
      'transform-result-invalid',
      `${module} returned a kind that is not "agent", "wake" or "deliver". Leave it out to keep the kind of the mapping.`,
    )
  }
  const parsed = results[kind].safeParse(result)
  if (!parsed.success) {
    const { fault, frame } = describeFault(parsed.error, result, kind)
    throw new Problem('transform-result-invalid', `${module} returned ${fault}`, frame === undefined ? {} : { frame })
  }
  const { response = draft.response, dedupe, ...others } = parsed.data
  const { flow, ...changed } = 'flow' in others ? others : { ...others, flow: undefined }
  const given = Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined))
  const { allowUnsafeExternalContent } = fields
  // a channel without a recipient, returned by code, replaces the mapping's list of recipients
  const own =
    Array.isArray(fields['to']) && 'channel' in given && !('to' in given) ? { ...fields, to: undefined } : fields
  const base = kind === fields.kind ? own : { allowUnsafeExternalContent }
  // the code belongs to the operator, so only the prefixes limit a key that it chose
  return {
    fields: { ...base, ...given, kind },
    keyOrigin: Object.hasOwn(given, 'sessionKey') ? 'code' : draft.keyOrigin,
    response,
    once: dedupe && toDedupeKey(dedupe, module),
    flow,
  }
}

/** The key may be data of a payload, so the name in the store has a hash in its place. */
function toDedupeKey({ key, for: forMs }: { key: string; for: number }, module: string): OnceKey {
  return { name: `${module}/${createHash('sha256').update(key).digest('hex')}`, key, forMs }
}

/**
 * Why a result is invalid. An unknown field is a misspelling, a field of another action, or one of a payload that the code copied. The log has the
 * fault, so the name of such a field is only in the frame.
 */
function describeFault(error: z.ZodError, result: unknown, kind: Action['kind']): { fault: string; frame?: string } {
  const [issue] = error.issues
  if (issue?.code !== 'unrecognized_keys') return { fault: `${describeFirstIssue(error, result)}.` }
  const [field = ''] = issue.keys
  const known = Object.keys(results[kind].shape)
  const other = actionKinds.find((name) => name !== kind && Object.hasOwn(results[name].shape, field))
  const named = JSON.stringify(takeStart(field, 60))
  const what = `the field ${named}, which the action "${kind}" does not have`
  if (other !== undefined)
    return { fault: `${what}. It is a field of the action "${other}": return kind: "${other}" too.` }
  const near = findNearest(field, known)
  if (near !== undefined) return { fault: `${what}. Did you mean "${near}"?` }
  const fault = `a field that the action "${kind}" does not have. It has ${known.join(', ')}.`
  return { fault, frame: `The field is ${named}.` }
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

/** `isItem`: the delivery has one item of a `forEach`, so its body is written as JSON here. */
export function toTransformCall(
  delivery: Delivery,
  { isItem, serves, readState }: { isItem: boolean } & Pick<TransformCall, 'serves' | 'readState'>,
): TransformCall {
  const { headers, query, url, path, method, source, event, receivedAt, id, body } = delivery
  const head = { headers, query, url, path, method, source, event, receivedAt, deliveryId: id }
  if (isItem) return { head, body: Buffer.from(stringify(readPayload(body))), syntax: 'json', serves, readState }
  return { head, body: body.bytes, syntax: body.syntax, serves, readState }
}

export function toOrigin(delivery: Delivery): Origin {
  const { path, source, sender, headers } = delivery
  const passed = headers[hopsHeader]
  const hops = passed === undefined ? 0 : readHops(passed)
  const { from, subject } = sender === undefined ? {} : readAuthorAndSubject(sender, delivery)
  return {
    hook: path,
    ...(source === undefined ? {} : { source }),
    ...(from === undefined ? {} : { from }),
    ...(subject === undefined ? {} : { subject }),
    ...(hops === 0 ? {} : { hops }),
  }
}

/**
 * Says that every field of the payload that the template reads is empty, in all items: probably the sender sends something else than the mapping
 * expects. The sentence has no text of the payload.
 */
export function describeEmptyTemplate(
  { mapping }: CompiledMapping,
  { names = [], syntax }: { readonly names: readonly string[] | undefined; readonly syntax: Body['syntax'] },
): string | undefined {
  if (names.length === 0) return undefined
  const field = mapping.action === 'wake' ? 'textTemplate' : 'messageTemplate'
  const more = names.length > 5 ? ` and ${names.length - 5} more` : ''
  const what = syntax === 'form' ? 'form' : 'payload'
  return `The ${what} has none of the fields that ${field} reads, or they are empty: ${names.slice(0, 5).join(', ')}${more}.`
}

/** Throws `payload-invalid` if the text is blank. Its message names the template, because the schema would name only the field. */
export function requireText({ mapping }: CompiledMapping, { fields }: ActionDraft): void {
  const [field, template] = mapping.action === 'wake' ? ['text', 'textTemplate'] : ['message', 'messageTemplate']
  const text = fields[field]
  if (typeof text !== 'string' || text.trim() !== '') return
  throw new Problem(
    'payload-invalid',
    `${field}: the ${template} of the mapping is blank for this payload: the fields that it reads are missing.`,
  )
}
