// `channels` of the configuration: one section for each channel. A channel without a section is not configured, except console.
import { z } from 'zod'
import { ChannelName, isOwnChannel } from '../../core/model/action.ts'
import { plainName } from '../../base/names.ts'
import { nonBlank, RetryConfig } from '../../core/model/values.ts'

/** The keys that the gateway adds to the section of each channel. */
export const sharedChannelKeys = {
  to: nonBlank.optional().describe('Recipient of replies that name none.'),
  timeoutMs: z
    .int()
    .positive()
    .max(60_000)
    .default(15_000)
    .describe('Milliseconds in which the provider must answer one request.'),
  onUnknown: z
    .enum(['stop', 'repeat'])
    .default('stop')
    .describe(
      'What happens after an attempt that may have posted the message. `stop` ends the job. `repeat` tries again, so that the message may appear twice.',
    ),
}

const OwnKeys = z.looseObject({ to: sharedChannelKeys.to, onUnknown: sharedChannelKeys.onUnknown })
/** A section of a plugin. */
const PluginKeys = z.looseObject(sharedChannelKeys)

/** What the configuration and its rules know of a channel. `section`: the schema of `channels.<name>`; undefined if it has none. */
export type KnownChannel = {
  readonly name: string
  readonly section: z.ZodType | undefined
  readonly findsRecipient: boolean
}

/** `channels` of the configuration. Each other key is the section of a channel, which its plugin has checked. */
export type ChannelsConfig = z.infer<ReturnType<typeof buildSchema>> & Readonly<Record<string, unknown>>

/** Under this key, `channels` has the channels that it may name. No JSON has it. */
const known = Symbol('known channels')

const ofLast: KnownChannel = { name: 'last', section: undefined, findsRecipient: true }

function buildSchema(sections: Readonly<Record<string, z.ZodType>>) {
  return z.strictObject({
    default: z
      .strictObject({
        channel: ChannelName.describe('Channel that `last` means while the main session has no last recipient.'),
        to: nonBlank
          .optional()
          .describe('Recipient on this channel. If the section of the channel has `to`, that one is used instead.'),
      })
      .optional()
      .describe('What `last` means while the main session has no last recipient.'),
    retry: RetryConfig.prefault({}).describe(
      'Retries of what a job sends, such as the reply, while its receiver cannot be reached, answers 429, or is overloaded.',
    ),
    own: z
      .record(plainName, OwnKeys)
      .default({})
      .describe(
        'Channels in your own code, each under the name of its file in hooks/channels: `to`, `onUnknown`, and the options of the code.',
      ),
    ...sections,
  })
}

/** The schema of `channels`. `takesOthers`: a section of another name belongs to a plugin that is not loaded yet. */
export function createChannelsConfig(
  channels: readonly KnownChannel[] | undefined,
  { takesOthers }: { readonly takesOthers: boolean },
): z.ZodType<ChannelsConfig, z.input<ReturnType<typeof buildSchema>>> {
  const sections = (channels ?? []).flatMap(({ name, section }) => (section === undefined ? [] : [[name, section]]))
  const schema = buildSchema(Object.fromEntries(sections))
  return (takesOthers ? schema.catchall(PluginKeys) : schema).transform((parsed) =>
    Object.assign(parsed, channels && { [known]: [ofLast, ...channels] }),
  )
}

/** The built-in channels, and `last`. Undefined if every name may be a channel. */
export function listKnownChannels(channels: ChannelsConfig): readonly KnownChannel[] | undefined {
  return Reflect.get(channels, known)
}

/** The names that a mapping may have: the known channels, and those with a section of a plugin. Undefined if every name may be one. */
export function listChannelIds(channels: ChannelsConfig): readonly string[] | undefined {
  const names = listKnownChannels(channels)?.map(({ name }) => name)
  const sections = Object.keys(channels).filter((name) => !reservedChannelNames.includes(name))
  return names && [...new Set([...names, ...sections])]
}

/** The keys of `channels` that are no channel. */
export const reservedChannelNames: readonly string[] = ['default', 'retry', 'own', 'last']

/** The section of a channel, by the id of the channel; undefined if it has none. */
export function findChannelSection(channels: ChannelsConfig, id: string): object | undefined {
  if (reservedChannelNames.includes(id)) return undefined
  const [own, key] = isOwnChannel(id) ? [channels.own, id.slice('own:'.length)] : [channels, id]
  const section: unknown = Object.hasOwn(own, key) ? Reflect.get(own, key) : undefined
  return typeof section === 'object' && section !== null ? section : undefined
}

/** The keys of the gateway in the section of a channel. */
export function readChannelKeys(channels: ChannelsConfig, id: string): z.infer<typeof PluginKeys> {
  return PluginKeys.parse(findChannelSection(channels, id) ?? {})
}

const Endpoints = z.object({ endpoints: z.record(z.string(), z.object({ url: z.string(), secret: z.string() })) })

/** `channels.webhook.endpoints`, which callbacks name too. A Map, because a name may come from a request: `constructor` must not be found. */
export function readEndpoints(
  channels: ChannelsConfig,
): ReadonlyMap<string, { readonly url: string; readonly secret: string }> {
  const { data } = Endpoints.safeParse(channels['webhook'])
  return new Map(Object.entries(data?.endpoints ?? {}))
}
