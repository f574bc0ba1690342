// Builds the configured runners and channels of a configuration once, and a built-in runner when a turn first needs it.
import { CommandRunnerConfig } from '../model/config/agents.ts'
import type { Channel, ChannelHost, ChannelKeys, OwnChannel, WriteReply } from '../model/channel.ts'
import { type ChannelsConfig, readChannelKeys } from '../model/config/channels.ts'
import type { Config } from '../model/config/config.ts'
import type { Runner } from '../model/runner.ts'
import { channels as builtIn } from '../plugins/channels/index.ts'
import { createOwnChannel } from '../plugins/channels/shared/own.ts'
import { createAiRunner } from '../runners/ai.ts'
import { createCommandRunner } from '../runners/command.ts'
import { createEchoRunner } from '../runners/echo.ts'
import { createOpenClawRunner } from '../runners/openclaw.ts'

export type RunnersAndChannels = {
  /** The runner of this name; undefined if there is none. */
  runner(name: string): Runner | undefined
  /** The configured channels, by name. */
  readonly channels: ReadonlyMap<string, Channel>
}

export type RunnerAndChannelParts = {
  /** Writes the replies of the channel `console`. */
  readonly write: WriteReply
  /** The environment variables that commands may get. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Returns the same object for the same configuration and channels in code. */
export function createRunnersAndChannels(
  tools: RunnerAndChannelParts,
): (config: Config, own?: readonly OwnChannel[]) => RunnersAndChannels {
  const cache = new WeakMap<Config, RunnersAndChannels & { readonly own: readonly OwnChannel[] }>()
  return (config, own = []) => {
    const known = cache.get(config)
    if (known?.own === own) return known
    const runnersAndChannels = { ...buildRunnersAndChannels(config, own, tools), own }
    cache.set(config, runnersAndChannels)
    return runnersAndChannels
  }
}

function buildRunnersAndChannels(
  config: Config,
  own: readonly OwnChannel[],
  tools: RunnerAndChannelParts,
): RunnersAndChannels {
  // each section is built at once, so that a load reports its faults; the built-in runners need no section
  const runners = new Map<string, Runner | undefined>(
    Object.keys(config.runners).map((name) => [name, buildRunner(name, config, tools)]),
  )
  return {
    runner(name) {
      if (!runners.has(name)) runners.set(name, buildRunner(name, config, tools))
      return runners.get(name)
    },
    channels: buildChannels(config.channels, own, tools),
  }
}

/** A section of `runners` replaces the built-in runner of its name. */
function buildRunner(name: string, { models, runners }: Config, { env }: RunnerAndChannelParts): Runner | undefined {
  const section = Object.hasOwn(runners, name) ? runners[name] : undefined
  if (section?.kind === 'openclaw') return createOpenClawRunner(name, section)
  if (section !== undefined) return createCommandRunner(name, section, { env })
  switch (name) {
    case 'echo':
      return createEchoRunner()
    case 'ai':
      return createAiRunner({ models })
    case 'claude':
    case 'codex':
      return createCommandRunner(name, CommandRunnerConfig.parse({ kind: 'command', profile: name }), { env })
    default:
      return undefined
  }
}

/** A built-in channel is there if it has a section, or needs none. */
function buildChannels(
  config: ChannelsConfig,
  own: readonly OwnChannel[],
  { write }: RunnerAndChannelParts,
): ReadonlyMap<string, Channel> {
  const host: ChannelHost = { fetch: globalThis.fetch, clock: Date.now, write }
  const configured = builtIn.flatMap((definition): Channel[] => {
    const { name, options } = definition
    const section = config[name]
    if (options !== undefined && section === undefined) return []
    const keys = readChannelKeys(config, name)
    // as: the schema of the configuration has checked the section
    const parts = definition.create(section as ChannelKeys, host)
    return [{ ...parts, id: name, to: keys.to, repeatsUnknown: keys.onUnknown === 'repeat' }]
  })
  const channels = [
    ...configured,
    ...own.map((channel) => createOwnChannel(channel, readChannelKeys(config, channel.id), host)),
  ]
  return new Map(channels.map((channel) => [channel.id, channel]))
}
