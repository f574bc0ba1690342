// The policy of the gateway: the rules of its configuration for every action, and the built-in hooks `wake` and `agent`.
import { describeValueKind, isJsonObject } from '../../base/json.ts'
import { toHeldValue } from '../../base/sent-json.ts'
import { type Action, AgentRequest, WakePayload } from '../../core/model/action.ts'
import { readPayload } from '../../core/model/body.ts'
import { describeFirstIssue } from '../../core/model/issue.ts'
import { JobKeys } from '../../core/model/job-keys.ts'
import type { PlanSettings } from '../../model/config/plan-settings.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import type { CompiledFlow } from '../../core/mapping/flow.ts'
import type { Policy } from '../../core/mapping/policy.ts'
import { isAboutOwnComment } from './event-place.ts'
import { agentHookRing, compileAgentFlow, planFlow } from './flow-plan.ts'
import { applyPolicy, chooseSessionMode, requireUsable } from './policy.ts'

/** Throws `config-invalid` if `hooks.agent.flow` is invalid. */
export function createPolicy(config: PlanSettings): Policy {
  const { flow } = config.hooks.agent
  const agentFlow = flow && compileAgentFlow(flow)
  return {
    plan(action, input) {
      const allowed = applyPolicy(action, config, input)
      return allowed.kind === 'wake'
        ? allowed
        : { ...allowed, flow: planFlow(allowed, input.flow, { config, delivery: input.delivery }) }
    },
    decideBuiltIn: (delivery, newId) => decideBuiltIn(delivery, { config, agentFlow, newId }),
    isOwn: isAboutOwnComment,
  }
}

/** The defaults. A built-in hook has no mapping that could set other values. */
const noJobKeys = JobKeys.parse({})

function decideBuiltIn(
  delivery: Delivery,
  { config, agentFlow, newId }: { config: PlanSettings; agentFlow: CompiledFlow | undefined; newId: () => string },
): Decision {
  const reasons = { mappingId: undefined, transformHash: undefined, retain: undefined, trace: [], log: [] }
  try {
    const { action, jobKeys } = parseBuiltInAction(delivery, config)
    const allowed = applyPolicy(action, config, { keyOrigin: 'request', delivery, jobKeys, newId })
    requireUsable(allowed, config)
    const from = { flow: agentFlow, ring: agentHookRing }
    const planned =
      allowed.kind === 'agent' ? { ...allowed, flow: planFlow(allowed, from, { config, delivery }) } : allowed
    return { kind: 'accept', actions: [planned], response: undefined, once: undefined, ...reasons }
  } catch (error) {
    if (error instanceof Problem) return { kind: 'refuse', problem: error, ...reasons }
    throw error
  }
}

function parseBuiltInAction({ path, body }: Delivery, config: PlanSettings): { action: Action; jobKeys: JobKeys } {
  // the fields become an action, and its numbers are ours
  const payload = toHeldValue(readPayload(body))
  if (!isJsonObject(payload)) {
    const example = path === 'wake' ? '{"text": "…"}' : '{"message": "…"}'
    throw new Problem(
      'payload-invalid',
      `The body: expected an object such as ${example}, found ${describeValueKind(payload)}.`,
    )
  }
  const parsed = (path === 'wake' ? WakePayload : AgentRequest).safeParse(payload)
  if (!parsed.success) throw new Problem('payload-invalid', `${describeFirstIssue(parsed.error, payload)}.`)
  if ('text' in parsed.data) {
    return { action: { kind: 'wake', ...parsed.data, allowUnsafeExternalContent: false }, jobKeys: noJobKeys }
  }
  const { sessionMode: _, ...fields } = parsed.data
  const { allowUnsafeExternalContent, flow: __, ...keys } = config.hooks.agent
  return {
    action: { kind: 'agent', ...fields, allowUnsafeExternalContent },
    jobKeys: { ...noJobKeys, ...keys, sessionMode: chooseSessionMode(parsed.data, config, noJobKeys.sessionMode) },
  }
}
