// A fake of a Basecamp webhook with its last 25 deliveries: https://github.com/basecamp/bc3-api/blob/master/sections/webhooks.md
import type { Received, Reply } from './loopback.ts'
import { type FakeOutbox, startOutbox } from './outbox.ts'

type Tried = {
  readonly id: number
  readonly at: number
  readonly code: number | undefined
  readonly body: { readonly id: number }
}

export type FakeBasecamp = FakeOutbox & {
  /** Adds an attempt to deliver an event, by default one whose connection failed. */
  addAttempt(eventId: number, code?: number): void
  readonly hook: { active: boolean }
}

export const basecampToken = 'basecamp-oauth-token'
const path = '/195539477/webhooks/3.json'

export async function startBasecamp({ clock }: { clock: () => number }): Promise<FakeBasecamp> {
  const tried: Tried[] = []
  const hook = { active: true }
  const fake = await startOutbox({
    clock,
    isAuthorised: ({ headers }) =>
      headers.authorization === `Bearer ${basecampToken}` && /\(ops@example\.org\)/.test(headers['user-agent'] ?? ''),
    buildLimitAnswer: ({ seconds }) => ({ status: 429, headers: { 'retry-after': String(seconds) }, body: '' }),
    answer,
  })

  function answer(request: Received): Reply | undefined {
    if (request.path !== path) return undefined
    if (request.method === 'PUT') {
      const { active, payload_url: url } = request.body as { active?: boolean; payload_url?: string }
      if (url !== 'https://hooks.example/hooks/basecamp') fake.faults.push('PUT without payload_url')
      hook.active = active ?? hook.active
    }
    const recent = tried.toReversed().slice(0, 25).map(toDelivery)
    const url = { payload_url: 'https://hooks.example/hooks/basecamp' }
    return { status: 200, body: { id: 3, active: hook.active, ...url, types: ['all'], recent_deliveries: recent } }
  }

  return Object.assign(fake, {
    hook,
    addAttempt(eventId: number, code?: number) {
      tried.push({ id: 100 + tried.length, at: clock(), code, body: { id: eventId } })
    },
  })
}

function toDelivery({ id, at, code, body }: Tried): object {
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': 'Basecamp3 Webhook',
    'X-Request-Id': `request-${id}`,
  }
  return {
    id,
    created_at: new Date(at).toISOString(),
    request: { headers, body: { ...body, kind: 'message_created', recording: { title: `event ${body.id}` } } },
    response:
      code === undefined
        ? { headers: {}, code: null, message: null, body: null }
        : { headers: {}, code, message: '', body: '' },
  }
}
