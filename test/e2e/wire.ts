// HTTP/1.1 byte by byte: sends exactly the bytes of the test, and reads the answer without the tolerance of an HTTP client.
import { connect } from 'node:net'
import { hookToken } from './gateway.ts'

export type Headers = readonly (readonly [name: string, value: string])[]

export type Reply = {
  readonly status: number
  /** Lower-case names; a repeated header is joined with ", ". */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export type Exchange = {
  /** The final answers, in order. */
  readonly replies: readonly Reply[]
  /** Statuses of interim answers, such as 100. */
  readonly interim: readonly number[]
  /** Whether the gateway ended the connection. */
  readonly closed: boolean
}

export const bearer: Headers = [['authorization', `Bearer ${hookToken}`]]
export const json: Headers = [['content-type', 'application/json']]

export type RequestParts = {
  readonly method?: string
  readonly target: string
  readonly version?: string
  readonly headers?: Headers
  readonly body?: string | Uint8Array
  /** False: no `content-length` is added. */
  readonly length?: boolean
}

/** One request. `content-length` and `host` are added, and everything else is sent unchanged. */
export function toRequest(parts: RequestParts): Buffer {
  const { method = 'POST', target, version = 'HTTP/1.1', headers = [], body = '', length = true } = parts
  const bytes = Buffer.from(body)
  const lines = [
    `${method} ${target} ${version}`,
    ...(headers.some(([name]) => name.toLowerCase() === 'host') ? [] : ['host: 127.0.0.1']),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(length ? [`content-length: ${bytes.length}`] : []),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes])
}

type ExchangeOptions = {
  /** The number of answers after which the connection is closed; `all`: reads until the gateway closes it. Default: 1. */
  readonly until?: number | 'all'
  /** Sent when the first answer has come. */
  readonly next?: Uint8Array
  /** Whether the answers have no body, as answers to HEAD. */
  readonly head?: boolean
  readonly timeoutMs?: number
}

/** Long enough for a busy machine, and less than the 30 seconds for which some tests let a request wait that must be answered at once. */
const longestAnswerMs = 25_000

/** Sends bytes on a new connection and reads the answers. Rejects if they are not complete after `timeoutMs`. */
export function exchange(port: number, bytes: Uint8Array | string, options: ExchangeOptions = {}): Promise<Exchange> {
  const { until = 1, head = false, next, timeoutMs = longestAnswerMs } = options
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    let received = Buffer.alloc(0)
    let closed = false
    let unsent = next
    const end = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ ...toReplies(received, head), closed })
    }
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no end after ${timeoutMs} ms; until then came:\n${received.toString('latin1')}`))
    }, timeoutMs)
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      const count = toReplies(received, head).replies.length
      if (until !== 'all' && count >= until) return end()
      if (count === 0 || unsent === undefined) return
      socket.write(unsent)
      unsent = undefined
    })
    socket.on('end', () => {
      closed = true
      end()
    })
    // a reset ends the reading too, and the test checks the answers before it
    socket.on('error', () => {
      closed = true
      end()
    })
    socket.write(bytes)
  })
}

/** Sends one request on a new connection, and returns its only answer. */
export async function send(port: number, parts: RequestParts): Promise<Reply> {
  const { replies } = await exchange(port, toRequest(parts), { head: parts.method === 'HEAD' })
  const [reply] = replies
  if (reply === undefined) throw new Error(`${parts.method ?? 'POST'} ${parts.target} was not answered`)
  return reply
}

/** Posts JSON with the hook token, like most senders. */
export function post(port: number, target: string, body: unknown, headers: Headers = []): Promise<Reply> {
  const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  return send(port, { target, headers: [...bearer, ...json, ...headers], body: text })
}

function toReplies(received: Buffer, head: boolean): { replies: Reply[]; interim: number[] } {
  const replies: Reply[] = []
  const interim: number[] = []
  let rest = received
  for (;;) {
    const mark = rest.indexOf('\r\n\r\n')
    if (mark < 0) break
    const [first = '', ...lines] = rest.subarray(0, mark).toString('latin1').split('\r\n')
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1] ?? Number.NaN)
    const headers = toHeaders(lines)
    rest = rest.subarray(mark + 4)
    if (status >= 100 && status < 200) {
      interim.push(status)
      continue
    }
    const size = head || status === 204 || status === 304 ? 0 : Number(headers['content-length'])
    if (!(rest.length >= size)) break
    replies.push({ status, headers, body: rest.subarray(0, size).toString('utf8') })
    rest = rest.subarray(size)
  }
  return { replies, interim }
}

function toHeaders(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const earlier = headers[name]
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  return headers
}
