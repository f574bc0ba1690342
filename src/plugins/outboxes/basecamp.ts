// Basecamp: the last 25 deliveries of a webhook. https://github.com/basecamp/bc3-api/blob/master/sections/webhooks.md
import { z } from 'zod'
import { defineOutbox, type Outbox, type OutboxHost, type OutboxPage, type SentAttempt } from '../../define.ts'
import {
  apiUrlWithDefault,
  isSuccess,
  nonBlank,
  parseApiAnswer,
  senderId,
  tenMinutes,
  token,
  toSentHeaders,
} from './shared/kit.ts'
import { readRawItems, readRawValue } from './shared/raw-value.ts'

const Webhook = z.object({
  active: z.boolean(),
  payload_url: z.string(),
  types: z.array(z.string()),
  recent_deliveries: z
    .array(
      z.object({
        id: z.int(),
        created_at: z.iso.datetime({ offset: true }),
        request: z.object({
          headers: z.record(z.string(), z.unknown()).nullable(),
          body: z.object({ id: z.union([z.string(), z.number()]).transform(String) }),
        }),
        // an attempt has no response if the connection failed
        response: z.object({ code: z.coerce.number().nullish() }).nullish(),
      }),
    )
    .default([]),
})

const options = z.strictObject({
  account: senderId.describe('Id of the account: the number in the URL of a page.'),
  hookId: senderId.describe('Id of the webhook.'),
  token: token.describe('Access token of an OAuth app.'),
  contact: nonBlank.describe('Mail address or URL of you, which Basecamp requires in each request.'),
  baseUrl: apiUrlWithDefault('https://3.basecampapi.com'),
})
type Settings = z.infer<typeof options>

export const basecampOutbox = defineOutbox({
  name: 'basecamp',
  about: 'The last 25 deliveries.',
  remembers: true,
  options,
  create: openBasecamp,
})

function openBasecamp(settings: Settings, { openApi }: OutboxHost): Outbox {
  const { baseUrl, account, hookId, token, contact } = settings
  const path = `/${account}/webhooks/${hookId}.json`
  const headers = { authorization: `Bearer ${token}`, 'user-agent': `Hookloom (${contact})` }
  const call = openApi({ baseUrl, authorize: () => headers })
  const fetchWebhook = async () => {
    const answer = await call({ path })
    return { answer, webhook: parseApiAnswer(Webhook, answer, 'Basecamp’s webhook') }
  }

  return {
    name: `basecamp ${baseUrl}${path}`,
    remembers: true,
    hasTimes: true,
    overlap: tenMinutes,
    async *pages(): AsyncGenerator<OutboxPage> {
      const { answer, webhook } = await fetchWebhook()
      const texts = readRawItems(readRawValue(answer.text, ['recent_deliveries']) ?? '')
      const attempts = webhook.recent_deliveries.map((delivery, index) => toAttempt(delivery, texts[index] ?? ''))
      yield { attempts, now: answer.now }
    },
    fetch: async () => undefined,
    async state() {
      const { active } = (await fetchWebhook()).webhook
      return active
        ? { isOn: true }
        : { isOn: false, why: 'Basecamp has deactivated the webhook, because requests failed.' }
    },
    async turnOn() {
      const { payload_url, types } = (await fetchWebhook()).webhook
      await call({ method: 'PUT', path, body: { payload_url, types, active: true } })
    },
  }
}

type RecentDelivery = z.infer<typeof Webhook>['recent_deliveries'][number]

function toAttempt({ id, created_at, request, response }: RecentDelivery, text: string): SentAttempt {
  const body = readRawValue(text, ['request', 'body']) ?? ''
  return {
    // the id of the event, which is the same in each attempt
    id: request.body.id,
    place: Date.parse(created_at),
    isDelivered: isSuccess(response?.code ?? 0),
    ref: String(id),
    request: { headers: toSentHeaders(request.headers ?? {}), body: new TextEncoder().encode(body) },
  }
}
