// A fake of Stripe's events and webhook endpoints: https://docs.stripe.com/api/events/list. It does not check
// the rights of a restricted key.
import type { Received, Reply } from './loopback.ts'
import { type FakeOutbox, startOutbox } from './outbox.ts'

type Event = {
  readonly id: string
  readonly created: number
  readonly type: string
  isDelivered: boolean
  readonly object: object
}

export type FakeStripe = FakeOutbox & {
  /** Adds an event, by default one that could not be delivered. Returns its id. */
  addEvent(event?: Partial<Omit<Event, 'created'>>): string
  /** Marks an event as delivered. */
  markDelivered(id: string): void
  /** The body of a webhook with this event. */
  buildBody(id: string): string
  readonly endpoint: { status: 'enabled' | 'disabled'; events: string[] }
}

export const stripeKey = 'rk_live_recover'
const endpointPath = '/v1/webhook_endpoints/we_1'
const days = 86_400_000

export async function startStripe({ clock }: { clock: () => number }): Promise<FakeStripe> {
  const events: Event[] = []
  const endpoint: FakeStripe['endpoint'] = { status: 'enabled', events: ['charge.succeeded', 'charge.failed'] }
  const fake = await startOutbox({
    clock,
    isAuthorised: ({ headers }) => headers.authorization === `Bearer ${stripeKey}`,
    buildLimitAnswer: () => ({ status: 429, body: { error: { type: 'invalid_request_error', code: 'rate_limit' } } }),
    answer: (request) => answerEndpoint(request) ?? answerEvents(request),
  })

  function answerEndpoint({ method, path, text }: Received): Reply | undefined {
    if (path !== endpointPath) return undefined
    if (method === 'POST' && new URLSearchParams(text).get('disabled') === 'false') endpoint.status = 'enabled'
    const { status, events: enabled } = endpoint
    return {
      status: 200,
      body: { id: 'we_1', status, enabled_events: enabled, url: 'https://hooks.example/hooks/stripe' },
    }
  }

  function answerEvents({ path, query }: Received): Reply | undefined {
    if (path !== '/v1/events' || query.get('delivery_success') !== 'false') return undefined
    const types = query.getAll('types[]')
    const size = Math.min(100, Number(query.get('limit') ?? 10))
    const kept = events.filter(({ created }) => clock() - created * 1_000 < 30 * days)
    const wanted = kept
      .filter(({ type, isDelivered }) => !isDelivered && (types.length === 0 || types.includes(type)))
      .toReversed()
    const after = query.get('starting_after')
    const first = after === null ? 0 : wanted.findIndex(({ id }) => id === after) + 1
    const page = wanted.slice(first, first + size)
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(
        { object: 'list', data: page.map(toBody), has_more: first + size < wanted.length, url: '/v1/events' },
        undefined,
        2,
      ),
    }
  }

  const find = (id: string) => events.find((event) => event.id === id)
  return Object.assign(fake, {
    endpoint,
    addEvent({
      id = `evt_${events.length}`,
      type = 'charge.succeeded',
      isDelivered = false,
      object = {},
    }: Partial<Event> = {}) {
      events.push({ id, type, isDelivered, object, created: Math.floor(clock() / 1_000) })
      return id
    },
    markDelivered(id: string) {
      const event = find(id)
      if (event !== undefined) event.isDelivered = true
    },
    buildBody: (id: string) =>
      JSON.stringify(toBody(find(id) ?? { id, created: 0, type: '', object: {} }), undefined, 2),
  })
}

function toBody({ id, created, type, object }: Pick<Event, 'id' | 'created' | 'type' | 'object'>): object {
  return {
    id,
    object: 'event',
    api_version: '2025-10-29',
    created,
    data: { object },
    livemode: true,
    pending_webhooks: 1,
    type,
  }
}
