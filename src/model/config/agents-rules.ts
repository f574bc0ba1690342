// Rules across `agents`, `models`, `runners` and `channels`: every name must refer to something that exists.
import { type ChannelName, isOwnChannel } from '../../core/model/action.ts'
import { listChannelIds } from './channels.ts'
import type { Config } from './config.ts'
import {
  type ConfigIssue,
  type ConfigPath,
  findDuplicateIssues,
  toIssue,
  toDottedPath,
} from '../../core/model/issue.ts'
import { findNearest } from '../../base/text.ts'
import type { ModelConfig } from '../prices.ts'
import { isModelName, resolveModelName } from './permission.ts'
import { findChannelFault, isChannelConfigured, readProviderName } from './plan-settings.ts'

/** Runners that need no section in the configuration. */
export const builtInRunners = ['ai', 'claude', 'codex', 'echo'] as const

export function findAgentIssues(config: Config): ConfigIssue[] {
  const { agents } = config
  const defaults = agents.list.flatMap((agent, index) => (agent.default ? [index] : []))
  return [
    ...findDuplicateIssues(
      agents.list.map((agent) => agent.id),
      (index) => ['agents', 'list', index, 'id'],
    ),
    ...defaults
      .slice(1)
      .map((index) =>
        toIssue(
          ['agents', 'list', index, 'default'],
          `is true, and so is agents.list[${defaults[0]}].default. Only one agent can be the default.`,
        ),
      ),
    ...findRunnerIssues(agents.defaults, config, ['agents', 'defaults']),
    ...agents.list.flatMap((agent, index) => findRunnerIssues(agent, config, ['agents', 'list', index])),
    ...(agents.defaults.models ?? []).flatMap((model, index) =>
      findAllowedModelIssues(model, config, ['agents', 'defaults', 'models', index]),
    ),
    ...findProviderIssues(config),
    ...findRunnerSectionIssues(config),
    ...findRouteIssues(config),
  ]
}

/** Checks the runner and the models of an agent, or of `agents.defaults`. */
function findRunnerIssues(
  { model, modelFallbacks = [], runner }: Pick<Config['agents']['defaults'], 'model' | 'modelFallbacks' | 'runner'>,
  config: Config,
  at: ConfigPath,
): ConfigIssue[] {
  const { runners } = config
  const issues: ConfigIssue[] = []
  const known = [...builtInRunners, ...Object.keys(runners)]
  if (runner !== undefined && !known.includes(runner)) {
    issues.push(
      toIssue(
        [...at, 'runner'],
        `names the runner "${runner}", which does not exist. ${describeAlternatives(runner, known)}`,
        ['runners', runner],
      ),
    )
  }
  if ((runner ?? config.agents.defaults.runner ?? 'ai') !== 'ai') return issues
  return [
    ...issues,
    ...(model === undefined ? [] : findModelNameIssues(model, config, [...at, 'model'])),
    ...modelFallbacks.flatMap((name, index) => findModelNameIssues(name, config, [...at, 'modelFallbacks', index])),
  ]
}

/** Reports a model, or an alias of a model, without a configured provider. */
export function findModelNameIssues(model: string, { models }: Config, at: ConfigPath): ConfigIssue[] {
  const name = resolveModelName(model, models.aliases)
  if (!isModelName(name)) {
    const aliases = Object.keys(models.aliases)
    return [
      toIssue(
        at,
        `must be <provider>/<model> or an alias, found "${model}". ${describeAlternatives(model, aliases)}`.trimEnd(),
      ),
    ]
  }
  const provider = readProviderName(name)
  if (Object.hasOwn(models.providers, provider)) return []
  const near = findNearest(provider, Object.keys(models.providers))
  const next = near === undefined ? `Add models.providers.${provider}.` : `Did you mean "${near}"?`
  return [
    toIssue(at, `names the provider "${provider}", which is not in models.providers. ${next}`, [
      'models',
      'providers',
      provider,
    ]),
  ]
}

/** The entry of a model in `models.providers`. `nameOrAlias`: `<provider>/<model>` or an alias. */
export function findModelConfig(
  nameOrAlias: string | undefined,
  { providers, aliases }: Config['models'],
): ModelConfig | undefined {
  const name = resolveModelName(nameOrAlias ?? '', aliases)
  const provider = readProviderName(name)
  if (!Object.hasOwn(providers, provider)) return undefined
  return providers[provider]?.models.find(({ id }) => id === name.slice(provider.length + 1))
}

/**
 * Reports a model of the configuration, such as an allowed model or the target of an alias, without a configured provider. Reports nothing if no
 * provider or another runner than `ai` is configured: a command has its own model names.
 */
export function findAllowedModelIssues(model: string | undefined, config: Config, at: ConfigPath): ConfigIssue[] {
  const { agents, models } = config
  const runners = [agents.defaults, ...agents.list].map(({ runner = 'ai' }) => runner)
  const isChecked = Object.keys(models.providers).length > 0 && runners.every((runner) => runner === 'ai')
  return model === undefined || !isChecked ? [] : findModelNameIssues(model, config, at)
}

function describeAlternatives(word: string, known: readonly string[]): string {
  const near = findNearest(word, known)
  if (near !== undefined) return `Did you mean "${near}"?`
  return known.length === 0 ? '' : `Known: ${known.join(', ')}.`
}

function findProviderIssues({ models }: Config): ConfigIssue[] {
  return Object.entries(models.providers).flatMap(([name, { kind, baseUrl }]) =>
    kind === 'openai-compatible' && baseUrl === undefined
      ? [
          toIssue(
            ['models', 'providers', name, 'baseUrl'],
            'is required for openai-compatible, such as http://127.0.0.1:11434/v1.',
          ),
        ]
      : [],
  )
}

function findRunnerSectionIssues({ runners }: Config): ConfigIssue[] {
  return Object.entries(runners).flatMap(([name, runner]) => {
    if (name === 'ai' || name === 'echo')
      return [toIssue(['runners', name], 'is built in. Give this runner another name.')]
    const isBare = runner.kind === 'command' && runner['profile'] === undefined && runner['command'] === undefined
    return isBare ? [toIssue(['runners', name, 'command'], 'is required without a profile.')] : []
  })
}

function findRouteIssues(config: Config): ConfigIssue[] {
  const named: readonly [ChannelName | undefined, ConfigPath][] = [
    [config.channels.default?.channel, ['channels', 'default', 'channel']],
    [config.hooks.alerts?.channel, ['hooks', 'alerts', 'channel']],
  ]
  return named.flatMap(([name, at]) => [
    ...findUnknownChannelIssues(name, config, at),
    ...findChannelIssues(name, config, at),
  ])
}

/** The channels that have a section, and those in code. */
export function listChannelNames({ channels }: Config): readonly string[] {
  const { default: _, retry: __, own, ...sections } = channels
  return [...Object.keys(sections), ...Object.keys(own).map((name) => `own:${name}`)]
}

/** Whether no channel has a section or is in code, and `channels.default` does not name the console. Then replies cannot be delivered. */
export function hasNoChannel(config: Config): boolean {
  const { default: route } = config.channels
  return listChannelNames(config).length === 0 && (route === undefined || route.channel === 'last')
}

export const noChannelWarning =
  'no channel is configured: replies are kept and not sent. Set channels.default and the section of its channel.'

/** Reports a name that no channel has. */
export function findUnknownChannelIssues(name: ChannelName | undefined, config: Config, at: ConfigPath): ConfigIssue[] {
  const fault = name === undefined ? undefined : findChannelFault(name, config)
  if (name === undefined || fault === undefined) return []
  // a text that is not similar to a name may be a secret in the wrong place
  const near = findNearest(name, listChannelIds(config.channels) ?? [])
  const found =
    near === undefined
      ? fault
      : fault.replace(/found a string$/, `found ${JSON.stringify(name)}. Did you mean "${near}"?`)
  return [{ path: at, text: `${toDottedPath(at)}: ${found}` }]
}

/** Reports a channel that has no section. */
export function findChannelIssues(name: ChannelName | undefined, config: Config, at: ConfigPath): ConfigIssue[] {
  if (name === undefined || isChannelConfigured(name, config) || findChannelFault(name, config) !== undefined) return []
  const missingPath = isOwnChannel(name) ? ['channels', 'own', name.slice('own:'.length)] : ['channels', name]
  return [toIssue(at, `is "${name}", and ${missingPath.join('.')} is not set. Set it.`, missingPath)]
}
