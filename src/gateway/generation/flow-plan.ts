// The flow of a planned action, with the limits of its agent.
import { takeStart } from '../../base/text.ts'
import type { PlannedAction } from '../../core/model/action.ts'
import { findRefusalCount, Flow, type PlannedFlow, type SharedLimits, toFlowSettings } from '../../core/model/flow.ts'
import type { PlanSettings } from '../../model/config/plan-settings.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import { Problem } from '../../core/model/problem.ts'
import { checkKey, type CompiledFlow, compileFlow } from '../../core/mapping/flow.ts'
import { toTemplateScope } from '../../core/mapping/merge.ts'
import type { FlowInput } from '../../core/mapping/policy.ts'

/** `hooks.agent.flow`. Throws `config-invalid` if a template does not parse. */
export function compileAgentFlow(flow: Flow): CompiledFlow {
  try {
    return compileFlow(flow, agentHookRing)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem('config-invalid', `hooks.agent.flow: ${error.message}`, { cause: error })
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
  { flow, returned, ring }: FlowInput,
  { config, delivery }: { config: Pick<PlanSettings, 'agents' | 'limits'>; delivery: Delivery },
): PlannedFlow | undefined {
  const { agentId, sessionKey } = planned
  const own =
    returned === undefined
      ? flow?.plan(toTemplateScope(delivery), planned)
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
      `flow.limits: ${JSON.stringify(takeStart(unknown, 60))} is not a name in limits.`,
    )
  return {
    ring,
    key: checkKey(flow.key ?? sessionKey),
    expiresMs: flow.expires,
    settings: toFlowSettings(flow, { ring, rateKey: flow.rateLimit?.key ?? '' }),
    refusesAt: findRefusalCount(flow),
  }
}
