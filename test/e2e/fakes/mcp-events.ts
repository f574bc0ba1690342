// A server with MCP Events, as their specification describes it: subscriptions with a lease, a check of the callback, signed posts that are repeated, and
// replay from a cursor. It permits callbacks on loopback. https://modelcontextprotocol.io/extensions/events/overview
import { hash, randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'
import { onFileEnd } from '../../file-end.ts'
import { type Loopback, type Received, startLoopback } from './loopback.ts'

export const mcpToken = 'mcp-token-0123456789'

const Subscribe = z.object({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  delivery: z.object({
    mode: z.literal('webhook'),
    url: z.url(),
    secret: z.string().refine((secret) => {
      const key = /^whsec_([A-Za-z\d+/]+={0,2})$/.exec(secret)?.[1]
      const { length } = Buffer.from(key ?? '', 'base64')
      return length >= 24 && length <= 64
    }),
  }),
  cursor: z.string().nullable(),
  ttlMs: z.number().nullable().optional(),
})
const Unsubscribe = z.object({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  delivery: z.object({ url: z.url() }),
})
const Call = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.number(),
  method: z.string(),
  params: z.looseObject({
    _meta: z.object({
      'io.modelcontextprotocol/protocolVersion': z.literal('2026-07-28'),
      'io.modelcontextprotocol/clientCapabilities': z.looseObject({}),
    }),
  }),
})

/** An event at its place in the log of the server, which begins at 1. */
type Occurrence = { readonly at: number; readonly eventId: string; readonly name: string; readonly data: object }

type Subscription = z.infer<typeof Subscribe> & {
  readonly id: string
  endsAt: number
  /** The places of the events that are not acknowledged. */
  readonly pending: Set<number>
  /** The last place whose event was given to the subscription. */
  seen: number
}

class RpcError extends Error {
  readonly code: number
  readonly data: object | undefined
  constructor(code: number, data?: object) {
    super(`error ${code}`)
    this.code = code
    this.data = data
  }
}

/** What a server has besides its transport. */
function createMcpEvents({ leaseMs = 3_600_000, offered = ['incident.created', 'incident.closed'] } = {}) {
  const log: Occurrence[] = []
  const subscriptions = new Map<string, Subscription>()
  const checked = new Set<string>()
  const calls: { readonly method: string; readonly params: Record<string, unknown> }[] = []
  const closing = new AbortController()
  onFileEnd(() => closing.abort())

  async function postSigned({ id, delivery }: Pick<Subscription, 'id' | 'delivery'>, messageId: string, body: object) {
    const text = JSON.stringify(body)
    const at = new Date()
    return await fetch(delivery.url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        'webhook-id': messageId,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': new Webhook(delivery.secret).sign(messageId, at, text),
        'x-mcp-subscription-id': id,
      },
      body: text,
    })
  }

  async function checkCallback(one: Pick<Subscription, 'id' | 'delivery'>): Promise<void> {
    if (checked.has(one.delivery.url)) return
    const challenge = randomUUID()
    const fail = (reason: string) => new RpcError(-32_015, { reason })
    const answer = await postSigned(one, `msg_verification_${randomUUID()}`, { type: 'verification', challenge }).catch(
      () => {
        throw fail('connection_refused')
      },
    )
    const echoed = z.object({ challenge: z.string() }).safeParse(await answer.json().catch(() => undefined)).data
    if (!answer.ok || echoed?.challenge !== challenge) throw fail('challenge_failed')
    checked.add(one.delivery.url)
  }

  const readWatermark = ({ pending, seen }: Subscription) => String(Math.min(...pending, seen + 1) - 1)

  function give(one: Subscription, event: Occurrence): void {
    one.pending.add(event.at)
    one.seen = Math.max(one.seen, event.at)
    void repeat()
    async function repeat() {
      while (!closing.signal.aborted && subscriptions.get(one.id) === one && one.endsAt > Date.now()) {
        const { at: _, ...rest } = event
        const body = { ...rest, timestamp: '2026-02-19T16:00:00Z', cursor: readWatermark(one) }
        const status = await postSigned(one, event.eventId, body).then(
          (answer) => answer.status,
          () => 0,
        )
        if ((status >= 200 && status < 300) || status === 410 || status === 413)
          return void one.pending.delete(event.at)
        await new Promise((done) => setTimeout(done, 100))
      }
    }
  }

  const toId = ({ name, arguments: args, delivery }: z.infer<typeof Unsubscribe>) =>
    `sub_${hash('sha256', JSON.stringify([mcpToken, delivery.url, name, args])).slice(0, 16)}`

  async function subscribe(params: unknown): Promise<object> {
    const { data } = Subscribe.safeParse(params)
    if (data === undefined) throw new RpcError(-32_602)
    if (!offered.includes(data.name)) throw new RpcError(-32_011, { kind: 'event' })
    const id = toId(data)
    await checkCallback({ id, delivery: data.delivery })
    const endsAt = Date.now() + Math.min(data.ttlMs ?? leaseMs, leaseMs)
    const live = subscriptions.get(id)
    if (live !== undefined && live.endsAt > Date.now()) Object.assign(live, { delivery: data.delivery, endsAt })
    else {
      const from = data.cursor === null ? log.length : Number(data.cursor)
      const fresh: Subscription = { ...data, id, endsAt, pending: new Set(), seen: from }
      subscriptions.set(id, fresh)
      for (const event of log.slice(from)) if (event.name === data.name) give(fresh, event)
    }
    const one = subscriptions.get(id)
    const cursor = one === undefined ? null : readWatermark(one)
    return { id, refreshBefore: new Date(endsAt).toISOString(), cursor, truncated: false }
  }

  function unsubscribe(params: unknown): object {
    const { data } = Unsubscribe.safeParse(params)
    if (data === undefined) throw new RpcError(-32_602)
    if (!subscriptions.delete(toId(data))) throw new RpcError(-32_011, { kind: 'subscription' })
    return {}
  }

  return {
    calls,
    /** Names of the live subscriptions. */
    live: () => [...subscriptions.values()].filter(({ endsAt }) => endsAt > Date.now()).map(({ name }) => name),
    /** The result of a call of an authenticated client. Throws an `RpcError`. */
    async answer(method: string, params: Record<string, unknown>): Promise<object> {
      calls.push({ method, params })
      if (method === 'server/discover')
        return { supportedVersions: ['2026-07-28'], capabilities: { events: {} }, resultType: 'complete' }
      if (method === 'events/list')
        return { events: offered.map((name) => ({ name, delivery: ['webhook'], inputSchema: { type: 'object' } })) }
      if (method === 'events/subscribe') return await subscribe(params)
      if (method === 'events/unsubscribe') return unsubscribe(params)
      throw new RpcError(-32_601)
    },
    /** Something happens upstream. */
    emit(eventId: string, name = 'incident.created'): void {
      const event = { at: log.length + 1, eventId, name, data: { incidentId: eventId, severity: 'P1' } }
      log.push(event)
      for (const one of subscriptions.values()) {
        if (one.name === name && one.endsAt > Date.now()) give(one, event)
        else one.seen = event.at
      }
    },
    /** Posts an event once more. */
    async repeat(eventId: string): Promise<number> {
      const event = log.find((each) => each.eventId === eventId)
      const one = [...subscriptions.values()].find(({ name }) => name === event?.name)
      if (event === undefined || one === undefined) throw new Error(`nobody is subscribed to ${eventId}`)
      const { at: _, ...rest } = event
      return (await postSigned(one, eventId, { ...rest, timestamp: '2026-02-19T16:00:00Z', cursor: null })).status
    },
    /** Posts a message that is no event to the first subscription. */
    async control(body: { readonly type: string; readonly [key: string]: unknown }): Promise<number> {
      const [one] = subscriptions.values()
      if (one === undefined) throw new Error('there is no subscription')
      return (await postSigned(one, `msg_${body.type}_${randomUUID()}`, body)).status
    },
    /** The server restarts, and kept its subscriptions and checks in memory only. */
    forget(): void {
      subscriptions.clear()
      checked.clear()
    },
  }
}
type McpEvents = ReturnType<typeof createMcpEvents>

export type McpServer = McpEvents & Pick<Loopback, 'planAnswers' | 'received'> & { readonly url: string }

/** `streams`: answers are event streams. */
export async function startMcpServer({
  streams = false,
  ...options
}: { streams?: boolean; leaseMs?: number; offered?: string[] } = {}): Promise<McpServer> {
  const events = createMcpEvents(options)
  const { url, planAnswers, received } = await startLoopback(async (request) => {
    const fault = findFault(request)
    if (fault !== undefined) return { status: fault }
    const call = Call.parse(request.body)
    const reply = await events.answer(call.method, call.params).then(
      (result) => ({ status: 200, body: { jsonrpc: '2.0', id: call.id, result } }),
      ({ code, data, message }: RpcError) => {
        const status = code === -32_601 ? 404 : 200
        return { status, body: { jsonrpc: '2.0', id: call.id, error: { code, message, data } } }
      },
    )
    if (!streams) return reply
    const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }
    const body = `: hello\n\ndata: ${JSON.stringify(note)}\n\nevent: message\ndata: ${JSON.stringify(reply.body)}\n\n`
    return { status: reply.status, headers: { 'content-type': 'text/event-stream' }, body }
  })
  return { ...events, url: `${url}/mcp`, planAnswers, received }
}

function findFault({ method, path, headers, body }: Received): number | undefined {
  if (path !== '/mcp') return 404
  if (method !== 'POST') return 405
  if (headers.authorization !== `Bearer ${mcpToken}`) return 401
  const call = Call.safeParse(body).data
  const accept = headers.accept ?? ''
  const isComplete =
    headers['mcp-protocol-version'] === '2026-07-28' &&
    headers['mcp-method'] === call?.method &&
    accept.includes('application/json') &&
    accept.includes('text/event-stream')
  return call === undefined || !isComplete ? 400 : undefined
}
