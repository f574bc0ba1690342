// Evaluates the section `flow` of a mapping, or of a built-in hook, for one delivery.
import { takeStart } from '../../base/text.ts'
import type { PlannedAction } from '../model/action.ts'
import { type Flow, type PlannedFlow, toFlowSettings, findRefusalCount } from '../model/flow.ts'
import { Problem } from '../model/problem.ts'
import { compileTemplate, type Template, type TemplateScope } from './template.ts'

const maxKeyChars = 512

/** The key whose turns a request ends. */
export type FlowKey = Pick<PlannedFlow, 'ring' | 'key'>

export type CompiledFlow = {
  readonly readsPayload: boolean
  /** Throws `payload-invalid` if the key is blank or too long. */
  plan(scope: TemplateScope, planned: Pick<PlannedAction, 'sessionKey'>): PlannedFlow
  /** Throws as `plan` does. `sessionKey`: the rendered session key, which is the default of the key. */
  cancel(scope: TemplateScope, sessionKey: string | undefined): FlowKey
}

/** `ring`: the `ring` of the identity of the mapping. Throws `config-invalid` if a template does not parse. */
export function compileFlow(flow: Flow, ring: string): CompiledFlow {
  const key = flow.key === undefined ? undefined : compileTemplate(flow.key)
  const rateKey = flow.rateLimit?.key === undefined ? undefined : compileTemplate(flow.rateLimit.key)
  const readKey = (scope: TemplateScope, sessionKey: string) => checkKey(key?.render(scope) ?? sessionKey)
  return {
    readsPayload:
      [key, rateKey].some((template) => template?.readsPayload === true) || flow.cancelOn?.payload !== undefined,
    plan: (scope, { sessionKey }) => ({
      ring,
      key: readKey(scope, sessionKey),
      expiresMs: flow.expires,
      settings: toFlowSettings(flow, {
        ring,
        rateKey: takeStart(rateKey?.render(scope) ?? '', maxKeyChars),
      }),
      refusesAt: findRefusalCount(flow),
    }),
    cancel: (scope, sessionKey) => ({ ring, key: readKey(scope, sessionKey ?? '') }),
  }
}

export const cancelReason = 'The request ends the turns of its key (flow.cancelOn).'

/**
 * The key whose turns end because the request matches `flow.cancelOn`. A `Problem` if the key cannot be read, for example because it is blank.
 * Undefined without a flow.
 */
export function readCancel(
  { flow, sessionKey }: { flow: CompiledFlow | undefined; sessionKey: Template | undefined },
  scope: TemplateScope,
): FlowKey | Problem | undefined {
  try {
    return flow?.cancel(scope, sessionKey?.render(scope))
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

/** Throws `payload-invalid` if the key is blank or too long. */
export function checkKey(text: string): string {
  const key = text.trim()
  if (key !== '' && key.length <= maxKeyChars) return key
  throw new Problem(
    'payload-invalid',
    `flow.key: expected 1 to ${maxKeyChars} characters for this payload, found ${key.length}. Its fields may be missing.`,
  )
}
