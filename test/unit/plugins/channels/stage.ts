// A message for a channel, and a provider with one answer.
import type { z } from 'zod'
import { builtInChannels } from '../../../../src/gateway/config/keys.ts'
import type { FullChannelDefinition } from '../../../../src/define.ts'
import type { Channel, ChannelHost, ChannelKeys, Outgoing } from '../../../../src/model/channel.ts'

/** A message of a run, with the given fields. */
export function toOutgoing(given: Partial<Outgoing> = {}): Outgoing {
  return {
    to: undefined,
    text: 'The build is green.',
    format: 'markdown',
    nonce: 'nonce-1',
    signal: new AbortController().signal,
    run: { id: 'run-1', agentId: 'main', name: 'CI', hops: 1 },
    ...given,
  }
}

/** A fetch with the same answer for every request. */
export function createFetch(status: number, body: unknown, headers: Record<string, string> = {}): typeof fetch {
  return async () => new Response(JSON.stringify(body), { status, headers })
}

/** The schema of the section of a channel. */
export function sectionOf<Options>({ name }: FullChannelDefinition<Options>): z.ZodType<Options & ChannelKeys> {
  const section = builtInChannels.find((known) => known.name === name)?.section
  // as: the options of the plugin with the keys of the gateway
  return (section as z.ZodOptional<z.ZodType<Options & ChannelKeys>>).unwrap()
}

/** The channel of a section, as the gateway makes it. */
export function openChannel<Options>(
  definition: FullChannelDefinition<Options>,
  section: Options & ChannelKeys,
  host: Partial<ChannelHost> = {},
): Channel {
  const parts = definition.create(section, { fetch: globalThis.fetch, clock: Date.now, write() {}, ...host })
  return { ...parts, id: definition.name, to: section.to, repeatsUnknown: section.onUnknown === 'repeat' }
}
