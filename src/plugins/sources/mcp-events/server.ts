// Calls of an MCP server by streamable HTTP, protocol 2026-07-28: each is one POST without a session.
// https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { z } from 'zod'
import type { SourceHost } from '../../../define.ts'
import { readRetryAfterMs, SourceFailure, tryParseJson } from '../shared/kit.ts'
import type { McpEventsConfig } from './options.ts'

type Server = Pick<McpEventsConfig, 'url' | 'token'>
type Tools = Pick<SourceHost, 'fetch'> & { readonly signal: AbortSignal }

const protocol = '2026-07-28'
const minute = 60_000
/** A cause that an operator or the owner of the server must remove is asked about this often. */
const refusedRetryMs = 5 * minute

const Answer = z.object({
  result: z.looseObject({}).optional(),
  error: z.object({ code: z.number(), data: z.unknown().optional() }).optional(),
})
type Answer = z.infer<typeof Answer>

/** A failure that the server has put in a JSON-RPC error. */
export class McpFailure extends SourceFailure {
  readonly code: number
  constructor(message: string, code: number, retryAfterMs?: number) {
    super(message, { retryAfterMs })
    this.code = code
  }
}
export const notFound = -32_011

/** `writtenAt`: the time of the server, in milliseconds since the epoch, if it says it. Throws a `SourceFailure`, without texts of the server. */
export async function callServer(
  { url, token }: Server,
  { method, params }: { readonly method: string; readonly params: object },
  { fetch, signal }: Tools,
): Promise<{ readonly result: object; readonly writtenAt: number | undefined }> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': protocol,
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/events': {} } },
  }
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': protocol,
      'mcp-method': method,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
    signal,
  })
  const { host } = new URL(url)
  const { status, headers } = response
  const answer = await readAnswer(response).catch((thrown: unknown) => {
    signal.throwIfAborted()
    throw thrown instanceof SourceFailure ? thrown : new SourceFailure(`The answer of ${host} broke off.`)
  })
  if (response.ok && answer?.result !== undefined) {
    const writtenAt = Date.parse(headers.get('date') ?? '')
    return { result: answer.result, writtenAt: Number.isNaN(writtenAt) ? undefined : writtenAt }
  }
  if (status === 401) throw refuse(`${host} refused the token (401). Correct the token of the section.`)
  if (answer?.error !== undefined) {
    const { code, data } = answer.error
    const isOver = known[code] === undefined
    throw new McpFailure(`${host} ${describeError(code, data, method)}`, code, isOver ? undefined : refusedRetryMs)
  }
  if (status === 403) throw refuse(`${host} does not let this token call ${method} (403).`)
  if (status === 404 || status === 405)
    throw refuse(`${host} has no MCP server at this URL (${status}). Correct the url.`)
  if (response.ok) throw refuse(`${host} did not answer ${method} as MCP ${protocol} says.`)
  throw new SourceFailure(`${host} answered ${status}.`, { retryAfterMs: readRetryAfterMs(headers) })
}

const refuse = (what: string) => new SourceFailure(what, { retryAfterMs: refusedRetryMs })

/** The answer is JSON, or an event stream that has it. Undefined if there is none. */
async function readAnswer({ headers, body }: Response): Promise<Answer | undefined> {
  if (body === null) return undefined
  const text = body.pipeThrough(new TextDecoderStream())
  if (!(headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream')) {
    const parts: string[] = []
    for await (const part of text) parts.push(part)
    return parseAnswer(parts.join(''))
  }
  for await (const { data } of text.pipeThrough(new EventSourceParserStream())) {
    const answer = parseAnswer(data)
    if (answer?.result !== undefined || answer?.error !== undefined) return answer
  }
  return undefined
}

const parseAnswer = (text: string) => Answer.safeParse(tryParseJson(text)).data

/** The errors whose cause stays until somebody removes it. https://modelcontextprotocol.io/seps/3415-events-extension */
const known: Readonly<Record<number, string>> = {
  [-32_601]: 'does not offer MCP Events.',
  [-32_602]: 'refused the arguments of the event, the callback or the secret.',
  [notFound]: 'has no event of this name.',
  [-32_012]: 'does not permit this token to subscribe to the event with these arguments.',
  [-32_013]: 'permits no more subscriptions.',
  [-32_014]: 'does not post this event to webhooks.',
}
const reasons = ['connection_refused', 'timeout', 'tls_error', 'http_4xx', 'http_5xx', 'challenge_failed']

function describeError(code: number, data: unknown, method: string): string {
  if (code === -32_015) {
    const reason = z.object({ reason: z.enum(reasons) }).safeParse(data).data?.reason
    return `could not check the callback${reason === undefined ? '' : ` (${reason})`}. Its URL must lead to this gateway.`
  }
  return `${(known[code] ?? `refused ${method}.`).slice(0, -1)} (${code}).`
}

export const DeliveryProblem = z.enum(reasons).nullish().catch(undefined)

const Page = z.object({
  events: z.array(z.object({ name: z.string(), delivery: z.array(z.string()) })),
  nextCursor: z.string().nullish(),
})
const maxPages = 50

/** What `hookloom doctor` asks: whether the server has the events, and posts them. Subscribes to nothing. */
export async function probeServer(
  config: McpEventsConfig,
  tools: Tools,
): Promise<{ readonly ok: boolean; readonly detail: string }> {
  const { host } = new URL(config.url)
  const offered = new Map<string, readonly string[]>()
  try {
    let cursor: string | undefined
    for (let page = 0; page < maxPages; page++) {
      const params = cursor === undefined ? {} : { cursor }
      const { result } = await callServer(config, { method: 'events/list', params }, tools)
      const { data } = Page.safeParse(result)
      if (data === undefined) return { ok: false, detail: `${host} did not list its events as MCP Events says.` }
      for (const { name, delivery } of data.events) offered.set(name, delivery)
      cursor = data.nextCursor ?? undefined
      if (cursor === undefined) break
    }
  } catch (thrown) {
    return { ok: false, detail: thrown instanceof SourceFailure ? thrown.message : 'It failed.' }
  }
  const missing = config.events.find(({ name }) => offered.get(name)?.includes('webhook') !== true)
  if (missing === undefined) return { ok: true, detail: `${host} accepts the token, and has the events.` }
  const what = offered.has(missing.name) ? 'does not post the event' : 'has no event'
  return { ok: false, detail: `${host} ${what} "${missing.name}".` }
}
