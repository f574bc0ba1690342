// What the mapping engine reads of a configuration, and what it looks up there. The rules of the configuration look up the same.
import { type ChannelName, isOwnChannel } from '../../core/model/action.ts'
import { type ChannelsConfig, findChannelSection, listChannelIds } from './channels.ts'
import type { Flow, SharedLimits } from '../../core/model/flow.ts'
import type { JobKeys } from '../../core/model/job-keys.ts'
import { isModelName, resolveModelName } from './permission.ts'
import type { TokensConfig } from './tokens.ts'

type AgentSettings = {
  readonly model?: string | undefined
  readonly runner?: string | undefined
  readonly limits?: readonly string[] | undefined
}

/** Its keys have the same names and meanings as in `hookloom.jsonc`. */
export type PlanSettings = {
  readonly server: { readonly maxBodyBytes: number }
  readonly hooks: {
    readonly token?: string | undefined
    readonly tokens?: readonly string[] | undefined
    readonly allowRequestSessionKey: boolean
    readonly defaultSessionKey?: string | undefined
    readonly allowedSessionKeyPrefixes?: readonly string[] | undefined
    readonly allowedAgentIds?: readonly string[] | undefined
    readonly agent: Pick<JobKeys, 'instructions' | 'result'> & {
      readonly allowUnsafeExternalContent: boolean
      readonly flow?: Omit<Flow, 'cancelOn'> | undefined
    }
  }
  readonly tokens: TokensConfig
  readonly limits: SharedLimits
  readonly agents: {
    readonly defaults: AgentSettings & { readonly models?: readonly string[] | undefined }
    readonly list: readonly (AgentSettings & { readonly id: string; readonly default: boolean })[]
  }
  readonly models: {
    readonly aliases: Readonly<Record<string, string>>
    readonly providers: Readonly<Record<string, object>>
  }
  readonly runners: Readonly<Record<string, { readonly kind: string }>>
  readonly channels: ChannelsConfig
}

/** The valid hook tokens; commands send the first one. */
export function listHookTokens({ token, tokens }: Pick<PlanSettings['hooks'], 'token' | 'tokens'>): readonly string[] {
  return tokens ?? (token === undefined ? [] : [token])
}

/** The agent of runs that name no agent: the agent with `default`, or the first agent, or `main`. */
export function findDefaultAgentId({ agents: { list } }: Pick<PlanSettings, 'agents'>): string {
  return (list.find((agent) => agent.default) ?? list[0])?.id ?? 'main'
}

export function readProviderName(model: string): string {
  return model.slice(0, model.indexOf('/'))
}

/** The runner of an agent's turns. If neither a runner nor a model is configured, it is `echo`, which calls no model. */
export function chooseRunner({ agents: { defaults, list } }: Pick<PlanSettings, 'agents'>, agentId: string): string {
  const own = list.find(({ id }) => id === agentId)
  const model = own?.model ?? defaults.model
  return own?.runner ?? defaults.runner ?? (model === undefined ? 'echo' : 'ai')
}

/**
 * Why no turn of an agent can use a model. Undefined if a turn can, and for commands and OpenClaw, which have their own model names. The runner
 * `echo` calls no model, so for it a missing provider is a fault only if other providers are configured.
 */
export function findModelFault(model: string, agentId: string, config: PlanSettings): 'name' | 'provider' | undefined {
  const runner = chooseRunner(config, agentId)
  if (runner !== 'ai' && runner !== 'echo') return undefined
  const { aliases, providers } = config.models
  const name = resolveModelName(model, aliases)
  if (!isModelName(name)) return 'name'
  if (runner === 'echo' && Object.keys(providers).length === 0) return undefined
  return Object.hasOwn(providers, readProviderName(name)) ? undefined : 'provider'
}

/** Whether another gateway runs the turns of an agent and delivers the replies through its own channels. */
export function isForwarded(agentId: string, config: PlanSettings): boolean {
  const runner = chooseRunner(config, agentId)
  return Object.hasOwn(config.runners, runner) && config.runners[runner]?.kind === 'openclaw'
}

/** Whether a channel has a section, or needs none. */
export function isChannelConfigured(name: ChannelName, { channels }: Pick<PlanSettings, 'channels'>): boolean {
  if (name === 'last' || name === 'console') return true
  return findChannelSection(channels, name) !== undefined
}

/** Why there is no such channel, as the end of a sentence; undefined if there is one, with a section or without. */
export function findChannelFault(name: ChannelName, config: Pick<PlanSettings, 'channels'>): string | undefined {
  // asked for each action, so the list is made only for a name that has no section
  if (isOwnChannel(name) || isChannelConfigured(name, config)) return undefined
  const names = listChannelIds(config.channels)
  if (names === undefined || names.includes(name)) return undefined
  return `expected one of ${names.map((known) => `"${known}"`).join(', ')}, found a string`
}

/** Whether `agents.defaults.models` lists the model. The list and the model may use aliases. Without a list, any model is allowed. */
export function isModelAllowed(
  nameOrAlias: string,
  { agents, models }: Pick<PlanSettings, 'agents' | 'models'>,
): boolean {
  const allowed = agents.defaults.models
  if (allowed === undefined) return true
  const model = resolveModelName(nameOrAlias, models.aliases)
  return allowed.some((name) => resolveModelName(name, models.aliases) === model)
}
