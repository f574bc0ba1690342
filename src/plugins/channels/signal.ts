// Signal, through signal-cli as a daemon with --http. https://github.com/AsamK/signal-cli/blob/master/man/signal-cli-jsonrpc.5.adoc
import { z } from 'zod'
import {
  type ChannelHost,
  type ChannelParts,
  type ChannelSettings,
  type SendResult,
  type TextFormat,
  defineChannel,
} from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  type ErrorMeaning,
  type HttpOutcome,
  readSuccess,
  describeWrongRecipient,
  createFailureReader,
  sendJson,
} from './shared/http.ts'
import { plainText } from './shared/markup.ts'
import { type Markup, render } from './shared/markdown.ts'
import { nonBlank, httpUrl } from './shared/values.ts'

/** The maximum number of bytes of a text. Signal sends a longer text as an attachment, which not every client shows. */
const maxBytes = 2_000

const SuccessAnswer = z.object({ result: z.object({ timestamp: z.number() }) })

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** The parameters of `send` that name a recipient. */
type Recipient =
  | { readonly recipient: readonly [string] }
  | { readonly groupId: string }
  | { readonly username: readonly [string] }

const options = z.strictObject({
  account: nonBlank.optional().describe('The sending phone number. Set it if the daemon has several accounts.'),
  baseUrl: httpUrl.default('http://127.0.0.1:8080').describe('URL of signal-cli, which runs as a daemon with --http.'),
})
type Settings = ChannelSettings<typeof options>

export const signalChannel = defineChannel({
  name: 'signal',
  about: 'Signal, through signal-cli. `to`: a phone number, uuid:<id>, username:<name> or group:<id>.',
  options,
  create: createSignalChannel,
})

function createSignalChannel(config: Settings, tools: ChannelHost): ChannelParts {
  const { account, baseUrl, timeoutMs } = config

  return {
    dedupes: false,
    whyNot: (to = config.to) => (readRecipient(to) === undefined ? explainRecipient(to) : undefined),
    split: (written, format) =>
      splitMarkdown(written, {
        limit: maxBytes,
        measure: (piece) => Buffer.byteLength(toStyledText(piece, format).text),
      }),
    async send({ to = config.to, text, format, nonce, signal }) {
      const recipient = readRecipient(to)
      if (recipient === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const styled = toStyledText(text, format)
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
      return toSendResult(outcome)
    },
    async probe(signal) {
      const outcome = await sendJson({ method: 'GET', url: `${baseUrl}/api/v1/check`, timeoutMs, signal, ...tools })
      if (outcome.kind === 'answer' && outcome.status === 200) return { ok: true, detail: 'signal-cli is running.' }
      return { ok: false, detail: readFailure(outcome).detail }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient(
    'signal',
    to,
    'a phone number such as +15550100, uuid:<id>, username:<name> or group:<id>',
  )
}

function readRecipient(to = ''): Recipient | undefined {
  const text = to.trim().replace(/^signal:/i, '')
  const [, form = '', rest = ''] = /^(uuid|username|group):(\S+)$/i.exec(text) ?? []
  switch (form.toLowerCase()) {
    case 'uuid':
      return uuid.test(rest) ? { recipient: [rest.toLowerCase()] } : undefined
    case 'username':
      return { username: [rest] }
    case 'group':
      return /^[A-Za-z0-9+/]{20,}={0,2}$/.test(rest) ? { groupId: rest } : undefined
  }
  const number = text.replace(/[\s().-]/g, '')
  return /^\+[1-9]\d{6,14}$/.test(number) ? { recipient: [number] } : undefined
}

function toSendResult(outcome: HttpOutcome): SendResult {
  const accepted = readSuccess(outcome, SuccessAnswer)
  return accepted === undefined ? readFailure(outcome) : { kind: 'sent', id: String(accepted.result.timestamp) }
}

// The meaning of errors. The result for the recipient is read first, then the code of the call. No message quotes signal-cli.

const RecipientResult = z.object({ type: z.string(), retryAfterSeconds: z.number().nonnegative().nullish() })
const ErrorAnswer = z.object({
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
/** The connection may have broken during the send, so the message may have arrived. */
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
      hint: 'The recipient is unknown, or the account may not write to the group. Check "to", and whether the account is a member.',
    },
  ],
  [-3, disconnected],
  [-4, untrusted],
  [-5, pause],
  [-32_600, { kind: 'permanent', hint: 'It did not understand the request. It may be too old: update it.' }],
  [-32_601, { kind: 'permanent', hint: 'It does not know the method. It may be too old: update it.' }],
  [-32_602, { kind: 'permanent', hint: 'It has no such account. Set channels.signal.account to one of its accounts.' }],
])

const unexpected: ErrorMeaning = { kind: 'ambiguous', hint: 'See its log.' }

const readFailure = createFailureReader({
  provider: 'signal-cli',
  schema: ErrorAnswer,
  refusesWith200: true,
  readCode: ({ error }) => error.code,
  explain({ body }) {
    if (body === undefined) return undefined
    const { code, data } = body.error
    const result = data?.response.results.find(({ type }) => recipientErrors.has(type))
    const meaning = (result && recipientErrors.get(result.type)) ?? callErrors.get(code) ?? unexpected
    const seconds = result?.retryAfterSeconds ?? undefined
    return { ...meaning, retryAfterMs: seconds === undefined ? undefined : seconds * 1_000 }
  },
})

type Style = 'BOLD' | 'ITALIC' | 'STRIKETHROUGH' | 'MONOSPACE'

/** A style of a part of the text. `start` and `length` are in UTF-16 units. */
type StyleRange = { readonly start: number; readonly length: number; readonly style: Style }

const styles: readonly Style[] = ['BOLD', 'ITALIC', 'STRIKETHROUGH', 'MONOSPACE']
/** Each style has two marks, which are noncharacters (Unicode, 23.7): the first opens the style, the second closes it. */
const firstMark = 0xfdd0
const marks = /[\uFDD0-\uFDD7]/g

function mark(style: Style, inner: string): string {
  const opening = firstMark + 2 * styles.indexOf(style)
  return `${String.fromCharCode(opening)}${inner}${String.fromCharCode(opening + 1)}`
}

const signalMarkup: Markup = {
  ...plainText,
  strong: (inner) => mark('BOLD', inner),
  emphasis: (inner) => mark('ITALIC', inner),
  strike: (inner) => mark('STRIKETHROUGH', inner),
  code: (plain) => mark('MONOSPACE', plain),
  block: (plain) => mark('MONOSPACE', plain),
  heading: (inner) => mark('BOLD', inner),
}

export function toStyledText(
  markdown: string,
  format: TextFormat = 'markdown',
): { readonly text: string; readonly ranges: readonly StyleRange[] } {
  const written = render(markdown.replace(marks, ''), signalMarkup, format)
  const starts = new Map<Style, number[]>(styles.map((style) => [style, []]))
  const ranges: StyleRange[] = []
  let text = ''
  let at = 0
  for (const { 0: found, index } of written.matchAll(marks)) {
    text += written.slice(at, index)
    at = index + 1
    const place = found.charCodeAt(0) - firstMark
    const style = styles[Math.floor(place / 2)]
    const open = style === undefined ? undefined : starts.get(style)
    if (style === undefined || open === undefined) continue
    if (place % 2 === 0) {
      open.push(text.length)
      continue
    }
    const start = open.pop()
    if (start !== undefined && start < text.length) ranges.push({ start, length: text.length - start, style })
  }
  return { text: text + written.slice(at), ranges }
}
