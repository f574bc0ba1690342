// Rules of a configuration beyond the types of its keys. Pure: templates, presets and modules are checked where they are loaded.
import { toAgentIssues, toChannelIssues, toModelNameIssues, toOfferedModelIssues } from './agents-rules.ts'
import { nearestOf } from '../base/text.ts'
import { isOwnChannel } from './action.ts'
import { type Config, toHookTokens } from './config.ts'
import { type ConfigIssue, type ConfigPath, toDuplicates, toIssue } from './issue.ts'
import type { Mapping } from './mapping.ts'
import { toConditionIssues, toHookName, toKeyUseIssues } from './mapping-rules.ts'
import {
  isAgentAllowed,
  isBeginningAllowed,
  isModelAllowed,
  isPlainSessionKey,
  isSessionKeyAllowed,
} from './permission.ts'

const builtInHooks = ['wake', 'agent']

export function toConfigIssues(config: Config): ConfigIssue[] {
  return [
    ...toTokenIssues(config),
    ...toDefaultKeyIssues(config),
    ...toAgentIssues(config),
    ...toAliasIssues(config),
    ...toDuplicates(
      config.hooks.mappings.map((mapping) => mapping.id),
      (index) => ['hooks', 'mappings', index, 'id'],
    ),
    ...config.hooks.mappings.flatMap((mapping, index) =>
      toMappingIssues(mapping, config, ['hooks', 'mappings', index]),
    ),
    ...toModelIssues(config.hooks.gmail?.model, config, ['hooks', 'gmail', 'model']),
  ]
}

/** The rules of one mapping, of `hooks.mappings` or of a preset. `at` is its path. */
export function toMappingIssues(mapping: Mapping, config: Config, at: ConfigPath): ConfigIssue[] {
  const { hooks } = config
  const issues: ConfigIssue[] = []
  const hook = toHookName(mapping.match.path ?? '')
  if (builtInHooks.includes(hook)) {
    issues.push(
      toIssue(
        [...at, 'match', 'path'],
        `is the built-in hook "${hook}", which no mapping overrides. Give it another name.`,
      ),
    )
  }
  issues.push(...toConditionIssues(mapping, hooks.path, at), ...toKeyUseIssues(mapping, at))
  issues.push(...toKeyIssues(mapping.sessionKey, config, [...at, 'sessionKey']))
  const hasKey = mapping.sessionKey !== undefined || hooks.defaultSessionKey !== undefined
  if (
    mapping.action === 'agent' &&
    mapping.sessionMode === 'persistent' &&
    !hasKey &&
    mapping.transform === undefined
  ) {
    issues.push(
      toIssue(
        [...at, 'sessionMode'],
        'is "persistent" but no session is named. Set sessionKey or hooks.defaultSessionKey.',
      ),
    )
  }
  if (mapping.agentId !== undefined && !isAgentAllowed(mapping.agentId.trim(), hooks.allowedAgentIds)) {
    issues.push(
      toIssue([...at, 'agentId'], 'is not in hooks.allowedAgentIds, so every delivery would be refused. Add it there.'),
    )
  }
  return [...issues, ...toModelIssues(mapping.model, config, [...at, 'model']), ...toReplyIssues(mapping, config, at)]
}

/** A channel that no reply could reach. A transform may still choose another one. */
function toReplyIssues(mapping: Mapping, config: Config, at: ConfigPath): ConfigIssue[] {
  const isSent = mapping.action === 'agent' && mapping.deliver && mapping.transform === undefined
  return isSent ? toChannelIssues(mapping.channel, config, [...at, 'channel']) : []
}

function toTokenIssues({ hooks, gateway }: Config): ConfigIssue[] {
  if (hooks.token !== undefined && hooks.tokens !== undefined) {
    return [toIssue(['hooks', 'tokens'], 'and hooks.token are both set. Remove one of them.')]
  }
  const tokens = toHookTokens(hooks)
  if (tokens.length === 0) {
    if (!hooks.enabled) return []
    return [
      toIssue(
        ['hooks', 'token'],
        'is required when hooks.enabled is true. Set it to "${HOOKLOOM_TOKEN}" and put the value into .env.',
      ),
    ]
  }
  return tokens.flatMap((given, index) => {
    const at = hooks.tokens === undefined ? ['hooks', 'token'] : ['hooks', 'tokens', index]
    const token = given.trim()
    const issues: ConfigIssue[] = []
    if (token === gateway.token?.trim()) {
      const make = 'Make one with: openssl rand -hex 32'
      issues.push(toIssue(at, `must differ from gateway.token, found the same value. ${make}`))
    }
    // a header cannot carry anything else, so every request would be refused
    if (!/^[\x20-\x7e]+$/.test(token) || token !== given) {
      issues.push(toIssue(at, 'must be ASCII without spaces around it, because a header carries it.'))
    }
    return issues
  })
}

function toDefaultKeyIssues(config: Config): ConfigIssue[] {
  const key = config.hooks.defaultSessionKey
  const at = ['hooks', 'defaultSessionKey']
  if (key?.includes('{{') === true) return [toIssue(at, 'must be a fixed key, found a template.')]
  return toKeyIssues(key, config, at)
}

/** Checks a fixed key. Of a template, only the fixed text at its beginning is checked. */
function toKeyIssues(key: string | undefined, { hooks }: Config, at: ConfigPath): ConfigIssue[] {
  if (key === undefined) return []
  const [beginning = '', ...rest] = key.trimStart().split('{{')
  const isTemplate = rest.length > 0
  if (!isTemplate && !isPlainSessionKey(key)) {
    return [toIssue(at, 'must have at most 512 characters and no control characters.')]
  }
  if (isTemplate && beginning === '') {
    if (hooks.allowRequestSessionKey) return []
    return [toIssue(at, 'must begin with literal text, such as "hook:", or the sender chooses the whole key.')]
  }
  const prefixes = hooks.allowedSessionKeyPrefixes
  if (isTemplate ? isBeginningAllowed(beginning, prefixes) : isSessionKeyAllowed(key.trim(), prefixes)) return []
  const listed = (prefixes ?? []).map((prefix) => JSON.stringify(prefix)).join(', ')
  return [toIssue(at, `must begin with one of hooks.allowedSessionKeyPrefixes (${listed}).`)]
}

function toModelIssues(model: string | undefined, config: Config, at: ConfigPath): ConfigIssue[] {
  if (model === undefined) return []
  if (isModelAllowed(model, config)) return toOfferedModelIssues(model, config, at)
  return [toIssue(at, 'is not in agents.defaults.models, so every delivery would be refused. Add it there.')]
}

function toAliasIssues(config: Config): ConfigIssue[] {
  const { models } = config
  return Object.entries(models.aliases).flatMap(([alias, model]) => {
    const at = ['models', 'aliases', alias]
    if (Object.hasOwn(models.aliases, model.trim())) {
      return [toIssue(at, 'names an alias. Name the model itself, as <provider>/<model>.')]
    }
    if (!/^[^/\s]+\/\S+$/.test(model)) return [toIssue(at, 'must be <provider>/<model>.')]
    return alias.includes('/') || alias.trim() === '' || alias !== alias.trim()
      ? [toIssue(at, 'must have a short name: not blank, without "/" and without spaces around it.')]
      : toOfferedModelIssues(model, config, at)
  })
}

/**
 * Names in a valid configuration that lead nowhere, though a request, a transform or an earlier delivery may still choose others; and
 * mappings that no request reaches.
 */
export function toConfigWarnings(config: Config): ConfigIssue[] {
  const { hooks } = config
  const at = (index: number): ConfigPath => ['hooks', 'mappings', index]
  return [
    ...(hooks.allowedAgentIds ?? []).flatMap((id, index) =>
      id === '*' ? [] : toAgentIdIssues(id, config, ['hooks', 'allowedAgentIds', index]),
    ),
    ...hooks.mappings.flatMap((mapping, index) => [
      ...toAgentIdIssues(mapping.agentId, config, [...at(index), 'agentId']),
      ...toUnaskedModelIssues(mapping, config, [...at(index), 'model']),
      ...(mapping.transform === undefined ? [] : toChannelIssues(mapping.channel, config, [...at(index), 'channel'])),
      ...toShadowIssues(mapping, hooks.mappings.slice(0, index), at(index)),
    ]),
    ...toRecipientIssues(config),
  ]
}

function toAgentIdIssues(id: string | undefined, { agents }: Config, at: ConfigPath): ConfigIssue[] {
  const known = agents.list.length === 0 ? ['main'] : agents.list.map((agent) => agent.id)
  if (id === undefined || known.includes(id.trim())) return []
  const near = nearestOf(id, known)
  const next = near === undefined ? 'Add it to agents.list.' : `Did you mean "${near}"?`
  return [toIssue(at, `is "${id}", which is not in agents.list: it runs with agents.defaults. ${next}`)]
}

/** A model whose provider is not configured, of a mapping whose agent has the runner ai. What is an error already is left out. */
function toUnaskedModelIssues({ model, agentId }: Mapping, config: Config, at: ConfigPath): ConfigIssue[] {
  const { agents } = config
  const own = agents.list.find(({ id }) => id === agentId)
  if (model === undefined || (own?.runner ?? agents.defaults.runner ?? 'ai') !== 'ai') return []
  return toOfferedModelIssues(model, config, at).length > 0 ? [] : toModelNameIssues(model, config, at)
}

/** Channels that need no recipient, or have it from elsewhere. */
const withoutRecipient = ['last', 'console', 'webhook']

function toRecipientIssues({ channels }: Config): ConfigIssue[] {
  const { default: route } = channels
  if (route === undefined || route.to !== undefined || withoutRecipient.includes(route.channel)) return []
  const section: unknown = Reflect.get(channels, route.channel)
  const isOwn = isOwnChannel(route.channel)
  if (isOwn || typeof section !== 'object' || section === null || Reflect.get(section, 'to') !== undefined) return []
  const next = `Set channels.default.to, or channels.${route.channel}.to.`
  return [
    toIssue(
      ['channels', 'default'],
      `has no recipient: only a reply that names one, or follows one, can be sent. ${next}`,
    ),
  ]
}

function toShadowIssues(mapping: Mapping, earlier: readonly Mapping[], at: ConfigPath): ConfigIssue[] {
  const index = earlier.findIndex((other) => isShadowed(mapping, other))
  if (index < 0) return []
  return [
    toIssue(
      at,
      `is never reached: hooks.mappings[${index}] takes every request that it matches. Move it before that one.`,
    ),
  ]
}

/** Whether the other one takes whatever this one matches: it is opened by the same proof, and each of its conditions is here too. */
function isShadowed({ match, verify }: Mapping, other: Mapping): boolean {
  if (JSON.stringify(verify) !== JSON.stringify(other.verify)) return false
  const [mine, theirs] = [match, other.match]
  const isPath = theirs.path === undefined || toHookName(theirs.path) === toHookName(mine.path ?? '')
  return (
    isPath &&
    isNarrower(mine.source, theirs.source) &&
    isNarrower(mine.event, theirs.event) &&
    isNarrowerRecord(mine.headers, theirs.headers) &&
    isNarrowerRecord(mine.payload, theirs.payload)
  )
}

/** Whether each value that the first allows is allowed by the second. Undefined allows any. */
function isNarrower(mine: unknown, theirs: unknown): boolean {
  if (theirs === undefined) return true
  if (mine === undefined) return false
  const allowed = [theirs].flat()
  return [mine].flat().every((value) => allowed.includes(value))
}

function isNarrowerRecord(mine: object = {}, theirs: object = {}): boolean {
  return Object.entries(theirs).every(([key, value]) => isNarrower(Reflect.get(mine, key), value))
}
