// Limits what any action may do: session keys, agents, models. Runs last, after templates and transforms.
import { hash } from 'node:crypto'
import { cut, toWellFormed } from '../../base/text.ts'
import {
  type Action,
  type AgentAction,
  type AgentRequest,
  type DeliverAction,
  isOwnChannel,
  mainSessionKey,
  type Origin,
  type PlannedAction,
  toChannelKey,
} from '../../core/model/action.ts'
import { readEndpoints } from '../../model/config/channels.ts'
import type { SessionMode } from '../../core/model/job-keys.ts'
import {
  isAgentAllowed,
  isPlainSessionKey,
  isSessionKeyAllowed,
  resolveModelName,
} from '../../model/config/permission.ts'
import { Problem } from '../../core/model/problem.ts'
import type { PlanInput } from '../../core/mapping/policy.ts'
import { readPlace } from './event-place.ts'
import { toOrigin } from '../../core/mapping/merge.ts'
import {
  findChannelFault,
  isChannelConfigured,
  isForwarded,
  findModelFault,
  findDefaultAgentId,
  isModelAllowed,
  type PlanSettings,
} from '../../model/config/plan-settings.ts'

type PolicyInput = Omit<PlanInput, 'flow'>

/**
 * The session mode of a direct call: that of the request, else `configured`. Throws `session-key-denied` if the request continues a
 * session and may not choose its key, and `payload-invalid` if no session is named.
 */
export function chooseSessionMode(
  { sessionMode, sessionKey }: AgentRequest,
  { hooks }: PlanSettings,
  configured: SessionMode,
): SessionMode {
  if (sessionMode !== 'persistent') return sessionMode ?? configured
  if (!hooks.allowRequestSessionKey) {
    throw new Problem(
      'session-key-denied',
      'sessionMode: a request must not continue a session. Leave the field out, or ask the operator to set hooks.allowRequestSessionKey.',
    )
  }
  if (sessionKey !== undefined) return sessionMode
  const { defaultSessionKey: key, allowedSessionKeyPrefixes: prefixes } = hooks
  if (key === undefined || !isSessionKeyAllowed(key.trim(), prefixes, 'request')) {
    throw new Problem('payload-invalid', 'sessionMode: it is "persistent", but no session is named. Set sessionKey.')
  }
  return sessionMode
}

/** Returns the action with its final agent and key. Throws `session-key-denied`, `agent-denied` or `model-denied`. */
export function applyPolicy(given: Action, config: PlanSettings, input: PolicyInput): PlannedAction {
  const { delivery, jobKeys } = input
  const action = toWellFormed(given)
  const origin = toWellFormed(toOrigin(delivery))
  const fault = action.kind === 'wake' ? undefined : findChannelFault(action.channel, config)
  if (fault !== undefined) throw new Problem('payload-invalid', `channel: ${fault}.`)
  if (action.kind === 'wake') {
    return { kind: 'wake', action, agentId: findDefaultAgentId(config), sessionKey: mainSessionKey, origin }
  }
  if (action.kind === 'deliver') {
    return {
      kind: 'deliver',
      action,
      agentId: findDefaultAgentId(config),
      sessionKey: toRecipientKey(action),
      origin: { ...origin, ...findPlace({ ...action, deliver: true }, config, input) },
      startedBy: delivery.admitted.tokenId,
    }
  }
  const agentId = resolveAgent(action, config)
  const model = resolveModel(action, config)
  const { sessionKey, sharesSession, isKeyChosen } = resolveSession(action, config, input)
  // a run that has this key only by default is not a turn of the main session
  const sessionMode = sessionKey === mainSessionKey && !sharesSession ? 'persistent' : jobKeys.sessionMode
  return {
    kind: 'agent',
    action: model === undefined ? action : { ...action, model },
    agentId,
    sessionKey,
    // a persistent session is one conversation, so its turns never overlap
    sharesSession: sharesSession && sessionMode === 'isolated',
    isKeyChosen,
    ...jobKeys,
    sessionMode,
    origin: { ...origin, ...findPlace(action, config, input) },
    startedBy: delivery.admitted.tokenId,
  }
}

/** The place of the event, if a reply or a message without a recipient goes to the channel of the sender, or if a status is set. */
function findPlace(
  { deliver, channel, to, alsoTo = [] }: Pick<AgentAction, 'deliver' | 'channel' | 'to' | 'alsoTo'>,
  { channels }: PlanSettings,
  { delivery, jobKeys }: PolicyInput,
): Pick<Origin, 'place'> {
  const isReply =
    deliver &&
    [{ channel, to }, ...alsoTo].some((target) => {
      const asked = target.channel === 'last' ? channels.default?.channel : target.channel
      return target.to === undefined && asked !== undefined && asked === delivery.source
    })
  if (!isReply && jobKeys.status === undefined) return {}
  const place = readPlace(delivery)
  return place === undefined ? {} : { place }
}

/** Code may take the recipient from a payload: its hash replaces a recipient that cannot be part of a session key. */
function toRecipientKey({ channel, to }: DeliverAction): string {
  if (to === undefined) return `deliver:${channel}`
  const key = `deliver:${channel}:${to}`
  return isPlainSessionKey(key) ? key : `deliver:${channel}:${hash('sha256', to).slice(0, 16)}`
}

/** Throws `payload-invalid` if a direct call names a model, a channel or an endpoint that cannot be used. The message quotes nothing of the request. */
export function requireUsable(planned: PlannedAction, config: PlanSettings): void {
  if (planned.kind !== 'agent') return
  const { agentId, action } = planned
  const why = action.model === undefined ? undefined : findModelFault(action.model, agentId, config)
  if (why === 'name') {
    throw new Problem('payload-invalid', 'model: expected an alias of models.aliases or <provider>/<model>.')
  }
  if (why === 'provider') {
    throw new Problem(
      'payload-invalid',
      'model: its provider is not in models.providers. Name a configured one, or leave the field out.',
    )
  }
  const { channel, to, deliver } = action
  if (!deliver || isForwarded(agentId, config)) return
  if (isChannelConfigured(channel, config)) {
    if (channel !== 'webhook' || to === undefined || readEndpoints(config.channels).has(to)) return
    throw new Problem(
      'payload-invalid',
      'to: this recipient is not a name in channels.webhook.endpoints. Name one of them, or leave the field out.',
    )
  }
  const key = isOwnChannel(channel) ? 'it' : toChannelKey(channel)
  throw new Problem(
    'payload-invalid',
    `channel: this channel is not configured. Name another one, leave the field out, or ask the operator to set ${key}.`,
  )
}

function resolveAgent(action: AgentAction, config: PlanSettings): string {
  const fallback = findDefaultAgentId(config)
  if (action.agentId === undefined) return fallback
  const named = action.agentId.trim()
  if (!isAgentAllowed(named, config.hooks.allowedAgentIds)) {
    throw new Problem(
      'agent-denied',
      'agentId: this agent is not in hooks.allowedAgentIds. Name one of that list, or leave the field out.',
    )
  }
  return named === fallback || config.agents.list.some((agent) => agent.id === named) ? named : fallback
}

/** The model, with its alias resolved; undefined if the action names none. */
function resolveModel(action: AgentAction, config: PlanSettings): string | undefined {
  if (action.model === undefined) return undefined
  if (!isModelAllowed(action.model, config)) {
    throw new Problem(
      'model-denied',
      'model: this model is not in agents.defaults.models. Name one of that list, or leave the field out.',
    )
  }
  return resolveModelName(action.model, config.models.aliases)
}

function resolveSession(
  action: AgentAction,
  config: PlanSettings,
  { keyOrigin, newId }: PolicyInput,
): { sessionKey: string; sharesSession: boolean; isKeyChosen: boolean } {
  const { hooks } = config
  if (action.sessionKey !== undefined) {
    const sessionKey = action.sessionKey.trim()
    if (keyOrigin === 'request' && !hooks.allowRequestSessionKey) {
      throw new Problem(
        'session-key-denied',
        'sessionKey: a request must not choose its session key. Leave the field out, or ask the operator to set hooks.allowRequestSessionKey.',
      )
    }
    // keys are printed, logged and compared: a line break in one is an attack
    if (!isPlainSessionKey(sessionKey)) {
      throw new Problem('session-key-denied', 'sessionKey: expected at most 512 characters and no control characters.')
    }
    if (!isSessionKeyAllowed(sessionKey, hooks.allowedSessionKeyPrefixes, keyOrigin)) {
      const rule =
        sessionKey === mainSessionKey
          ? '"main" is the main session, and hooks.allowedSessionKeyPrefixes does not list it'
          : 'it must begin with one of hooks.allowedSessionKeyPrefixes'
      throw new Problem('session-key-denied', `sessionKey: ${rule}. Change it, or leave the field out.`, {
        frame: `sessionKey: ${quoteKey(sessionKey)}\nallowed beginnings: ${formatPrefixes(hooks.allowedSessionKeyPrefixes)}`,
      })
    }
    return { sessionKey, sharesSession: false, isKeyChosen: true }
  }
  const { defaultSessionKey } = hooks
  if (defaultSessionKey !== undefined) return { sessionKey: defaultSessionKey, sharesSession: true, isKeyChosen: false }
  return { sessionKey: `hook:${newId()}`, sharesSession: false, isKeyChosen: false }
}

function quoteKey(key: string): string {
  return JSON.stringify(cut(key, 100))
}

function formatPrefixes(prefixes: readonly string[] = []): string {
  return prefixes.map((prefix) => JSON.stringify(prefix)).join(', ')
}
