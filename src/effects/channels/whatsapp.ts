// WhatsApp, through Meta's Cloud API. https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages
import { z } from 'zod'
import type { Channel, SendResult } from '../../model/channel.ts'
import type { ChannelConfig } from '../../model/channels-config.ts'
import { cut } from '../../base/text.ts'
import { splitMarkdown } from './chunks.ts'
import type { Failed } from './failure.ts'
import { plainText, whatsappText } from './markup.ts'
import { type ChannelTools, type HttpOutcome, readAccepted, readRefused, sendJson } from './http.ts'
import { render } from './markdown.ts'
import { refuseRecipient } from './recipient.ts'
import { toCodedFailure } from './error-codes.ts'
import { meanings, windowClosed } from './whatsapp-errors.ts'

const maxLength = 4_096
/** Of a template's variable, less the ellipsis. */
const maxVariableLength = 1_023

const Accepted = z.object({ messages: z.tuple([z.object({ id: z.string() })]).rest(z.unknown()) })
const Refused = z.object({ error: z.object({ code: z.number() }) })

export function createWhatsAppChannel(config: ChannelConfig<'whatsapp'>, tools: ChannelTools = {}): Channel {
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
    id: 'whatsapp',
    dedupes: false,
    to: config.to,
    whyNot: (to = config.to) => (toDigits(to) === undefined ? refuse(to) : undefined),
    split: (markdown) =>
      splitMarkdown(markdown, { limit: maxLength, measure: (piece) => render(piece, whatsappText).length }),
    async send({ to = config.to, text, signal }) {
      const digits = toDigits(to)
      if (digits === undefined) return { kind: 'permanent', detail: refuse(to) }
      const body = render(text, whatsappText)
      const outcome = await post(digits, { type: 'text', text: { body, preview_url: false } }, signal)
      if (template === undefined || toCode(outcome) !== windowClosed) return toResult(outcome)
      return toResult(await post(digits, toTemplate(template, render(text, plainText)), signal))
    },
    async probe(signal) {
      const outcome = await sendJson({ ...shared, method: 'GET', url, signal })
      if (outcome.kind === 'answer' && outcome.status === 200) {
        return { ok: true, detail: 'Meta knows the number and takes the access token.' }
      }
      return { ok: false, detail: toFailed(outcome).detail }
    },
  }
}

function refuse(to: string | undefined): string {
  return refuseRecipient('whatsapp', to, 'a phone number with its country code, such as +15550100')
}

/** Digits with the country code, as the API wants them. */
function toDigits(to = ''): string | undefined {
  const [, number] = /^(?:whatsapp:)?\+?([\d\s().-]+)$/i.exec(to.trim()) ?? []
  const digits = number?.replace(/\D/g, '')
  return digits !== undefined && /^[1-9]\d{6,14}$/.test(digits) ? digits : undefined
}

function toTemplate({ name, language }: { name: string; language: string }, plain: string) {
  // a variable takes one line of 1,024 characters and no run of spaces
  const text = cut(plain.replace(/\s+/g, ' ').trim(), maxVariableLength)
  const components = [{ type: 'body', parameters: [{ type: 'text', text }] }]
  return { type: 'template', template: { name, language: { code: language }, components } }
}

function toCode(outcome: HttpOutcome): number | undefined {
  return readRefused(outcome, Refused)?.error.code
}

function toFailed(outcome: HttpOutcome): Failed {
  const code = toCode(outcome)
  const meaning = code === undefined ? undefined : meanings.get(code)
  return toCodedFailure(outcome, { provider: 'WhatsApp', code: code?.toString(), meaning })
}

function toResult(outcome: HttpOutcome): SendResult {
  const accepted = readAccepted(outcome, Accepted)
  return accepted === undefined ? toFailed(outcome) : { kind: 'sent', id: accepted.messages[0].id }
}
