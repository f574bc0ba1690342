// Evaluates the section `flow` of a mapping, or of the built-in hook `agent`, for one delivery.
import { takeStart } from '../base/text.ts'
import type { PlannedAction } from '../model/action.ts'
import type { PlanSettings } from '../model/config/plan-settings.ts'
import { Flow, type SharedLimits, type PlannedFlow, toFlowSettings, findRefusalCount } from '../model/config/flow.ts'
import { Problem } from '../model/problem.ts'
import { compileTemplate, type Template, type TemplateScope } from './template.ts'

const maxKeyChars = 512

/** The key whose turns a request ends. */
export type FlowKey = Pick<PlannedFlow, 'ring' | 'key'>

export type CompiledFlow = {
  readonly readsPayload: boolean
  /** Throws `payload-invalid` if the key is blank or too long. */
  plan(scope: TemplateScope, planned: Pick<FlowAction, 'sessionKey'>): PlannedFlow
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
        rateKey: takeStart(rateKey?.render(scope).toWellFormed() ?? '', maxKeyChars),
      }),
      refusesAt: findRefusalCount(flow),
    }),
    cancel: (scope, sessionKey) => ({ ring, key: readKey(scope, sessionKey ?? '') }),
  }
}

/** `hooks.agent.flow`. Throws `config-invalid` if a template does not parse. */
export function compileAgentFlow(flow: Flow): CompiledFlow {
  try {
    return compileFlow(flow, agentHookRing)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem('config-invalid', `hooks.agent.flow: ${error.message}`, { cause: error })
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

/** The `ring` of the runs of the built-in hook `agent`. */
export const agentHookRing = 'hook/agent'

/** An action that a flow can start. */
export type FlowAction = Exclude<PlannedAction, { kind: 'wake' }>

/**
 * The flow of one action: the one that code returned, else that of the mapping or the hook. An agent run also has the limits of its agent.
 * Undefined if there is neither a flow nor a limit. Throws `transform-result-invalid` and `payload-invalid`.
 */
export function planFlow(
  planned: FlowAction,
  given: {
    readonly flow: CompiledFlow | undefined
    readonly returned?: Flow | undefined
    readonly ring: string
    readonly scope: TemplateScope
    readonly config: Pick<PlanSettings, 'agents' | 'limits'>
  },
): PlannedFlow | undefined {
  const { flow, returned, ring, scope, config } = given
  const { agentId, sessionKey } = planned
  const own =
    returned === undefined
      ? flow?.plan(scope, planned)
      : planReturnedFlow(returned, { ring, sessionKey, limits: config.limits })
  const { defaults, list } = config.agents
  if (planned.kind === 'deliver') return own
  const limits = list.find(({ id }) => id === agentId)?.limits ?? defaults.limits ?? []
  if (limits.length === 0) return own
  const { settings, ...rest } = own ?? { ring, key: sessionKey, expiresMs: undefined, settings: noFlow }
  return { ...rest, settings: { ...settings, limits: [...new Set([...settings.limits, ...limits])] } }
}

/** Lets runs start as if they had no flow: they wait only for their session. */
const noFlow = toFlowSettings(Flow.parse({ perKey: 100_000 }), { ring: '', rateKey: '' })

/** The flow that a transform returned: its keys are texts, and not templates. */
function planReturnedFlow(
  flow: Flow,
  { ring, sessionKey, limits }: { ring: string; sessionKey: string; limits: SharedLimits },
): PlannedFlow {
  const unknown = flow.limits.find((name) => !Object.hasOwn(limits, name))
  if (unknown !== undefined)
    throw new Problem(
      'transform-result-invalid',
      `flow.limits: ${JSON.stringify(unknown.slice(0, 60))} is not a name in limits.`,
    )
  return {
    ring,
    key: checkKey(flow.key ?? sessionKey),
    expiresMs: flow.expires,
    settings: toFlowSettings(flow, { ring, rateKey: flow.rateLimit?.key ?? '' }),
    refusesAt: findRefusalCount(flow),
  }
}

function checkKey(text: string): string {
  const key = text.trim()
  if (key !== '' && key.length <= maxKeyChars) return key
  throw new Problem(
    'payload-invalid',
    `flow.key: expected 1 to ${maxKeyChars} characters for this payload, found ${key.length}. Its fields may be missing.`,
  )
}
