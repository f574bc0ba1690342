// Warns of mappings whose commit status or reply needs the place of the event, and whose requests cannot prove a place.
import type { ChannelName } from '../../core/model/action.ts'
import { findChannelSection, readChannelKeys } from '../../model/config/channels.ts'
import type { CompiledMapping } from '../../core/mapping/compile.ts'
import type { Generation } from '../generation/generation.ts'
import type { SenderTable } from '../proofs/senders.ts'

type WarnedGeneration = Pick<Generation, 'mappings' | 'config' | 'senders'>

type PlaceWarning = { readonly mappingId: string; readonly text: string }

/** The warnings of all mappings. A transform may name a recipient, so a mapping with one gets no warning about its reply. */
export function findPlaceWarnings({ mappings, config, senders }: WarnedGeneration): PlaceWarning[] {
  return mappings.flatMap((compiled) => {
    const { channels } = config
    return [findStatusFault(compiled, channels, senders), findReplyFault(compiled, channels, senders)].flatMap((text) =>
      text === undefined ? [] : [{ mappingId: compiled.id, text }],
    )
  })
}

type Channels = Generation['config']['channels']

function findStatusFault(
  { mapping, provenSender }: CompiledMapping,
  channels: Channels,
  senders: SenderTable,
): string | undefined {
  const { status, verify } = mapping
  if (status === undefined) return undefined
  const able = senders.rows.filter(({ answers }) => answers?.commit !== undefined)
  const labels = able.map(({ label }) => label)
  if (verify === undefined) {
    const schemes = senders.schemes.filter(({ source }) => able.some(({ name }) => name === source))
    return `status is never set: only requests that are proved to be of ${joinWords(labels, 'or')} set one, and the mapping has no verify. Set verify with the scheme ${joinWords(
      schemes.map(({ id }) => `"${id}"`),
      'or',
    )}.`
  }
  const source = able.find(({ name }) => name === provenSender?.source)?.name
  if (source === undefined)
    return `status is never set: verify has the scheme "${verify.scheme}", and only requests of ${joinWords(labels, 'and')} name a commit. Remove status.`
  return findChannelSection(channels, source) === undefined
    ? `status is never set: the requests are of ${source}, and channels.${source} is not configured. Set it.`
    : undefined
}

function findReplyFault(
  { mapping, provenSender }: CompiledMapping,
  channels: Channels,
  senders: SenderTable,
): string | undefined {
  const { action, deliver, to, transform, channel, verify } = mapping
  if (action === 'wake' || (action === 'agent' && !deliver) || transform !== undefined) return undefined
  const targets: readonly { channel: ChannelName; to?: string | undefined }[] = Array.isArray(to)
    ? to
    : [{ channel, to }]
  const lost = targets.find(
    (target) =>
      target.to === undefined &&
      senders.find(target.channel)?.answers !== undefined &&
      target.channel !== provenSender?.source &&
      readChannelKeys(channels, target.channel).to === undefined &&
      (channels.default?.channel !== target.channel || channels.default.to === undefined),
  )?.channel
  if (lost === undefined) return undefined
  const why =
    verify === undefined
      ? `its requests are not proved to be of ${lost}, because it has no verify`
      : `verify has the scheme "${verify.scheme}"`
  return `channel "${lost}" has no recipient: only requests that are proved to be of ${lost} name one, and ${why}. Set "to", or verify with a scheme of ${lost}.`
}

function joinWords(words: readonly string[], joint: 'and' | 'or'): string {
  return words.join(', ').replace(/, ([^,]*)$/, ` ${joint} $1`)
}
