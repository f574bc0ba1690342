// A request that arrived elsewhere enters like one of the hook port: over a connection in memory, so that the same parser and the same checks apply.
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request as sendRequest } from 'node:http'
import type { RequestListener } from 'node:http'
import { type Duplex, duplexPair } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { findErrorCode } from '../../base/exceptions.ts'
import { Problem } from '../../core/model/problem.ts'
import { toRefusalAnswer } from '../../core/mapping/answer.ts'
import type { ArrivedAnswer, ArrivedRequest, SourceHost } from '../../model/source.ts'
import { maxHeaders } from './malformed.ts'
import { readHookName } from './target.ts'

/** What is known of the request of a connection in memory. */
const arrivals = new WeakMap<object, Pick<ArrivedRequest, 'id' | 'at'>>()

export function findArrived({ socket }: IncomingMessage): Pick<ArrivedRequest, 'id' | 'at'> | undefined {
  return arrivals.get(socket)
}

/** The headers of a connection (RFC 9110, 7.6.1), and those that say how its body was framed. */
const ofConnection: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** `path`: `hooks.path`. What the parser of HTTP refuses gets 400. */
export function createInjector({
  listener,
  path,
}: {
  readonly listener: RequestListener
  readonly path: () => string
}): SourceHost['receive'] {
  const server = createServer({ requireHostHeader: false }, listener)
  server.maxHeadersCount = maxHeaders + 1

  return async (request) => {
    if (readHookName(request.url, path()) === undefined) return refuse('hook-unknown', 'Nothing is here.')
    const [near, far] = duplexPair()
    const { id, at, client } = request
    arrivals.set(far, { id, at })
    Object.defineProperty(far, 'remoteAddress', { value: client })
    // the two ends of a pair do not know of each other's end
    far.once('close', () => {
      if (!far.writableFinished) near.destroy()
    })
    server.emit('connection', far)
    try {
      return await exchange(request, near)
    } catch (error) {
      // what the client of HTTP does not write; anything else may pass
      if (findErrorCode(error)?.startsWith('ERR_') !== true)
        throw new Error('The gateway did not answer the request.', { cause: error })
      return refuse('request-malformed', 'The request is not well-formed HTTP.')
    } finally {
      near.destroy()
      far.destroy()
    }
  }
}

function exchange({ method, url, rawHeaders, body }: ArrivedRequest, connection: Duplex): Promise<ArrivedAnswer> {
  return new Promise((resolve, reject) => {
    const headers = [...dropOfConnection(rawHeaders), 'connection', 'close']
    if (body.length > 0 || method === 'POST') headers.push('content-length', String(body.length))
    // as: the types of Node leave out the list of names and values, which keeps headers that are repeated
    const given = headers as unknown as OutgoingHttpHeaders
    const sent = sendRequest({ method, path: url, headers: given, setHost: false, createConnection: () => connection })
    sent.on('error', reject)
    sent.once('response', (answer) => {
      buffer(answer).then((bytes) => resolve({ ...readHead(answer), body: bytes }), reject)
    })
    sent.end(body)
  })
}

function readHead({ statusCode = 500, headers }: IncomingMessage): Pick<ArrivedAnswer, 'status' | 'headers'> {
  const single = Object.entries(headers).map(([name, value = '']) => [name, String(value)])
  return { status: statusCode, headers: Object.fromEntries(single) }
}

function dropOfConnection(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, index) => {
    const name = rawHeaders[index - (index % 2)] ?? ''
    return !ofConnection.has(name.toLowerCase())
  })
}

function refuse(code: 'hook-unknown' | 'request-malformed', detail: string): ArrivedAnswer {
  const { status, headers = {}, body = '' } = toRefusalAnswer(new Problem(code, detail))
  return { status, headers, body: Buffer.from(body) }
}
