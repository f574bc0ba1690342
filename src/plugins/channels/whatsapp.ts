// WhatsApp, through Meta's Cloud API. https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages
import { z } from 'zod'
import {
  type ChannelHost,
  type ChannelParts,
  type ChannelSettings,
  type SendResult,
  defineChannel,
} from '../../define.ts'
import { splitMarkdown } from './shared/chunks.ts'
import {
  type ErrorMeaning,
  type HttpOutcome,
  readSuccess,
  readError,
  describeWrongRecipient,
  createFailureReader,
  sendJson,
} from './shared/http.ts'
import { plainText, whatsappText } from './shared/markup.ts'
import { render } from './shared/markdown.ts'
import { cut, nonBlank, httpUrl, pathPart } from './shared/values.ts'

const maxLength = 4_096
/** The maximum length of a template variable, not counting the ellipsis. */
const maxVariableLength = 1_023

const SuccessAnswer = z.object({ messages: z.tuple([z.object({ id: z.string() })]).rest(z.unknown()) })
const ErrorAnswer = z.object({ error: z.object({ code: z.number() }) })

const options = z.strictObject({
  accessToken: nonBlank.describe('Token of a system user.'),
  phoneNumberId: pathPart.describe('Id of the sending phone number, not the number itself.'),
  baseUrl: httpUrl.default('https://graph.facebook.com/v25.0').describe('URL of the Graph API, with its version.'),
  template: z
    .strictObject({
      name: nonBlank.describe('Name of an approved template with one variable in its body.'),
      language: nonBlank.default('en').describe('Language code of the template, such as en_US.'),
    })
    .optional()
    .describe('Message template for recipients who have not written for 24 hours.'),
})
type Settings = ChannelSettings<typeof options>

export const whatsappChannel = defineChannel({
  name: 'whatsapp',
  about: 'WhatsApp, through the Cloud API. `to`: a phone number with country code.',
  options,
  create: createWhatsAppChannel,
})

function createWhatsAppChannel(config: Settings, tools: ChannelHost): ChannelParts {
  const { template, timeoutMs } = config
  const url = `${config.baseUrl}/${encodeURIComponent(config.phoneNumberId)}`
  const shared = { headers: { authorization: `Bearer ${config.accessToken}` }, timeoutMs, ...tools }

  const post = (to: string, content: object, signal: AbortSignal): Promise<HttpOutcome> =>
    sendJson({
      ...shared,
      url: `${url}/messages`,
      body: { messaging_product: 'whatsapp', recipient_type: 'individual', to, ...content },
      signal,
    })

  return {
    dedupes: false,
    whyNot: (to = config.to) => (readPhoneNumber(to) === undefined ? explainRecipient(to) : undefined),
    split: (written, format) =>
      splitMarkdown(written, { limit: maxLength, measure: (piece) => render(piece, whatsappText, format).length }),
    async send({ to = config.to, text, format, signal }) {
      const digits = readPhoneNumber(to)
      if (digits === undefined) return { kind: 'permanent', detail: explainRecipient(to) }
      const body = render(text, whatsappText, format)
      const outcome = await post(digits, { type: 'text', text: { body, preview_url: false } }, signal)
      if (template === undefined || readError(outcome, ErrorAnswer)?.error.code !== windowClosed)
        return toSendResult(outcome)
      return toSendResult(await post(digits, buildTemplate(template, render(text, plainText, format)), signal))
    },
    async probe(signal) {
      const outcome = await sendJson({ ...shared, method: 'GET', url, signal })
      if (outcome.kind === 'answer' && outcome.status === 200) {
        return { ok: true, detail: 'Meta knows the number and accepts the access token.' }
      }
      return { ok: false, detail: readFailure(outcome).detail }
    },
  }
}

function explainRecipient(to: string | undefined): string {
  return describeWrongRecipient('whatsapp', to, 'a phone number with its country code, such as +15550100')
}

/** Reads the number: digits with the country code, as the API requires. */
function readPhoneNumber(to = ''): string | undefined {
  const [, number] = /^(?:whatsapp:)?\+?([\d\s().-]+)$/i.exec(to.trim()) ?? []
  const digits = number?.replace(/\D/g, '')
  return digits !== undefined && /^[1-9]\d{6,14}$/.test(digits) ? digits : undefined
}

function buildTemplate({ name, language }: { name: string; language: string }, plain: string) {
  // a variable allows one line of 1,024 characters without repeated spaces
  const text = cut(plain.replace(/\s+/g, ' ').trim(), maxVariableLength)
  const components = [{ type: 'body', parameters: [{ type: 'text', text }] }]
  return { type: 'template', template: { name, language: { code: language }, components } }
}

function toSendResult(outcome: HttpOutcome): SendResult {
  const accepted = readSuccess(outcome, SuccessAnswer)
  return accepted === undefined ? readFailure(outcome) : { kind: 'sent', id: accepted.messages[0].id }
}

// Error codes; most come with status 400, so the code decides.
// https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes

/** The recipient has not written for 24 hours. */
const windowClosed = 131_047

const unpermitted = permanent(
  'The access token lacks a permission: whatsapp_business_messaging to send, whatsapp_business_management for "hookloom doctor".',
)

const meanings: ReadonlyMap<number, ErrorMeaning> = new Map<number, ErrorMeaning>([
  [4, rateLimited('The app has made too many calls.')],
  [80_007, rateLimited('The business account has made too many calls.')],
  [130_429, rateLimited('The number sends too many messages.')],
  [131_048, rateLimited('Meta limits the number, because its messages were blocked or reported.')],
  // the limit is one message in six seconds to the same person
  [131_056, { ...rateLimited('Too many messages went to this recipient.'), retryAfterMs: 6_000 }],
  [2, transient('The API is down or overloaded.')],
  [131_000, transient('Meta could not send the message and gave no reason.')],
  [131_016, transient('The service is unavailable.')],
  [133_004, transient('The server is unavailable.')],
  [0, permanent('The access token is not valid any more. Renew channels.whatsapp.accessToken.')],
  [190, permanent('The access token is wrong or has expired. Renew channels.whatsapp.accessToken.')],
  [10, unpermitted],
  [200, unpermitted],
  [33, permanent('The sending number does not exist. Check channels.whatsapp.phoneNumberId.')],
  [100, permanent('Meta refused a parameter. Check channels.whatsapp.phoneNumberId and the recipient.')],
  [131_026, permanent('The recipient has no WhatsApp, or has not accepted its terms. Check the number.')],
  [131_030, permanent('A test number sends to listed recipients only. Add this recipient in the app dashboard.')],
  [131_031, permanent('The business account is locked. See WhatsApp Manager.')],
  [131_042, permanent('The business account lacks a payment method. See WhatsApp Manager.')],
  [
    windowClosed,
    permanent(
      'The recipient has not written for 24 hours, and WhatsApp then accepts templates only. ' +
        'Set channels.whatsapp.template to an approved template with one body variable.',
    ),
  ],
  [132_000, permanent('The template does not have one body variable. Check channels.whatsapp.template.')],
  [132_001, permanent('The template does not exist in this language. Check channels.whatsapp.template.')],
  [132_015, permanent('Meta paused the template because of its quality. See WhatsApp Manager.')],
  [133_010, permanent('The sending number is not registered. Register it in WhatsApp Manager.')],
])

const readFailure = createFailureReader({
  provider: 'WhatsApp',
  schema: ErrorAnswer,
  readCode: ({ error }) => error.code,
  explain: ({ body }) => (body === undefined ? undefined : meanings.get(body.error.code)),
})

function rateLimited(hint: string): ErrorMeaning {
  return { kind: 'rate-limited', hint }
}

function transient(hint: string): ErrorMeaning {
  return { kind: 'transient', hint }
}

function permanent(hint: string): ErrorMeaning {
  return { kind: 'permanent', hint }
}
