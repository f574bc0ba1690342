// Rules across `agents`, `models`, `runners` and `channels`: every name must refer to something that exists.
import { type ChannelName, isOwnChannel } from './action.ts'
import type { Config } from './config.ts'
import { type ConfigIssue, type ConfigPath, toDuplicates, toIssue } from './issue.ts'
import { nearestOf } from '../base/text.ts'
import { toModelName } from './permission.ts'

/** Runners that need no section in the configuration. */
export const builtInRunners = ['ai', 'claude', 'codex', 'echo'] as const

export function toAgentIssues(config: Config): ConfigIssue[] {
  const { agents } = config
  const defaults = agents.list.flatMap((agent, index) => (agent.default ? [index] : []))
  return [
    ...toDuplicates(
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
    ...toPerformerIssues(agents.defaults, config, ['agents', 'defaults']),
    ...agents.list.flatMap((agent, index) => toPerformerIssues(agent, config, ['agents', 'list', index])),
    ...(agents.defaults.models ?? []).flatMap((model, index) =>
      toOfferedModelIssues(model, config, ['agents', 'defaults', 'models', index]),
    ),
    ...toProviderIssues(config),
    ...toRunnerIssues(config),
    ...toRouteIssues(config),
  ]
}

/** The runner and the model of an agent, or of all. */
function toPerformerIssues(
  { model, runner }: Pick<Config['agents']['defaults'], 'model' | 'runner'>,
  config: Config,
  at: ConfigPath,
): ConfigIssue[] {
  const { runners } = config
  const issues: ConfigIssue[] = []
  const known = [...builtInRunners, ...Object.keys(runners)]
  if (runner !== undefined && !known.includes(runner)) {
    issues.push(
      toIssue([...at, 'runner'], `names the runner "${runner}", which does not exist. ${toHint(runner, known)}`, [
        'runners',
        runner,
      ]),
    )
  }
  if (model === undefined || (runner ?? config.agents.defaults.runner ?? 'ai') !== 'ai') return issues
  return [...issues, ...toModelNameIssues(model, config, [...at, 'model'])]
}

/** A model, or an alias of one, without a configured provider. */
export function toModelNameIssues(model: string, { models }: Config, at: ConfigPath): ConfigIssue[] {
  const [provider = '', ...rest] = toModelName(model, models.aliases).split('/')
  if (rest.join('/').trim() === '') {
    const aliases = Object.keys(models.aliases)
    return [
      toIssue(at, `must be <provider>/<model> or an alias, found "${model}". ${toHint(model, aliases)}`.trimEnd()),
    ]
  }
  if (Object.hasOwn(models.providers, provider)) return []
  const near = nearestOf(provider, Object.keys(models.providers))
  const next = near === undefined ? `Add models.providers.${provider}.` : `Did you mean "${near}"?`
  return [
    toIssue(at, `names the provider "${provider}", which is not in models.providers. ${next}`, [
      'models',
      'providers',
      provider,
    ]),
  ]
}

/**
 * The models that a hook may name: aliases, the allowed models, the model of a mapping. Only checked if `ai` performs every
 * turn: a command has its own model names, and `echo` asks no model.
 */
export function toOfferedModelIssues(model: string | undefined, config: Config, at: ConfigPath): ConfigIssue[] {
  const { agents, models } = config
  const runners = [agents.defaults, ...agents.list].map(({ runner = 'ai' }) => runner)
  const isAsked = Object.keys(models.providers).length > 0 && runners.every((runner) => runner === 'ai')
  return model === undefined || !isAsked ? [] : toModelNameIssues(model, config, at)
}

function toHint(word: string, known: readonly string[]): string {
  const near = nearestOf(word, known)
  if (near !== undefined) return `Did you mean "${near}"?`
  return known.length === 0 ? '' : `Known: ${known.join(', ')}.`
}

function toProviderIssues({ models }: Config): ConfigIssue[] {
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

function toRunnerIssues({ runners }: Config): ConfigIssue[] {
  return Object.entries(runners).flatMap(([name, runner]) => {
    if (name === 'ai' || name === 'echo')
      return [toIssue(['runners', name], 'is built in. Give this runner another name.')]
    const isBare = runner.kind === 'command' && runner.profile === undefined && runner.command === undefined
    return isBare ? [toIssue(['runners', name, 'command'], 'is required without a profile.')] : []
  })
}

function toRouteIssues(config: Config): ConfigIssue[] {
  return [
    ...toChannelIssues(config.channels.default?.channel, config, ['channels', 'default', 'channel']),
    ...toChannelIssues(config.hooks.alerts?.channel, config, ['hooks', 'alerts', 'channel']),
  ]
}

/** A channel that has no section. */
export function toChannelIssues(name: ChannelName | undefined, { channels }: Config, at: ConfigPath): ConfigIssue[] {
  if (name === undefined || name === 'last' || name === 'console') return []
  const own = isOwnChannel(name) ? name.slice('own:'.length) : undefined
  const isSet = own === undefined ? Reflect.get(channels, name) !== undefined : Object.hasOwn(channels.own, own)
  if (isSet) return []
  const missed = own === undefined ? ['channels', name] : ['channels', 'own', own]
  return [toIssue(at, `is "${name}", and ${missed.join('.')} is not set. Set it.`, missed)]
}
