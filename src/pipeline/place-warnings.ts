// Warns of mappings whose commit status or reply needs the place of the event, and whose requests cannot prove a place.
import type { ChannelName } from '../model/action.ts'
import type { CompiledMapping } from './compile.ts'
import { isForge } from './forges.ts'
import type { Generation } from './generation.ts'

type PlaceWarning = { readonly mappingId: string; readonly text: string }

/** The warnings of all mappings. A transform may name a recipient, so a mapping with one gets no warning about its reply. */
export function findPlaceWarnings({ mappings, config }: Pick<Generation, 'mappings' | 'config'>): PlaceWarning[] {
  return mappings.flatMap((compiled) => {
    const { channels } = config
    return [findStatusFault(compiled, channels), findReplyFault(compiled, channels)].flatMap((text) =>
      text === undefined ? [] : [{ mappingId: compiled.id, text }],
    )
  })
}

type Channels = Generation['config']['channels']

function findStatusFault({ mapping, provenSender }: CompiledMapping, channels: Channels): string | undefined {
  const { status, verify } = mapping
  if (status === undefined) return undefined
  if (verify === undefined)
    return 'status is never set: only requests that are proved to be of GitHub or GitLab set one, and the mapping has no verify. Set verify with the scheme "github", "gitlab-token" or "gitlab-signing".'
  const source = provenSender?.source ?? ''
  if (source !== 'github' && source !== 'gitlab')
    return `status is never set: verify has the scheme "${verify.scheme}", and only requests of GitHub and GitLab name a commit. Remove status.`
  return channels[source] === undefined
    ? `status is never set: the requests are of ${source}, and channels.${source} is not configured. Set it.`
    : undefined
}

function findReplyFault({ mapping, provenSender }: CompiledMapping, channels: Channels): string | undefined {
  const { action, deliver, to, transform, channel, verify } = mapping
  if (action === 'wake' || (action === 'agent' && !deliver) || transform !== undefined) return undefined
  const targets: readonly { channel: ChannelName; to?: string | undefined }[] = Array.isArray(to)
    ? to
    : [{ channel, to }]
  const lost = targets.find(
    (target) =>
      target.to === undefined &&
      isForge(target.channel) &&
      target.channel !== provenSender?.source &&
      channels[target.channel]?.to === undefined &&
      (channels.default?.channel !== target.channel || channels.default.to === undefined),
  )?.channel
  if (lost === undefined) return undefined
  const why =
    verify === undefined
      ? `its requests are not proved to be of ${lost}, because it has no verify`
      : `verify has the scheme "${verify.scheme}"`
  return `channel "${lost}" has no recipient: only requests that are proved to be of ${lost} name one, and ${why}. Set "to", or verify with a scheme of ${lost}.`
}
