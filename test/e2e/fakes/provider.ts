// A provider of models on loopback: it checks what it is sent against the documented API, and answers as a test says.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import type { ProviderConfig } from '../../../src/model/agents-config.ts'

/** What one kind of provider looks like from outside. Its replies use 11 tokens in, 4 of them cached, and 7 out. */
export type Api = {
  readonly kind: ProviderConfig['kind']
  /** A model that thinks. */
  readonly model: string
  readonly basePath: string
  toPath(streamed: boolean): string
  readonly keyHeader: readonly [name: string, value: string]
  readonly body: z.ZodType
  isStreamed(seen: Pick<Seen, 'path' | 'body'>): boolean
  /** The thinking that a body asks for. */
  thinkingOf(body: unknown): unknown
  /** A whole reply, and one in pieces: events for people's eyes, one a line. */
  toWhole(text: string): unknown
  toEvents(pieces: readonly string[]): readonly string[]
  toRefusal(status: number): unknown
  /** An error in the middle of a stream that means "overloaded". */
  readonly overloaded: string
  /** Where the list of models is. */
  readonly listPath: string
}

export const apiKey = 'sk-Test-0123456789'

export type Seen = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
  /** Resolves when the client's connection is gone. */
  readonly closed: Promise<unknown>
}

export type Answer = (api: Api, seen: Seen, response: ServerResponse) => void

export type Fake = {
  readonly baseUrl: string
  readonly seen: Seen[]
  answer: Answer
  /** Resolves with the next request. */
  next(): Promise<Seen>
  /** Rejects if a request was not what the API documents. */
  close(): Promise<void>
}

export async function startFake(api: Api): Promise<Fake> {
  const faults: string[] = []
  let tell: (seen: Seen) => void = () => {}
  const server = createServer((request, response) => void receive(request, response))
  const fake: Fake = {
    get baseUrl() {
      // a server that listens on a port has an address of this shape
      const { port } = server.address() as AddressInfo
      return `http://127.0.0.1:${port}${api.basePath}`
    },
    seen: [],
    answer: replies('Hello'),
    next: () =>
      new Promise((resolve) => {
        tell = resolve
      }),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      if (faults.length > 0) throw new Error(`The fake was asked what its API does not know: ${faults.join('\n')}`)
    },
  }

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = new Promise((resolve) => request.socket.once('close', resolve))
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    const text = Buffer.concat(chunks).toString()
    const seen: Seen = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: text === '' ? undefined : JSON.parse(text),
      closed,
    }
    fake.seen.push(seen)
    faults.push(...toFaults(api, seen))
    fake.answer(api, seen, response)
    tell(seen)
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return fake
}

function toFaults(api: Api, seen: Seen): string[] {
  const [name, value] = api.keyHeader
  const faults = seen.headers[name] === value ? [] : [`${name} is not the key`]
  if (seen.method === 'GET') return seen.path === api.listPath ? faults : [...faults, `GET ${seen.path}`]
  const parsed = api.body.safeParse(seen.body)
  if (!parsed.success) faults.push(z.prettifyError(parsed.error))
  const path = api.toPath(api.isStreamed(seen))
  if (seen.path !== path) faults.push(`${seen.path} is not ${path}`)
  return faults
}

const eventStream = { 'content-type': 'text/event-stream' }
const json = { 'content-type': 'application/json' }

/** The reply in one piece or as a stream, as it was asked for. */
export function replies(...pieces: string[]): Answer {
  return (api, seen, response) => {
    if (seen.method === 'GET') return void response.writeHead(200, json).end('{"data":[]}')
    if (!api.isStreamed(seen))
      return void response.writeHead(200, json).end(JSON.stringify(api.toWhole(pieces.join(''))))
    response.writeHead(200, eventStream)
    response.end(api.toEvents(pieces).join(''))
  }
}

export function refuses(status: number, headers: Record<string, string> = {}, body?: unknown): Answer {
  return (api, _seen, response) =>
    void response.writeHead(status, { ...json, ...headers }).end(JSON.stringify(body ?? api.toRefusal(status)))
}

/** The first events of a reply; then the connection is reset, or the answer just ends. */
export function breaksOff(how: 'reset' | 'end'): Answer {
  return (api, _seen, response) => {
    response.writeHead(200, eventStream)
    const events = api.toEvents(['The first half, ', 'the second half.'])
    const half = events.slice(
      0,
      events.findIndex((event) => event.includes('second half')),
    )
    response.write(half.join(''), () => (how === 'end' ? response.end() : response.socket?.resetAndDestroy()))
  }
}

/** The first events, then an error of the provider; the connection stays open. */
export function failsInside(): Answer {
  return (api, _seen, response) => {
    response.writeHead(200, eventStream)
    const events = api.toEvents(['The first half, ', 'the second half.'])
    const half = events.slice(
      0,
      events.findIndex((event) => event.includes('second half')),
    )
    response.write(half.join('') + api.overloaded)
  }
}

/** One line that goes on until nobody listens any more. */
export function neverEnds(status: number): Answer {
  return (_api, _seen, response) => {
    response.writeHead(status, { 'content-type': status === 200 ? 'text/event-stream' : 'application/json' })
    const write = () => {
      while (!response.destroyed && response.write('data: '.padEnd(1_048_576, 'a')));
      response.once('drain', write)
    }
    write()
  }
}

export const neverAnswers: Answer = () => {}

/** Headers and the first piece, and then nothing more. */
export function stalls(): Answer {
  return (api, _seen, response) => {
    response.writeHead(200, eventStream)
    response.write(api.toEvents(['The first half, ', 'the second half.']).slice(0, 2).join(''))
  }
}

export const toEvent = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`
