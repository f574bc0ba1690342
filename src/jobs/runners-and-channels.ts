// Builds the configured runners and channels of a configuration once, and a built-in runner when a turn first needs it.
import { CommandRunnerConfig } from '../model/config/agents.ts'
import type { Channel, OwnChannel } from '../model/channel.ts'
import { type ChannelsConfig, channelSections } from '../model/config/channels.ts'
import type { ConfiguredChannelName } from '../model/action.ts'
import type { Config } from '../model/config/config.ts'
import type { Runner } from '../model/runner.ts'
import { createConsoleChannel, type WriteReply } from '../channels/console.ts'
import { createDiscordChannel } from '../channels/discord.ts'
import { createGitHubChannel } from '../channels/github.ts'
import { createGitLabChannel } from '../channels/gitlab.ts'
import { createIMessageChannel } from '../channels/imessage.ts'
import { createLinearChannel } from '../channels/linear.ts'
import { createMattermostChannel } from '../channels/mattermost.ts'
import { createMsTeamsChannel } from '../channels/msteams.ts'
import { createOwnChannel } from '../channels/own.ts'
import { createSignalChannel } from '../channels/signal.ts'
import { createSlackChannel } from '../channels/slack.ts'
import { createTelegramChannel } from '../channels/telegram.ts'
import { createWebhookChannel } from '../channels/webhook.ts'
import { createWhatsAppChannel } from '../channels/whatsapp.ts'
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

// as: the keys of a constant object
const channelNames = Object.keys(channelSections) as readonly (keyof typeof channelSections)[]

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

function buildChannels(
  config: ChannelsConfig,
  own: readonly OwnChannel[],
  { write }: RunnerAndChannelParts,
): ReadonlyMap<string, Channel> {
  const { telegram, discord, slack, mattermost, msteams, whatsapp, signal, imessage, webhook } = config
  const { github, gitlab, linear } = config
  const configured: Readonly<Record<ConfiguredChannelName, Channel | undefined>> = {
    telegram: telegram && createTelegramChannel(telegram),
    discord: discord && createDiscordChannel(discord),
    slack: slack && createSlackChannel(slack),
    mattermost: mattermost && createMattermostChannel(mattermost),
    msteams: msteams && createMsTeamsChannel(msteams),
    whatsapp: whatsapp && createWhatsAppChannel(whatsapp),
    signal: signal && createSignalChannel(signal),
    imessage: imessage && createIMessageChannel(imessage),
    github: github && createGitHubChannel(github),
    gitlab: gitlab && createGitLabChannel(gitlab),
    linear: linear && createLinearChannel(linear),
    webhook: webhook && createWebhookChannel(webhook),
  }
  const channels = [
    createConsoleChannel({ write }),
    ...Object.values(configured),
    ...own.map((channel) => createOwnChannel(channel, config.own[channel.name]?.to)),
  ]
  const repeating = new Set([
    ...channelNames.filter((name) => config[name]?.onUnknown === 'repeat'),
    ...own.filter(({ name }) => config.own[name]?.onUnknown === 'repeat').map(({ name }) => `own:${name}`),
  ])
  return new Map(
    channels
      .filter((channel) => channel !== undefined)
      .map((channel) => [channel.id, { ...channel, repeatsUnknown: repeating.has(channel.id) }]),
  )
}
