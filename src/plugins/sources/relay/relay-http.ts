// What both sides of a relay need of HTTP: bodies within limits of size, time and memory, and answers in JSON.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isLoopbackHost } from '../shared/kit.ts'

/** The answer to a request that the relay does not take. */
export class RelayRefusal extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, retryAfterSeconds?: number) {
    super(message)
    this.status = status
    this.headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  }
}

/** The bytes of all bodies in memory. */
export type HeldBodies = { held: number; readonly max: number }

type BodyOptions = { readonly maxBytes: number; readonly timeoutMs: number; readonly memory: HeldBodies }

/** Reads a body and hands it to `use`. The memory of it is zeroed at the end. Throws `RelayRefusal`. */
export async function withBody<T>(
  req: IncomingMessage,
  options: BodyOptions,
  use: (body: Buffer) => Promise<T>,
): Promise<T> {
  const { memory } = options
  const chunks: Buffer[] = []
  let body = Buffer.alloc(0)
  try {
    await readChunks(req, options, chunks)
    body = Buffer.concat(chunks)
    for (const chunk of chunks) chunk.fill(0)
    return await use(body)
  } finally {
    for (const chunk of chunks) {
      memory.held -= chunk.length
      chunk.fill(0)
    }
    body.fill(0)
  }
}

function readChunks(req: IncomingMessage, { maxBytes, timeoutMs, memory }: BodyOptions, into: Buffer[]): Promise<void> {
  const tooLarge = new RelayRefusal(413, `The body is over ${maxBytes} bytes.`)
  return new Promise((resolve, reject) => {
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) return reject(tooLarge)
    let size = 0
    const timer = setTimeout(
      () => fail(new RelayRefusal(408, `The body was not complete after ${timeoutMs} ms.`)),
      timeoutMs,
    )
    const fail = (error: RelayRefusal) => {
      clearTimeout(timer)
      req.pause()
      req.removeAllListeners('data')
      reject(error)
    }
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) return fail(tooLarge)
      if (memory.held + chunk.length > memory.max)
        return fail(new RelayRefusal(503, 'Too many bodies arrive at once.', 1))
      memory.held += chunk.length
      into.push(chunk)
    })
    req.once('end', () => {
      clearTimeout(timer)
      resolve()
    })
    req.once('error', () => fail(new RelayRefusal(400, 'The connection ended before the body did.')))
  })
}

export function sendJsonAnswer(
  res: ServerResponse,
  status: number,
  value: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(JSON.stringify(value))
  sendBytes(res, { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body })
}

/** The answer of any home has the origin of the relay: no browser may run what is in it. */
const safeHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
}

type Sent = { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Uint8Array }

export function sendBytes(res: ServerResponse, { status, headers, body }: Sent): void {
  if (res.headersSent || res.destroyed) return
  const { req } = res
  const isBodiless = status === 204 || status === 304
  const sent: Record<string, string> = { ...safeHeaders, ...headers }
  if (!isBodiless) sent['content-length'] = String(body.length)
  // what is left of the body is not read
  if (!req.complete) sent['connection'] = 'close'
  res.writeHead(status, sent).end(isBodiless || req.method === 'HEAD' ? undefined : body)
}

/** The address of the sender. A server on this machine that ends TLS adds it as the last one of X-Forwarded-For. */
export function readClient({ socket, headers }: IncomingMessage): string {
  const { remoteAddress = '' } = socket
  const peer = remoteAddress.replace(/^::ffff:/, '')
  if (!isLoopbackHost(peer)) return peer
  return (
    String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .at(-1)
      ?.trim() || peer
  )
}

/** A bucket of tokens: `perSecond` requests a second, and as many at once. */
export function createBucket(perSecond: number, clock: () => number): { take(): boolean } {
  let left = perSecond
  let filledAt = clock()
  return {
    take() {
      const now = clock()
      left = Math.min(perSecond, left + (Math.max(0, now - filledAt) / 1_000) * perSecond)
      filledAt = now
      if (left < 1) return false
      left -= 1
      return true
    },
  }
}
