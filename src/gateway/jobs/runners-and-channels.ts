// Builds the configured runners and channels of a configuration once, and a built-in runner when a turn first needs it.
import { type Log, silentLog } from '../../base/log.ts'
import type { Channel, ChannelHost, ChannelKeys, OwnChannel, WriteReply } from '../../model/channel.ts'
import { isOwnChannel } from '../../core/model/action.ts'
import { chooseRunner } from '../../model/config/plan-settings.ts'
import { type ChannelsConfig, readChannelKeys } from '../../model/config/channels.ts'
import type { Config } from '../../model/config/config.ts'
import { noOwnParts, type OwnParts } from '../../model/plugin.ts'
import type { OwnRunner, Runner, RunnerDefinition, RunnerHost, RunnerState } from '../../model/runner.ts'
import { channels as builtInChannels } from '../../plugins/channels/index.ts'
import { createOwnChannel } from '../../plugins/channels/shared/own.ts'
import { runners as builtInRunners } from '../../plugins/runners/index.ts'
import { createOwnRunner } from '../../plugins/runners/shared/own.ts'
import { fetchPublic, fetchWithoutTimeout } from '../../plugins/runners/shared/ai/fetch.ts'
import type { NewAuditEntry } from '../../store/audit.ts'
import { listAgentIds } from './agents.ts'

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
  /** Opens the durable values of a runner. Default: none can be read or written. */
  readonly openState?: (id: string) => RunnerState
  /** Writes into the audit log. Default: writes nothing. */
  readonly noteAct?: (entry: NewAuditEntry) => void
  /** Default: logs nothing. */
  readonly log?: Log
}

const noState: RunnerState = {
  read: refuseState,
  list: refuseState,
  write: refuseState,
}

async function refuseState(): Promise<never> {
  throw new Error('There is no store here.')
}

/** Returns the same object for the same configuration and channels in code. */
export function createRunnersAndChannels(
  tools: RunnerAndChannelParts,
): (config: Config, own?: OwnParts) => RunnersAndChannels {
  const cache = new WeakMap<Config, RunnersAndChannels & { readonly own: OwnParts }>()
  return (config, own = noOwnParts) => {
    const known = cache.get(config)
    if (known?.own === own) return known
    const runnersAndChannels = { ...buildRunnersAndChannels(config, own, tools), own }
    cache.set(config, runnersAndChannels)
    return runnersAndChannels
  }
}

function buildRunnersAndChannels(config: Config, own: OwnParts, tools: RunnerAndChannelParts): RunnersAndChannels {
  // each section is built at once, so that a load reports its faults; the built-in runners need no section
  const runners = new Map<string, Runner | undefined>(
    Object.keys(config.runners).map((name) => [name, buildRunner(name, config, own.runners, tools)]),
  )
  return {
    runner(name) {
      if (!runners.has(name)) runners.set(name, buildRunner(name, config, own.runners, tools))
      return runners.get(name)
    },
    channels: buildChannels(config.channels, own.channels, tools),
  }
}

/** A section of `runners` replaces the runner of its name that needs none. */
function buildRunner(
  id: string,
  config: Config,
  own: readonly OwnRunner[],
  { env, openState, noteAct, log = silentLog }: RunnerAndChannelParts,
): Runner | undefined {
  const { models, runners } = config
  const agents = listAgentIds(config).filter((agent) => chooseRunner(config, agent) === id)
  const state = openState?.(id) ?? noState
  const fetch = fetchWithoutTimeout
  const audit: RunnerHost['audit'] = ({ by, ...act }) =>
    noteAct?.({ by: { kind: 'token', name: `runners.${id}: ${by}` }, ...act, outcome: 'done' })
  const host: RunnerHost = { id, models, agents, env, fetch, fetchPublic, state, log, audit, clock: Date.now }
  const ofPlugin = own.find(({ name }) => name === id)
  if (ofPlugin !== undefined) return createOwnRunner(ofPlugin, host)
  const section = Object.hasOwn(runners, id) ? runners[id] : undefined
  if (section === undefined) {
    const found = builtInRunners.find(({ ready = {} }) => Object.hasOwn(ready, id))
    return found && toRunner(found, found.options?.parse(found.ready?.[id]), host)
  }
  const { kind, ...options } = section
  const found = builtInRunners.find(({ name }) => name === kind)
  return found && toRunner(found, options, host)
}

function toRunner(definition: RunnerDefinition, options: unknown, host: RunnerHost): Runner {
  const { readsFiles } = definition
  return { ...definition.create(options, host), ...(readsFiles && { readsFiles }), id: host.id }
}

/** A built-in channel is there if it has a section, or needs none. */
function buildChannels(
  config: ChannelsConfig,
  own: readonly OwnChannel[],
  { write, log = silentLog }: RunnerAndChannelParts,
): ReadonlyMap<string, Channel> {
  const host: ChannelHost = { fetch: globalThis.fetch, clock: Date.now, write }
  const configured = builtInChannels.flatMap((definition): Channel[] => {
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
    ...own.map((channel) => {
      const { id } = channel
      return createOwnChannel(channel, readOwnKeys(config, id), host, {
        warn: (message) => log.warn({ channel: id }, message),
      })
    }),
  ]
  return new Map(channels.map((channel) => [channel.id, channel]))
}

/** `timeoutMs` is a key of the gateway only in the section of a plugin: in `channels.own`, it may be an option of the code. */
function readOwnKeys(config: ChannelsConfig, id: string): Partial<ChannelKeys> {
  const { timeoutMs, ...keys } = readChannelKeys(config, id)
  return isOwnChannel(id) ? keys : { ...keys, timeoutMs }
}
