// Signal, through signal-cli as a daemon with --http. https://github.com/AsamK/signal-cli/blob/master/man/signal-cli-jsonrpc.5.adoc
import { z } from 'zod'
import type { Channel, SendResult } from '../../model/channel.ts'
import type { ChannelConfig } from '../../model/channels-config.ts'
import { splitMarkdown } from './chunks.ts'
import { toFailure, type Failed, refuseRecipient, type ErrorMeaning } from './failure.ts'
import { type ChannelTools, type HttpOutcome, readAccepted, sendJson } from './http.ts'
import { toStyled } from './text-styles.ts'
import { toWait } from '../../base/http.ts'

/** Bytes; Signal sends what is longer as an attachment, which not every client unfolds. */
const maxBytes = 2_000

const Accepted = z.object({ result: z.object({ timestamp: z.number() }) })

const isUuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** The parameters of `send` that name a recipient. */
type Recipient =
  | { readonly recipient: readonly [string] }
  | { readonly groupId: string }
  | { readonly username: readonly [string] }

export function createSignalChannel(config: ChannelConfig<'signal'>, tools: ChannelTools = {}): Channel {
  const { account, baseUrl, timeoutMs } = config

  return {
    id: 'signal',
    dedupes: false,
    to: config.to,
    whyNot: (to = config.to) => (toRecipient(to) === undefined ? refuse(to) : undefined),
    split: (markdown) =>
      splitMarkdown(markdown, { limit: maxBytes, measure: (piece) => Buffer.byteLength(toStyled(piece).text) }),
    async send({ to = config.to, text, nonce, signal }) {
      const recipient = toRecipient(to)
      if (recipient === undefined) return { kind: 'permanent', detail: refuse(to) }
      const styled = toStyled(text)
      const textStyle = styled.ranges.map(({ start, length, style }) => `${start}:${length}:${style}`)
      const outcome = await sendJson({
        url: `${baseUrl}/api/v1/rpc`,
        body: {
          jsonrpc: '2.0',
          id: nonce,
          method: 'send',
          params: {
            ...(account === undefined ? {} : { account }),
            ...recipient,
            message: styled.text,
            ...(textStyle.length === 0 ? {} : { textStyle }),
          },
        },
        timeoutMs,
        signal,
        ...tools,
      })
      return toResult(outcome)
    },
    async probe(signal) {
      const outcome = await sendJson({ method: 'GET', url: `${baseUrl}/api/v1/check`, timeoutMs, signal, ...tools })
      if (outcome.kind === 'answer' && outcome.status === 200) return { ok: true, detail: 'signal-cli is running.' }
      return { ok: false, detail: toFailure(outcome, { provider: 'signal-cli' }).detail }
    },
  }
}

function refuse(to: string | undefined): string {
  return refuseRecipient('signal', to, 'a phone number such as +15550100, uuid:<id>, username:<name> or group:<id>')
}

function toRecipient(to = ''): Recipient | undefined {
  const text = to.trim().replace(/^signal:/i, '')
  const [, form = '', rest = ''] = /^(uuid|username|group):(\S+)$/i.exec(text) ?? []
  switch (form.toLowerCase()) {
    case 'uuid':
      return isUuid.test(rest) ? { recipient: [rest.toLowerCase()] } : undefined
    case 'username':
      return { username: [rest] }
    case 'group':
      return /^[A-Za-z0-9+/]{20,}={0,2}$/.test(rest) ? { groupId: rest } : undefined
  }
  const number = text.replace(/[\s().-]/g, '')
  return /^\+[1-9]\d{6,14}$/.test(number) ? { recipient: [number] } : undefined
}

function toResult(outcome: HttpOutcome): SendResult {
  const accepted = readAccepted(outcome, Accepted)
  return accepted === undefined ? toSignalFailure(outcome) : { kind: 'sent', id: String(accepted.result.timestamp) }
}

// Errors: first what became of the recipient, then the code of the call. No message quotes the sentences of signal-cli.

const provider = 'signal-cli'

const RecipientResult = z.object({ type: z.string(), retryAfterSeconds: z.number().nonnegative().nullish() })
/** With status 200. */
const Refused = z.object({
  error: z.object({
    code: z.number(),
    data: z
      .object({ response: z.object({ results: z.array(RecipientResult) }) })
      .optional()
      .catch(undefined),
  }),
})

const pause: ErrorMeaning = {
  kind: 'rate-limited',
  hint: 'Signal asks for a pause. signal-cli submitRateLimitChallenge ends it at once.',
}
const untrusted: ErrorMeaning = {
  kind: 'permanent',
  hint: 'The safety number of the recipient has changed. Compare it, then run signal-cli trust.',
}
/** A connection that broke while the message was being sent counts as this, too. */
const disconnected: ErrorMeaning = { kind: 'ambiguous', hint: 'The connection to Signal failed.' }

const recipientErrors = new Map<string, ErrorMeaning>([
  ['RATE_LIMIT_FAILURE', pause],
  ['IDENTITY_FAILURE', untrusted],
  ['NETWORK_FAILURE', disconnected],
  [
    'UNREGISTERED_FAILURE',
    { kind: 'permanent', hint: 'The recipient is not registered with Signal. Check the number.' },
  ],
  ['INVALID_PRE_KEY_FAILURE', { kind: 'permanent', hint: 'The keys of the recipient are not valid.' }],
])

const callErrors = new Map<number, ErrorMeaning>([
  [
    -1,
    {
      kind: 'permanent',
      hint: 'It does not know the recipient, or may not write to the group. Check "to", and that the account is a member.',
    },
  ],
  [-3, disconnected],
  [-4, untrusted],
  [-5, pause],
  [-32_600, { kind: 'permanent', hint: 'It did not understand the request. It may be too old: update it.' }],
  [-32_601, { kind: 'permanent', hint: 'It does not know the method. It may be too old: update it.' }],
  [-32_602, { kind: 'permanent', hint: 'It has no such account. Set channels.signal.account to one of its accounts.' }],
])

const unexpected: ErrorMeaning = { kind: 'ambiguous', hint: 'Its own log says more.' }

function toSignalFailure(outcome: HttpOutcome): Failed {
  const refused = readAccepted(outcome, Refused)
  if (refused === undefined) return toFailure(outcome, { provider })
  const { code, data } = refused.error
  const result = data?.response.results.find(({ type }) => recipientErrors.has(type))
  const { kind, hint } =
    (result === undefined ? undefined : recipientErrors.get(result.type)) ?? callErrors.get(code) ?? unexpected
  const detail = `${provider} answered with the error ${code}. ${hint}`
  if (kind !== 'rate-limited') return { kind, detail }
  const seconds = result?.retryAfterSeconds ?? undefined
  return { kind, detail, ...toWait(seconds === undefined ? undefined : seconds * 1_000) }
}
