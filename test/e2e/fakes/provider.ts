// A fake provider of models on loopback: it checks requests against the documented API, and sends the answers that a test sets.
import type { ServerResponse } from 'node:http'
import { z } from 'zod'
import type { ProviderConfig } from '../../../src/model/config/agents.ts'
import { type Received, startLoopback } from './loopback.ts'

/** The API of one kind of provider. Its replies use 11 input tokens, 4 of them cached, and 7 output tokens. */
export type Api = {
  readonly kind: ProviderConfig['kind']
  /** A model that supports thinking. */
  readonly model: string
  readonly basePath: string
  toPath(streamed: boolean): string
  readonly keyHeader: readonly [name: string, value: string]
  readonly body: z.ZodType
  isStreamed(request: Pick<Received, 'path' | 'body'>): boolean
  /** The thinking settings in a body. */
  findThinking(body: unknown): unknown
  /** A whole reply, and a reply as a stream of events. */
  toReplyBody(text: string): unknown
  toEvents(pieces: readonly string[]): readonly string[]
  /** A call of the tool `answer`, whole and as a stream. */
  toCallBody(input: object): unknown
  toCallEvents(input: object): readonly string[]
  /** The form in which a body asks for the reply, with its schema. */
  findForm(body: unknown): { readonly form: 'structured-output' | 'tool-call'; readonly schema: unknown } | undefined
  toErrorBody(status: number): unknown
  /** An error in the middle of a stream that means "overloaded". */
  readonly overloaded: string
  /** The path of the list of models. */
  readonly listPath: string
}

export const apiKey = 'sk-Test-0123456789'

export type Answer = (api: Api, request: Received, response: ServerResponse) => void

export type FakeProvider = {
  readonly baseUrl: string
  readonly received: readonly Received[]
  answer: Answer
  /** Resolves with the next request. */
  nextRequest(): Promise<Received>
  /** Throws if a request did not match the documented API. */
  close(): void
}

export async function startFakeProvider(api: Api): Promise<FakeProvider> {
  const faults: string[] = []
  let onRequest: (request: Received) => void = () => {}
  const loopback = await startLoopback((request) => {
    faults.push(...findFaults(api, request))
    return (response) => {
      fake.answer(api, request, response)
      onRequest(request)
    }
  })
  const fake: FakeProvider = {
    baseUrl: `${loopback.url}${api.basePath}`,
    received: loopback.received,
    answer: replyWith('Hello'),
    nextRequest: () =>
      new Promise((resolve) => {
        onRequest = resolve
      }),
    close() {
      loopback.close()
      if (faults.length > 0) throw new Error(`The fake was asked what its API does not know: ${faults.join('\n')}`)
    },
  }
  return fake
}

function findFaults(api: Api, request: Received): string[] {
  const { method, headers, body } = request
  const query = request.query.toString()
  const path = query === '' ? request.path : `${request.path}?${query}`
  const [name, value] = api.keyHeader
  const faults = headers[name] === value ? [] : [`${name} is not the key`]
  if (method === 'GET') return path === api.listPath ? faults : [...faults, `GET ${path}`]
  const parsed = api.body.safeParse(body)
  if (!parsed.success) faults.push(z.prettifyError(parsed.error))
  const documented = api.toPath(api.isStreamed(request))
  if (path !== documented) faults.push(`${path} is not ${documented}`)
  return faults
}

const eventStream = { 'content-type': 'text/event-stream' }
const json = { 'content-type': 'application/json' }

/** The reply in one piece or as a stream, whichever the request asked for. */
export function replyWith(...pieces: string[]): Answer {
  return (api, request, response) => {
    if (request.method === 'GET') return void response.writeHead(200, json).end('{"data":[]}')
    if (!api.isStreamed(request))
      return void response.writeHead(200, json).end(JSON.stringify(api.toReplyBody(pieces.join(''))))
    response.writeHead(200, eventStream)
    response.end(api.toEvents(pieces).join(''))
  }
}

/** Calls the tool `answer`, in one piece or as a stream. */
export function callAnswerTool(input: object): Answer {
  return (api, request, response) => {
    if (!api.isStreamed(request)) return void response.writeHead(200, json).end(JSON.stringify(api.toCallBody(input)))
    response.writeHead(200, eventStream).end(api.toCallEvents(input).join(''))
  }
}

export function refuseWith(status: number, headers: Record<string, string> = {}, body?: unknown): Answer {
  return (api, _request, response) =>
    void response.writeHead(status, { ...json, ...headers }).end(JSON.stringify(body ?? api.toErrorBody(status)))
}

/** The first events of a reply; then the connection is reset, or the answer ends early. */
export function breakOff(how: 'reset' | 'end'): Answer {
  return (api, _request, response) => {
    response.writeHead(200, eventStream)
    const events = api.toEvents(['The first half, ', 'the second half.'])
    const half = events.slice(
      0,
      events.findIndex((event) => event.includes('second half')),
    )
    response.write(half.join(''), () => (how === 'end' ? response.end() : response.socket?.resetAndDestroy()))
  }
}

/** The first events, then an error of the provider. The connection stays open. */
export function failInStream(): Answer {
  return (api, _request, response) => {
    response.writeHead(200, eventStream)
    const events = api.toEvents(['The first half, ', 'the second half.'])
    const half = events.slice(
      0,
      events.findIndex((event) => event.includes('second half')),
    )
    response.write(half.join('') + api.overloaded)
  }
}

/** One line that continues until the client disconnects. */
export function answerEndlessly(status: number): Answer {
  return (_api, _request, response) => {
    response.writeHead(status, { 'content-type': status === 200 ? 'text/event-stream' : 'application/json' })
    const write = () => {
      while (!response.destroyed && response.write('data: '.padEnd(1_048_576, 'a')));
      response.once('drain', write)
    }
    write()
  }
}

export const staySilent: Answer = () => {}

/** Headers and the first piece, then nothing. */
export function stall(): Answer {
  return (api, _request, response) => {
    response.writeHead(200, eventStream)
    response.write(api.toEvents(['The first half, ', 'the second half.']).slice(0, 2).join(''))
  }
}

export const toEvent = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`
