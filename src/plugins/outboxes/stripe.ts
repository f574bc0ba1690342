// Stripe: the events of the last 30 days that were not delivered, of the types of one webhook endpoint.
// https://docs.stripe.com/webhooks/process-undelivered-events
import { z } from 'zod'
import { defineOutbox, type Outbox, type OutboxHost, type OutboxPage, type SentAttempt } from '../../define.ts'
import { apiUrlWithDefault, parseApiAnswer, pathPart, tenMinutes, token } from './shared/kit.ts'
import { readRawItems, readRawValue } from './shared/raw-value.ts'

const EventList = z.object({
  has_more: z.boolean(),
  data: z.array(z.object({ id: z.string().min(1), created: z.number(), type: z.string() })),
})
/** https://docs.stripe.com/api/webhook_endpoints/object */
const Endpoint = z.object({ status: z.string(), url: z.string().optional(), enabled_events: z.array(z.string()) })

/** The maximum number of types by which the API can filter. */
const maxTypes = 20

const options = z.strictObject({
  hookId: pathPart.describe('Id of the webhook endpoint, such as we_1Mr5jULkdIwHu7ix1ibLTM0x.'),
  token: token.describe('Restricted key that may read events and webhook endpoints.'),
  baseUrl: apiUrlWithDefault('https://api.stripe.com'),
})
type Settings = z.infer<typeof options>

export const stripeOutbox = defineOutbox({
  name: 'stripe',
  about: 'Events of the last 30 days.',
  remembers: true,
  options,
  create: openStripe,
})

function openStripe({ baseUrl, hookId, token }: Settings, { openApi }: OutboxHost): Outbox {
  const call = openApi({ baseUrl, authorize: () => ({ authorization: `Bearer ${token}` }) })
  const endpointPath = `/v1/webhook_endpoints/${encodeURIComponent(hookId)}`
  const readEndpoint = async () =>
    parseApiAnswer(Endpoint, await call({ path: endpointPath }), 'Stripe’s webhook endpoint')

  return {
    name: `stripe ${baseUrl}${endpointPath}`,
    remembers: true,
    hasTimes: true,
    overlap: tenMinutes,
    async *pages(): AsyncGenerator<OutboxPage> {
      const { enabled_events: wanted, url } = await readEndpoint()
      const isAll = wanted.includes('*')
      const types = isAll || wanted.length > maxTypes ? [] : wanted
      const filter = types.map((type) => `&types[]=${encodeURIComponent(type)}`).join('')
      for (let after = ''; ;) {
        const more = after === '' ? '' : `&starting_after=${encodeURIComponent(after)}`
        const { text, now } = await call({ path: `/v1/events?delivery_success=false&limit=100${filter}${more}` })
        const { data, has_more: hasMore } = parseApiAnswer(EventList, { text }, 'Stripe’s list of events')
        const texts = readRawItems(readRawValue(text, ['data']) ?? '')
        const attempts = data.flatMap((event, index) =>
          isAll || wanted.includes(event.type) ? toAttempt(event, texts[index] ?? '', url) : [],
        )
        yield { attempts, now }
        const last = data.at(-1)
        if (!hasMore || last === undefined) return
        after = last.id
      }
    },
    fetch: async () => undefined,
    async state() {
      const { status } = await readEndpoint()
      return status === 'disabled'
        ? { isOn: false, why: 'The webhook endpoint is disabled at Stripe.' }
        : { isOn: true }
    },
    async turnOn() {
      await call({ method: 'POST', path: endpointPath, body: new URLSearchParams({ disabled: 'false' }) })
    },
  }
}

type ListedEvent = z.infer<typeof EventList>['data'][number]

function toAttempt({ id, created }: ListedEvent, text: string, url: string | undefined): SentAttempt {
  const body = new TextEncoder().encode(text)
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
  }
  return { id, place: created * 1_000, isDelivered: false, ref: id, request: { headers, body, url } }
}
