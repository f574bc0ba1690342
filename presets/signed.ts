// The shared parts of the presets for signed senders: the options for path, secret and instructions, and mappings that all require the same
// proof.
import { z } from 'zod'
import { definePreset, type MappingInput, type Preset, type PresetParts } from '../src/define.ts'

// a blank secret is an error, not a missing secret: with an empty variable, the hook token alone must not open the hook
export const nonBlankText = z.string().refine((text) => text.trim() !== '', 'must not be blank')

/** Without a secret, the mappings have no `verify`, and the hook token admits requests. */
export const signedOptions = {
  /** The name of the hook. Default: the name of the preset. */
  path: nonBlankText.optional(),
  /** The task of the agent for an event, in the operator's words. Replaces the task of the preset. */
  instructions: nonBlankText.optional(),
  secret: nonBlankText.optional(),
  /** Two secrets that are both valid, while one replaces the other. */
  secrets: z.array(nonBlankText).min(1).max(2).optional(),
}
const SignedOptions = z.strictObject(signedOptions)

/** The options for a sender that is also a channel: an agent can reply there, where the event happened. */
const replyOptions = {
  ...signedOptions,
  /** The channel of the replies. If it is the channel of the sender, a reply goes to the issue or pull request of the event. */
  channel: nonBlankText.optional(),
  /** The recipient, if the channel is another one. */
  to: nonBlankText.optional(),
}
/** The reply options, and the option of a sender that also has commits. */
export const forgeOptions = {
  ...replyOptions,
  /** The name of the commit status that each run sets. */
  status: nonBlankText.optional(),
}
const ReplyOptions = z.strictObject(replyOptions)
const ForgeOptions = z.strictObject(forgeOptions)
type SignedOptions = z.infer<typeof SignedOptions>
type ForgeOptions = z.infer<typeof ForgeOptions>
type ReplyOptions = z.infer<typeof ReplyOptions>

/** One kind of event. `match` has no path, because all events of a pack share one. */
export type EventMapping = {
  /** The end of the mapping's id, after the name of the preset. */
  readonly event: string
  readonly match: Omit<NonNullable<MappingInput['match']>, 'path'>
  readonly name: string
  readonly sessionKey: string
  readonly message: readonly string[]
}

type Proof = MappingInput['verify']

/** The maximum size of a body: senders post complete issues, orders and groups of alerts, which can be larger than the usual 256 KiB. */
const maxBodyBytes = 1024 * 1024

/** The `verify` of a mapping. Undefined without a secret. */
export function toVerifySettings(
  scheme: string,
  { secret, secrets }: Pick<SignedOptions, 'secret' | 'secrets'>,
  further: Omit<NonNullable<Proof>, 'scheme'> = {},
): Proof {
  return secret === undefined && secrets === undefined ? undefined : { scheme, secret, secrets, ...further }
}

/** `own`: the operator's options. `instructions`: the default task of the agent for an event; no part of it comes from the event. */
export function buildParts(
  preset: string,
  {
    own,
    verify,
    instructions,
    events,
  }: {
    own: Pick<ForgeOptions, 'path' | 'instructions' | 'channel' | 'to' | 'status'>
    verify: Proof
    instructions: string
    events: readonly EventMapping[]
  },
): PresetParts {
  const { path = preset, channel, to, status } = own
  // a preset with two paths is two packs, whose mappings need different ids
  const prefix = path === preset ? preset : `${preset}:${path}`
  const mappings = events.map(({ event, match, message, ...rest }) => ({
    id: event === '' ? prefix : `${prefix}-${event}`,
    match: { path, ...match },
    verify,
    instructions: own.instructions ?? instructions,
    messageTemplate: message.join('\n'),
    ...(channel === undefined ? {} : { channel }),
    ...(to === undefined ? {} : { to }),
    ...(status === undefined ? {} : { status }),
    ...rest,
  }))
  return { mappings, maxBodyBytes }
}

type SignedPreset = {
  name: string
  title: string
  scheme: string
  /** Who creates the secret: the operator, or the sender. */
  from: 'operator' | 'sender'
  /** The task of the agent for an event, unless the operator sets another one. */
  instructions: string
  events: readonly EventMapping[]
}

/** Defines a preset that has only the `signedOptions`. */
export function defineSignedPreset(preset: SignedPreset): Preset<SignedOptions> {
  return define(preset, SignedOptions)
}

/** Like `defineSignedPreset`, for a sender that is also a channel but has no commits. */
export function defineReplyPreset(preset: SignedPreset): Preset<ReplyOptions> {
  return define(preset, ReplyOptions)
}

/** Like `defineSignedPreset`, for a sender that is also a channel and has commits. */
export function defineForgePreset(preset: SignedPreset): Preset<ForgeOptions> {
  return define(preset, ForgeOptions)
}

function define<Options extends SignedOptions>(
  { scheme, instructions, events, from, ...preset }: SignedPreset,
  options: z.ZodType<Options>,
): Preset<Options> {
  return definePreset<Options>({
    ...preset,
    options,
    setup: { key: { option: 'secret', from } },
    build: (own) => buildParts(preset.name, { own, verify: toVerifySettings(scheme, own), instructions, events }),
  })
}
