// The actions that a delivery causes. Requests, mappings and transforms share one schema.
import { z } from 'zod'
import type { PlannedFlow } from './flow.ts'
import { type JobKeys, SessionMode } from './job-keys.ts'
import { fileNamePattern } from '../../base/names.ts'
import { nonBlank } from './values.ts'

const wakeModes = ['now', 'next-heartbeat'] as const
export const thinkingLevels = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const
/** The key of an agent's main session, which receives system events. Its turns are heartbeats and the runs that name this key. */
export const mainSessionKey = 'main'

/** Marks the name of a channel in a JSON Schema, whose writer puts the known names there. */
export const channelMark = 'x-channel'
/** The form of the id of a channel of `channels.own`. */
export const ownChannel = new RegExp(fileNamePattern.source.replace('^', '^own:'))

/** Aliases that senders use for two channels. */
const channelAliases: Record<string, string> = { imsg: 'imessage', teams: 'msteams' }

export const WakeMode = z.enum(wakeModes)
export type WakeMode = z.infer<typeof WakeMode>
export const Thinking = z.enum(thinkingLevels)
export type Thinking = z.infer<typeof Thinking>
/**
 * The names of channels that a result of code may have, for editors and the compiler. A plugin adds its own:
 * `declare module 'hookloom' { interface ChannelNames { zulip: true } }`.
 */
export interface ChannelNames {
  last: true
  whatsapp: true
  telegram: true
  discord: true
  slack: true
  mattermost: true
  signal: true
  imessage: true
  msteams: true
  matrix: true
  github: true
  gitlab: true
  linear: true
  webhook: true
  console: true
}
/** The id of a channel, `last`, or `own:<name>` for a channel of `channels.own`. */
export type ChannelName = keyof ChannelNames | `own:${string}`
/** Which channels there are depends on the plugins, so `findChannelFault` checks the name. */
export const ChannelName = z
  .preprocess(
    (name) => (typeof name === 'string' && Object.hasOwn(channelAliases, name) ? channelAliases[name] : name),
    // as: the rules of the configuration and of a request accept only channel names
    z.string().transform((name) => name as ChannelName),
  )
  .meta({ [channelMark]: true })

export function isOwnChannel(name: string): boolean {
  return ownChannel.test(name)
}

/** The key of a channel's section in the configuration. */
export function toChannelKey(name: ChannelName): string {
  return `channels.${name.replace(':', '.')}`
}

/** The time limit of a run in seconds, at most a day. */
export const TimeoutSeconds = z.number().positive().max(86_400)

/** A recipient, as the configuration writes it in a list. */
export const MessageTarget = z.strictObject({
  channel: ChannelName.describe('Channel of this message.'),
  to: nonBlank.exactOptional().describe('Recipient on the channel. Default: as for a mapping without `to`.'),
})
export type MessageTarget = z.infer<typeof MessageTarget>

/** The payload of `wake`. Unknown fields are ignored. */
export const WakePayload = z.object({ text: nonBlank, mode: WakeMode.default('now') })

/** The payload of `agent`. Unknown fields are ignored. */
export const AgentPayload = z.object({
  message: nonBlank,
  name: nonBlank.optional(),
  agentId: nonBlank.optional(),
  sessionKey: nonBlank.optional(),
  wakeMode: WakeMode.default('now'),
  deliver: z.boolean().default(true),
  channel: ChannelName.default('last'),
  to: nonBlank.optional(),
  model: nonBlank.optional(),
  thinking: Thinking.optional(),
  timeoutSeconds: TimeoutSeconds.optional(),
})

/** A request to the hook `agent`. `sessionMode`: `persistent` continues the session, which needs `hooks.allowRequestSessionKey`. */
export const AgentRequest = AgentPayload.extend({ sessionMode: SessionMode.optional() })
export type AgentRequest = z.infer<typeof AgentRequest>

/** A system event for the main session of the default agent. */
export const WakeAction = WakePayload.extend({
  kind: z.literal('wake'),
  /** True: the text reaches the agent outside the boundary. Only the configuration can set it. */
  allowUnsafeExternalContent: z.boolean().default(false),
})
export type WakeAction = z.infer<typeof WakeAction>

/** One agent turn. */
export const AgentAction = AgentPayload.extend({
  kind: z.literal('agent'),
  /** The recipients of the reply after the first one. Only the configuration can set them. */
  alsoTo: z.array(MessageTarget).optional(),
  allowUnsafeExternalContent: z.boolean().default(false),
})
export type AgentAction = z.infer<typeof AgentAction>

/** A message to people, without an agent. */
export const DeliverAction = z.object({
  kind: z.literal('deliver'),
  message: nonBlank,
  name: nonBlank.optional(),
  channel: ChannelName.default('last'),
  to: nonBlank.optional(),
})
export type DeliverAction = z.infer<typeof DeliverAction>

export const Action = z.discriminatedUnion('kind', [WakeAction, AgentAction, DeliverAction])
export type Action = z.infer<typeof Action>

/**
 * The place of the event of a request, for a reply on the channel with the name of its sender. `to`: the issue, pull request or merge request, as a recipient
 * of that channel. `commit`: the commit, in the form of the channel.
 */
export type EventPlace = {
  readonly channel: string
  readonly to?: string | undefined
  readonly commit?: string | undefined
}

/**
 * The origin of an action's text, for the lines above it in a prompt. All of its fields come from outside. `hops`: see `hops.ts`; undefined
 * for 0. `place`: only if a reply or a status may go there.
 */
export type Origin = {
  hook: string
  source?: string
  from?: string
  subject?: string
  hops?: number
  place?: EventPlace
}

/**
 * An action that the policy has accepted, with its final agent and session key. `sharesSession`: the run is isolated, and its key is only the
 * default `hooks.defaultSessionKey`, so runs under it do not wait for one another. `isKeyChosen`: a mapping, a transform or a request chose the key;
 * runs that an earlier version stored do not say so.
 */
export type PlannedAction =
  | { kind: 'wake'; action: WakeAction; agentId: string; sessionKey: string; origin: Origin }
  | {
      kind: 'deliver'
      action: DeliverAction
      /** The default agent, whose last recipient the channel `last` means. */
      agentId: string
      /** A name for the recipient: messages to one recipient keep their order. It is not a session of an agent. */
      sessionKey: string
      origin: Origin
      startedBy?: string | undefined
      /** Stored next to the plan, not in it. */
      flow?: PlannedFlow | undefined
    }
  | ({
      kind: 'agent'
      action: AgentAction
      agentId: string
      sessionKey: string
      sharesSession: boolean
      isKeyChosen?: boolean
      origin: Origin
      /** The id of the hook token that started the run, as in `Admitted`. Runs that an earlier version stored have no such id. */
      startedBy?: string | undefined
      /** The id of the task that sets the commit status of the run. */
      statusJobId?: string | undefined
      /** The id of the task that posts the end of the run. */
      callbackJobId?: string | undefined
      /** Stored next to the plan, not in it. */
      flow?: PlannedFlow | undefined
    } & JobKeys)

/** A turn of an agent's main session. `wake`: an event requested it. `interval`: it is a regular heartbeat. */
export type Heartbeat = {
  readonly kind: 'heartbeat'
  readonly agentId: string
  readonly sessionKey: string
  readonly reason: 'wake' | 'interval'
}

/** A failure message to the operator. `event`: the agent's main session gets it too. Without a channel, only that event exists. */
export type Alert = {
  readonly kind: 'alert'
  readonly agentId: string
  readonly sessionKey: string
  readonly text: string
  readonly event: boolean
  readonly channel?: ChannelName
  readonly to?: string | undefined
  /** The hops of the job that failed: see `hops.ts`. Undefined for 0. */
  readonly hops?: number
}

/**
 * Sets the status of a commit for a run: `pending` at once, and another status when the run has ended. `name`: distinguishes it from other
 * statuses.
 */
export type CommitStatusPlan = {
  readonly kind: 'status'
  readonly agentId: string
  readonly sessionKey: string
  readonly runId: string
  readonly channel: EventPlace['channel']
  readonly commit: string
  readonly name: string
}

/** Posts the end of a run to an endpoint of `channels.webhook.endpoints`. */
export type CallbackPlan = {
  readonly kind: 'callback'
  readonly agentId: string
  readonly sessionKey: string
  readonly runId: string
  readonly endpoint: string
}

/** The work of a job. Only actions have a delivery. */
export type Planned = PlannedAction | Heartbeat | Alert | CommitStatusPlan | CallbackPlan
