// Reports parts of a valid configuration that have no effect or refer to nothing. These warnings do not stop a gateway.
import { isJsonObject, isSameJson } from '../../base/json.ts'
import { findNearest } from '../../base/text.ts'
import { findChannelIssues, findModelNameIssues } from './agents-rules.ts'
import { findBudgetWarnings } from './budget-rules.ts'
import { findChannelSection, listKnownChannels } from './channels.ts'
import type { Config } from './config.ts'
import { type ConfigIssue, type ConfigPath, toIssue } from '../../core/model/issue.ts'
import { findMappingAgentId } from './rules.ts'
import type { Mapping } from '../../core/model/mapping.ts'
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import { isForwarded, findModelFault } from './plan-settings.ts'

/** An unknown name is a warning, not an error: a request or a transform may still choose another one. */
export function findConfigWarnings(config: Config): ConfigIssue[] {
  const { hooks } = config
  const at = (index: number): ConfigPath => ['hooks', 'mappings', index]
  const findShadowIssues = createShadowCheck()
  return [
    ...(hooks.allowedAgentIds ?? []).flatMap((id, index) =>
      id === '*' ? [] : findAgentIdIssues(id, config, ['hooks', 'allowedAgentIds', index]),
    ),
    ...hooks.mappings.flatMap((mapping, index) => [
      ...findAgentIdIssues(mapping.agentId, config, [...at(index), 'agentId']),
      ...findUnknownProviderIssues(mapping, config, [...at(index), 'model']),
      ...(mapping.transform === undefined || isForwarded(findMappingAgentId(mapping, config), config)
        ? []
        : findChannelIssues(mapping.channel, config, [...at(index), 'channel'])),
      ...findShadowIssues(mapping, index, at(index)),
    ]),
    ...findRecipientIssues(config),
    ...findBudgetWarnings(config),
  ]
}

function findAgentIdIssues(id: string | undefined, { agents }: Config, at: ConfigPath): ConfigIssue[] {
  const known = agents.list.length === 0 ? ['main'] : agents.list.map((agent) => agent.id)
  if (id === undefined || known.includes(id.trim())) return []
  const near = findNearest(id, known)
  const next = near === undefined ? 'Add it to agents.list.' : `Did you mean "${near}"?`
  return [toIssue(at, `is "${id}", which is not in agents.list: it runs with agents.defaults. ${next}`)]
}

/** Reports a model without a configured provider, unless the agent has another runner than `ai`, or the model is already reported as an error. */
function findUnknownProviderIssues({ model, agentId: named }: Mapping, config: Config, at: ConfigPath): ConfigIssue[] {
  const { agents } = config
  const agentId = findMappingAgentId({ agentId: named }, config)
  const own = agents.list.find(({ id }) => id === agentId)
  if (model === undefined || (own?.runner ?? agents.defaults.runner ?? 'ai') !== 'ai') return []
  return findModelFault(model, agentId, config) === undefined ? findModelNameIssues(model, config, at) : []
}

function findRecipientIssues({ channels }: Config): ConfigIssue[] {
  const { default: route } = channels
  if (route === undefined || route.to !== undefined) return []
  const channel = listKnownChannels(channels)?.find(({ name }) => name === route.channel)
  const section = findChannelSection(channels, route.channel)
  if (channel === undefined || channel.findsRecipient || section === undefined || 'to' in section) return []
  const next = `Set channels.default.to, or channels.${route.channel}.to.`
  return [toIssue(['channels', 'default'], `has no recipient. Replies that name no recipient cannot be sent. ${next}`)]
}

/** Returns a function that is called with each mapping in order. Mappings are compared only with those of the same name, because there may be thousands. */
function createShadowCheck() {
  const known = new Map<string | undefined, { readonly mapping: Mapping; readonly index: number }[]>()
  return (mapping: Mapping, index: number, at: ConfigPath): ConfigIssue[] => {
    const { path } = mapping.match
    const name = path === undefined ? undefined : normalizeHookName(path)
    const earlier = [undefined, name ?? ''].flatMap((key) => known.get(key) ?? [])
    const first = Math.min(...earlier.filter((other) => isShadowed(mapping, other.mapping)).map((other) => other.index))
    const same = known.get(name) ?? []
    same.push({ mapping, index })
    known.set(name, same)
    if (first === Infinity) return []
    return [
      toIssue(
        at,
        `is never reached: hooks.mappings[${first}] takes every request that it matches. Move it before that one.`,
      ),
    ]
  }
}

/**
 * Whether the other mapping, of the same name or for every name, matches all requests of this one: it accepts the same proof and at least the same bodies, and each of its conditions is
 * also a condition of this mapping.
 */
function isShadowed({ match, verify, accept = [] }: Mapping, other: Mapping): boolean {
  if (!isSameJson(verify, other.verify)) return false
  return (
    accept.every((syntax) => other.accept?.includes(syntax)) &&
    (['source', 'event', 'any'] as const).every((name) => isNarrower(match[name], other.match[name])) &&
    (['headers', 'payload'] as const).every((name) => {
      const own = new Map(Object.entries(match[name] ?? {}))
      return Object.entries(other.match[name] ?? {}).every(([key, value]) => isNarrower(own.get(key), value))
    })
  )
}

/** Whether `theirs`, a value, a list or a test, allows everything that `mine` allows. Two tests, or two lists of alternatives, must be equal. */
function isNarrower(mine: unknown, theirs: unknown): boolean {
  if (theirs === undefined) return true
  if (mine === undefined) return false
  if ([mine, theirs].flat().some(isJsonObject)) return JSON.stringify(mine) === JSON.stringify(theirs)
  const allowed = [theirs].flat()
  return [mine].flat().every((value) => allowed.includes(value))
}
