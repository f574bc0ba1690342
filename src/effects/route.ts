// Where a reply goes. What leads nowhere says which key to set; nothing is dropped in silence.
import type { ChannelName } from '../model/action.ts'

/** `channels.default` of the config. */
export type DefaultRoute = { readonly channel: ChannelName; readonly to?: string | undefined }

export type Route =
  | { readonly kind: 'route'; readonly channel: ChannelName; readonly to: string | undefined }
  | { readonly kind: 'none'; readonly detail: string }

/**
 * An explicit channel is taken as it is. `last` is where the last reply went (no such record is kept yet), else
 * `channels.default`, else WhatsApp when it is configured.
 * The recipient is the action's; that of `channels.default` only on its own channel.
 */
export function resolveRoute({
  channel,
  to,
  defaultRoute,
  configured,
}: {
  channel: ChannelName
  to: string | undefined
  defaultRoute: DefaultRoute | undefined
  configured: { has(channel: string): boolean }
}): Route {
  const chosen = channel === 'last' ? toFallback(defaultRoute, configured) : channel
  if (chosen === undefined) {
    return {
      kind: 'none',
      detail:
        'No route: channel is "last", no reply was delivered yet, and channels.default is not set. ' +
        'Set channels.default to {"channel": …, "to": …}, or name a channel in the mapping or the request.',
    }
  }
  if (!configured.has(chosen)) {
    const named = channel === 'last' ? `channels.default names "${chosen}"` : `channel is "${chosen}"`
    return {
      kind: 'none',
      detail: `No route: ${named}, and channels.${chosen} is not configured. Set channels.${chosen}.`,
    }
  }
  return { kind: 'route', channel: chosen, to: to ?? (defaultRoute?.channel === chosen ? defaultRoute.to : undefined) }
}

function toFallback(
  defaultRoute: DefaultRoute | undefined,
  configured: { has(channel: string): boolean },
): ChannelName | undefined {
  // a default that says "last" again names nothing
  if (defaultRoute !== undefined && defaultRoute.channel !== 'last') return defaultRoute.channel
  return configured.has('whatsapp') ? 'whatsapp' : undefined
}
