// A gateway that is an MCP server with MCP Events, the official client of it, and a receiver of its webhooks.
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'
import { onFileEnd } from '../file-end.ts'
import { type Misbehaviour, type Received, startLoopback } from './fakes/loopback.ts'
import { gatewayToken, hookToken } from './gateway.ts'

export const chatToken = 'chat-token-0123456789abcdef'
export const otherToken = 'other-token-0123456789abcdef'
export const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`

/** Two events, `push` and `issue`. The subscriber `other` may receive only `issue`. */
export function toEventServerConfig(more: { subscribers?: object; privateCallbacks?: boolean } = {}) {
  const { privateCallbacks = true } = more
  const subscribers = {
    chat: { token: chatToken, privateCallbacks },
    other: { token: otherToken, privateCallbacks, events: ['issue'] },
  }
  return {
    agents: {
      defaults: { heartbeat: { every: 0 } },
      list: [
        { id: 'push', runner: 'out' },
        { id: 'issue', runner: 'out' },
      ],
    },
    runners: {
      out: {
        kind: 'mcp-events',
        events: { push: 'A push to the repository.' },
        subscribers: more.subscribers ?? subscribers,
      },
    },
    hooks: {
      mappings: [
        { match: { path: 'git' }, agentId: 'push', messageTemplate: '{{text}}', instructions: 'Summarise the push.' },
        { match: { path: 'tracker' }, agentId: 'issue', messageTemplate: '{{text}}' },
      ],
    },
  }
}

type Server = { readonly url: string }

/** Something happens upstream: a request to a hook of the gateway. Returns the id of its run, which is that of its event. */
export async function happen({ url }: Server, text: string, hook = 'git'): Promise<string> {
  const answer = await fetch(`${url}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ text }),
  })
  const { runId } = z.looseObject({ runId: z.string() }).parse(await answer.json())
  return runId
}

const Occurrence = z.object({
  eventId: z.string(),
  name: z.string(),
  timestamp: z.iso.datetime(),
  data: z.object({ runId: z.string(), session: z.string(), prompt: z.string() }),
})
const Polled = z.object({
  events: z.array(Occurrence),
  cursor: z.string(),
  truncated: z.boolean(),
  hasMore: z.boolean(),
  nextPollMs: z.number(),
})
const Listed = z.object({
  events: z.array(z.looseObject({ name: z.string(), description: z.string(), delivery: z.array(z.string()) })),
})
const Granted = z.looseObject({
  id: z.string(),
  refreshBefore: z.iso.datetime(),
  cursor: z.string(),
  truncated: z.boolean(),
  deliveryStatus: z.looseObject({ active: z.boolean(), lastError: z.string().nullable() }).optional(),
})

/** The official client, which speaks MCP 2026-07-28. */
export async function connectEvents({ url }: Server, token = chatToken) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  const headers = { authorization: `Bearer ${token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/runners/out`), { requestInit: { headers } }))
  onFileEnd(() => client.close())
  return {
    client,
    list: () => client.request({ method: 'events/list', params: {} }, Listed),
    poll: (params: object) => client.request({ method: 'events/poll', params: { ...params } }, Polled),
    subscribe: (params: object) => client.request({ method: 'events/subscribe', params: { ...params } }, Granted),
    unsubscribe: (params: object) =>
      client.request({ method: 'events/unsubscribe', params: { ...params } }, z.looseObject({})),
  }
}

/** What a raw call answers: for what the official client does not send. */
export async function callEvents(
  { url }: Server,
  given: { method: string; params?: object; token?: string; headers?: object; path?: string },
) {
  const { method, params = {}, token = chatToken, headers = {}, path = 'runners/out' } = given
  const answer = await fetch(`${url}/${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
  })
  const body = z
    .looseObject({
      result: z.looseObject({}).optional(),
      // a refusal of the gateway itself has a text there
      error: z.union([z.looseObject({ code: z.number(), data: z.unknown().optional() }), z.string()]).optional(),
    })
    .parse(await answer.json())
  const error = typeof body.error === 'object' ? body.error : undefined
  return { status: answer.status, result: body.result, code: error?.code, data: error?.data }
}

type Posted = { readonly id: string; readonly subscription: string; readonly body: Record<string, unknown> }

/** A receiver of webhooks on loopback, which checks each signature. `plan`: the answers to the next events. */
export async function startReceiver({ echo = (challenge: string): unknown => ({ challenge }) } = {}) {
  const secrets: string[] = []
  const posts: Posted[] = []
  const challenges: string[] = []
  const controls: Record<string, unknown>[] = []
  const plan: Misbehaviour[] = []
  const { url } = await startLoopback((received) => {
    if (!secrets.some((secret) => isSigned(received, secret))) return { status: 401 }
    const body = z.record(z.string(), z.unknown()).parse(received.body)
    if (body['type'] === 'verification') {
      challenges.push(String(body['challenge']))
      return { status: 200, body: echo(String(body['challenge'])) }
    }
    if (typeof body['type'] === 'string') {
      controls.push(body)
      return { status: 200 }
    }
    posts.push({
      id: String(received.headers['webhook-id']),
      subscription: String(received.headers['x-mcp-subscription-id']),
      body,
    })
    return plan.shift() ?? { status: 200, body: {} }
  })
  return { url: `${url}/callback`, secrets, posts, challenges, controls, plan, ids: () => posts.map(({ id }) => id) }
}

function isSigned({ headers, text }: Received, secret: string): boolean {
  try {
    new Webhook(secret).verify(text, {
      'webhook-id': String(headers['webhook-id']),
      'webhook-timestamp': String(headers['webhook-timestamp']),
      'webhook-signature': String(headers['webhook-signature']),
    })
    return true
  } catch {
    return false
  }
}

/** A stream of the event `push` that has begun. `ended`: resolves when the server ends it. */
export async function openStream({ url }: Server) {
  const ending = new AbortController()
  const method = 'events/stream'
  const answer = await fetch(`${url}/runners/out`, {
    method: 'POST',
    headers: { authorization: `Bearer ${chatToken}`, 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: { name: 'push' } }),
    signal: ending.signal,
  })
  if (answer.headers.get('content-type') !== 'text/event-stream') throw new Error(await answer.text())
  const ended = answer.text().catch(() => undefined)
  return { ended, abort: () => ending.abort() }
}

/** Changes the section of the runner in the saved configuration. */
export function editRunner(dir: string, change: (section: { subscribers: Record<string, object> }) => void): void {
  const file = join(dir, 'hookloom.jsonc')
  const section = z.looseObject({ subscribers: z.record(z.string(), z.looseObject({})) })
  const config = z.looseObject({ runners: z.object({ out: section }) }).parse(JSON.parse(readFileSync(file, 'utf8')))
  change(config.runners.out)
  writeFileSync(file, JSON.stringify(config))
}

export async function readRefusals({ adminUrl }: { readonly adminUrl: string }) {
  const answer = await fetch(`${adminUrl}/api/refusals`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  return z.looseObject({ refusals: z.array(z.looseObject({ code: z.string() })) }).parse(await answer.json()).refusals
}

/** The acts of the clients of the runner in the audit log, the newest first. */
export async function readActs({ adminUrl }: { readonly adminUrl: string }) {
  const answer = await fetch(`${adminUrl}/api/audit`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  const Entry = z.object({
    by: z.object({ kind: z.string(), name: z.string() }),
    act: z.string(),
    target: z.string().nullable(),
    details: z.record(z.string(), z.string()),
    outcome: z.string(),
  })
  const { entries } = z.object({ entries: z.array(Entry) }).parse(await answer.json())
  return entries.filter(({ by }) => by.name.startsWith('runners.'))
}
