// The base of the fake providers: a server on loopback that records requests and can be told to fail.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { onFileEnd } from '../../file-end.ts'

export type Received = {
  readonly method: string
  /** The path as received, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON; undefined if it is not JSON. */
  readonly body: unknown
  /** Resolves when the answer is complete, or when the client has disconnected. */
  readonly closed: Promise<unknown>
}

export type Reply = {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** A string is sent unchanged, anything else as JSON. */
  readonly body?: unknown
}

/** Writes an answer piece by piece, perhaps without end. */
type WriteAnswer = (response: ServerResponse) => void

/** `reset`: the connection ends after the body was read. `silence`: no answer is sent. */
export type Misbehaviour = Reply | WriteAnswer | 'reset' | 'silence'

export type Loopback = {
  readonly url: string
  /** Every request, in order. */
  readonly received: readonly Received[]
  /** Sets the behaviour for the next requests, one each. After them the fake behaves normally. */
  planAnswers(...next: readonly Misbehaviour[]): void
  /** Stops listening. */
  close(): void
}

export async function startLoopback(
  answer: (request: Received) => Misbehaviour | Promise<Misbehaviour>,
): Promise<Loopback> {
  const received: Received[] = []
  const planned: Misbehaviour[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    const closed = new Promise((gone) => response.once('close', gone))
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    const respond = async (): Promise<void> => {
      const text = Buffer.concat(chunks).toString()
      const [path = '', query = ''] = (request.url ?? '').split('?')
      const { method = '', headers } = request
      const one = { method, path, query: new URLSearchParams(query), headers, text, body: parseJson(text), closed }
      received.push(one)
      const reply = planned.shift() ?? (await answer(one))
      if (reply === 'silence') return
      if (typeof reply === 'function') return reply(response)
      if (reply === 'reset') return void request.socket.resetAndDestroy()
      const isText = typeof reply.body === 'string'
      response.writeHead(reply.status, { 'content-type': isText ? 'text/plain' : 'application/json', ...reply.headers })
      response.end(isText ? reply.body : JSON.stringify(reply.body ?? {}))
    }
    request.on('end', () => void respond())
  })
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening))
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  onFileEnd(close)
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, received, planAnswers: (...next) => void planned.push(...next), close }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
