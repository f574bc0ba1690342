// Finds the channel and the recipient of a reply, or the reason why there is none.
import { type ChannelName, type EventPlace, toChannelKey } from '../../core/model/action.ts'
import type { Channel } from '../../model/channel.ts'
import type { Recipient } from '../../model/job.ts'

/** The route in `channels.default`. */
export type DefaultRoute = { readonly channel: ChannelName; readonly to?: string | undefined }

export type Route =
  | { readonly kind: 'route'; readonly channel: Channel; readonly name: ChannelName; readonly to: string | undefined }
  | {
      readonly kind: 'none'
      readonly detail: string
      /** Whether the detail quotes the recipient. */ readonly quotes?: boolean
      /** Whether no channel is configured and the action names none. */ readonly isWithoutChannels?: boolean
    }

type RouteSources = {
  /** The last recipient of the main session of the agent. */
  readonly last: Recipient | undefined
  readonly defaultRoute: DefaultRoute | undefined
  readonly channels: ReadonlyMap<string, Channel>
  /** The place where the event of the run happened. */
  readonly place?: EventPlace | undefined
}

/**
 * A channel that is named is used. `last` is the channel of the last recipient of the main session, else `channels.default`, else the only
 * configured channel whose section names a recipient, else WhatsApp if it is configured and has a recipient. The recipient is the first of
 * these that exists for the chosen channel: `to` of the action, the place of the event, the last recipient, `to` of the channel, and `to` of
 * `channels.default`.
 */
export function resolveRoute(
  { channel: asked, to }: { readonly channel: ChannelName; readonly to?: string | undefined },
  known: RouteSources,
): Route {
  const { last, defaultRoute, channels, place } = known
  const name = asked === 'last' ? chooseChannel(to, known) : asked
  if (name === undefined) {
    return hasOnlyConsole(channels)
      ? buildNoRoute(
          'no channel is configured, so the reply is kept and not sent. Set channels.default and the section of its channel.',
          { isWithoutChannels: true },
        )
      : buildNoRoute(
          'channel is "last", the main session has no last recipient on a configured channel, and channels.default names no channel. ' +
            'Set channels.default to {"channel": …, "to": …}, or name a channel in the mapping or the request.',
        )
  }
  const channel = channels.get(name)
  if (channel === undefined) {
    const named = asked === 'last' ? `channels.default names "${name}"` : `channel is "${name}"`
    return buildNoRoute(`${named}, and ${toChannelKey(name)} is not configured. Set ${toChannelKey(name)}.`)
  }
  const recipient =
    to ??
    (place?.channel === name ? place.to : undefined) ??
    (last?.channel === name ? last.to : undefined) ??
    channel.to ??
    (defaultRoute?.channel === name ? defaultRoute.to : undefined)
  const why = channel.whyNot(recipient)
  return why === undefined ? { kind: 'route', channel, name, to: recipient } : buildNoRoute(why, { quotes: true })
}

function chooseChannel(
  to: string | undefined,
  { last, defaultRoute, channels }: RouteSources,
): ChannelName | undefined {
  // the section of the channel may have been removed since then
  if (last !== undefined && channels.has(last.channel)) return last.channel
  // `channels.default` with the channel `last` names no channel
  if (defaultRoute !== undefined && defaultRoute.channel !== 'last') return defaultRoute.channel
  const addressed = [...channels].filter(([, channel]) => channel.to !== undefined)
  const [only] = addressed
  // as: the keys of `channels` are names of channels
  if (only !== undefined && addressed.length === 1) return only[0] as ChannelName
  const whatsapp = channels.get('whatsapp')
  return whatsapp !== undefined && (to ?? whatsapp.to) !== undefined ? 'whatsapp' : undefined
}

/** Whether the console is the only channel. It needs no section, so it does not show that the operator wants replies. */
function hasOnlyConsole(channels: RouteSources['channels']): boolean {
  return [...channels.keys()].every((name) => name === 'console')
}

function buildNoRoute(why: string, extras: Partial<Extract<Route, { kind: 'none' }>> = {}): Route {
  return { kind: 'none', detail: `No route: ${why}`, ...extras }
}
