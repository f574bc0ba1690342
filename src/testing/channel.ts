// What a channel promises: its retries and limits, what it shows, and how it splits a text.
import type { ChannelDefinition, ChannelHost, ChannelKeys, OwnChannel, SendResult } from '../model/channel.ts'
import { createOwnChannel } from '../plugins/channels/shared/own.ts'
import {
  answer,
  breakConnection,
  createStall,
  type Fault,
  listLongTexts,
  replaceFetch,
  retryAfterMs,
} from './faults.ts'

/** A channel with a provider that accepts its message. */
export type ChannelTrial = {
  /** The options of the channel, as in its section. */
  readonly options: object
  /** The recipient, in the form of the channel. */
  readonly to?: string
  /** The answers of the provider. No request leaves the process. */
  respond(request: Request): Response | Promise<Response>
}

const text = 'The tide is out, says zebra-4711.'
const prose = 'Low water at the pier, 🌊 and a gull. '.repeat(600)
const code = `Look:\n\n\`\`\`ts\n${'const tide = read("pier")\n'.repeat(600)}\`\`\`\n\nThat was all.`

/**
 * The promises that the channel breaks, each as a sentence; an empty list if it keeps all. Replaces `fetch` of the process while it runs, so
 * check one channel after the other.
 */
export async function checkChannel<Options>(
  definition: ChannelDefinition<Options>,
  trial: ChannelTrial,
): Promise<string[]> {
  const parsed = definition.options?.safeParse(trial.options)
  if (parsed?.success === false) return [`The options are invalid: ${parsed.error.message}`]
  const options: unknown = parsed === undefined ? trial.options : parsed.data
  const keys: ChannelKeys = { to: trial.to, timeoutMs: 10_000, onUnknown: 'stop' }
  const channel = { definition, options: { ...Object(options), ...keys }, to: trial.to }
  return [...checkSplit(channel), ...(await checkSends(channel, trial))]
}

type Checked<Options> = {
  readonly definition: ChannelDefinition<Options>
  readonly options: Options & ChannelKeys
  readonly to: string | undefined
}

/** A channel with `send` is split by the gateway, so only one with `create` can break these promises. */
function checkSplit<Options>({ definition, options }: Checked<Options>): string[] {
  if (!('create' in definition)) return []
  const broken = new Set<string>()
  const { split } = definition.create(options, createHost(globalThis.fetch))
  for (const format of ['markdown', 'plain'] as const) {
    for (const whole of ['', text, prose, code]) {
      const pieces = split(whole, format)
      if (pieces.length === 0) broken.add('split returns no piece.')
      if (pieces.join('\0') !== split(whole, format).join('\0'))
        broken.add('split returns other pieces for the same text.')
      if (pieces.some((piece) => /\p{Surrogate}/u.test(piece))) broken.add('split cuts a character in two.')
      if (!isInOrder(whole, pieces.join(''))) broken.add('split loses characters.')
    }
  }
  return [...broken]
}

/** Whether `pieces` has the characters of `whole` in their order, apart from spaces. It may have more, such as the marks of a code block. */
function isInOrder(whole: string, pieces: string): boolean {
  let at = 0
  for (const character of whole.replaceAll(/\s/g, '')) {
    at = pieces.indexOf(character, at) + character.length
    if (at < character.length) return false
  }
  return true
}

async function checkSends<Options>(channel: Checked<Options>, trial: ChannelTrial): Promise<string[]> {
  const secrets = listLongTexts(channel.options).filter((secret) => secret !== channel.to)
  const good = await send(channel, trial)
  if (good.result.kind !== 'sent' || good.result.id === '')
    return [`A message that the provider accepts is ${good.result.kind}: ${describeDetail(good.result)}`]
  // without a request, nothing can fail
  if (good.requests === 0) return []
  const broken: string[] = []
  const check = async (what: string, fault: Fault, isRight: (result: SendResult) => boolean) => {
    const { result, thrown } = await send(channel, trial, { fault, at: good.requests })
    const detail = describeDetail(result)
    if (!isRight(result)) broken.push(`${what}: the message is ${result.kind}. ${detail}`)
    if (thrown.length > 0 && what.startsWith('Answer')) broken.push(`${what}: send throws ${String(thrown[0])}.`)
    if (detail.includes(text)) broken.push(`${what}: the detail has the text of the message.`)
    if (secrets.some((secret) => detail.includes(secret))) broken.push(`${what}: the detail has a secret.`)
  }
  await check('Answer 401', answer(401), ({ kind }) => kind !== 'sent')
  await check(
    'Answer 429 with Retry-After',
    answer(429),
    (result) => result.kind === 'rate-limited' && (result.retryAfterMs ?? retryAfterMs) >= retryAfterMs,
  )
  await check('Answer 500', answer(500), ({ kind }) => kind !== 'sent')
  await check('Connection that breaks after the request', breakConnection, ({ kind }) => kind === 'ambiguous')
  const stall = createStall()
  await check('Aborted attempt', stall.fault, ({ kind }) => kind !== 'sent')
  if (stall.isIgnored())
    broken.push('Aborted attempt: the request goes on, because it does not get the signal of the message.')
  return broken
}

/** Makes one attempt with a new channel, as the gateway does. `at`: the number of the request that gets the fault. */
async function send<Options>(
  { definition, options, to }: Checked<Options>,
  { respond }: ChannelTrial,
  { fault, at }: { fault?: Fault; at?: number } = {},
): Promise<{ result: SendResult; requests: number; thrown: unknown[] }> {
  const thrown: unknown[] = []
  const attempt = new AbortController()
  let requests = 0
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    requests += 1
    return fault === undefined || requests !== at ? respond(request) : fault(request, () => attempt.abort())
  }
  const own: OwnChannel = {
    kind: 'sound',
    id: definition.name ?? 'own',
    label: 'under test',
    // as: the options are those that its schema returned
    definition: definition as ChannelDefinition<unknown>,
    options,
    hash: '',
    describeThrown(exception) {
      thrown.push(exception)
      return 'an exception'
    },
  }
  // nothing is hidden here, so that a secret is found
  const channel = createOwnChannel(own, options, createHost(fetch), { hide: (shown) => shown })
  const run = { id: 'run-1', agentId: 'main', name: 'Tide', hops: 0 }
  const message = { to, text, format: 'markdown', nonce: 'nonce-1', signal: attempt.signal, run } as const
  return { result: await replaceFetch(fetch, () => channel.send(message)), requests, thrown }
}

function createHost(fetch: typeof globalThis.fetch): ChannelHost {
  return { fetch, clock: Date.now, write() {} }
}

function describeDetail(result: SendResult): string {
  return result.kind === 'sent' ? '' : result.detail
}
