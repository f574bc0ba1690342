import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Problem } from '../../../../src/core/model/problem.ts'
import { type BodyOptions, readBody } from '../../../../src/gateway/http/body.ts'
import { inflateBody } from '../../../../src/gateway/proofs/inflate.ts'

const limit = 1_000
const closers: (() => void)[] = []

afterEach(() => {
  vi.useRealTimers()
  for (const close of closers.splice(0)) close()
})

/** `raw`: as sent. `bytes`: inflated. */
type Body = { readonly raw: Buffer<ArrayBuffer>; readonly bytes: Buffer<ArrayBuffer> }
type Outcome = { req: IncomingMessage; body?: Body; problem?: Problem; continued: number }

/** A server whose every request is read by readBody; answers with the code of the problem, or `ok`. */
async function startServer(
  options: Partial<BodyOptions> = {},
  before: (req: IncomingMessage) => void | Promise<void> = () => {},
) {
  const outcomes: Outcome[] = []
  const waiting: ((outcome: Outcome) => void)[] = []
  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const outcome: Outcome = { req, continued: 0 }
    await before(req)
    try {
      const continueNow = () => {
        outcome.continued++
        if (req.headers.expect !== undefined) res.writeContinue()
      }
      const parts = { limit, timeoutMs: 10_000, continueNow, ...options }
      const raw = await readBody(req, parts)
      const contentEncoding = req.headers['content-encoding']
      outcome.body = { raw, bytes: await inflateBody(raw, { ...parts, contentEncoding, isProved: false }) }
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      outcome.problem = error
    }
    res.setHeader('connection', 'close').end(outcome.problem?.code ?? 'ok')
    const waiter = waiting.shift()
    if (waiter === undefined) outcomes.push(outcome)
    else waiter(outcome)
  }
  const server = createServer(handle).on('checkContinue', handle)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // a listening TCP server has an AddressInfo
  const { port } = server.address() as AddressInfo
  closers.push(() => server.close().closeAllConnections())
  const next = () =>
    new Promise<Outcome>((resolve) => {
      const outcome = outcomes.shift()
      if (outcome === undefined) waiting.push(resolve)
      else resolve(outcome)
    })
  return { port, next }
}

/** A bare connection that has sent `text`. */
function openConnection(port: number, text: string): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  closers.push(() => socket.destroy())
  socket.write(text)
  return socket
}

function toHead(...lines: string[]): string {
  return ['POST /hooks/wake HTTP/1.1', 'host: hooks.test', ...lines, '', ''].join('\r\n')
}

async function post(body: Buffer | string, encoding?: string, options: Partial<BodyOptions> = {}): Promise<Outcome> {
  const { port, next } = await startServer(options)
  const bytes = Buffer.from(body)
  const lines = encoding === undefined ? [] : [`content-encoding: ${encoding}`]
  openConnection(port, toHead(`content-length: ${bytes.length}`, ...lines)).write(bytes)
  return next()
}

describe('reading a body', () => {
  test('a body is read byte for byte, in chunks or with a declared length', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 10, 128])
    expect((await post(bytes)).body?.bytes).toEqual(bytes)
    const { port, next } = await startServer()
    const socket = openConnection(port, toHead('transfer-encoding: chunked'))
    const chunks = Array.from({ length: 40 }, (_, index) => String.fromCharCode(48 + index).repeat((index % 7) + 1))
    for (const chunk of chunks) socket.write(`${chunk.length}\r\n${chunk}\r\n`)
    socket.write('0\r\n\r\n')
    const { body } = await next()
    expect(body?.bytes.toString()).toBe(chunks.join(''))
    expect(body?.bytes.buffer.byteLength).toBe(body?.bytes.length)
  })

  test('a request without a body has an empty body', async () => {
    const { port, next } = await startServer()
    openConnection(port, toHead())
    expect((await next()).body?.bytes).toHaveLength(0)
  })

  test('the buffer of a body contains nothing else from the request', async () => {
    const { port, next } = await startServer()
    // head and body in one segment share one buffer inside Node
    openConnection(port, `${toHead('authorization: Bearer canary', 'content-length: 2')}{}`)
    const { body } = await next()
    expect(body?.bytes.toString()).toBe('{}')
    expect(new TextDecoder().decode(body?.bytes.buffer)).toBe('{}')
  })

  test.each(['success', 'too large', 'timeout', 'abort'])(
    'reading a body leaves no listener and no timer: %s',
    async (end) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      const events = ['data', 'end', 'error', 'close', 'aborted']
      // Node adds `clearIncoming` to a request that is answered before its end is reported
      const count = (req: IncomingMessage) =>
        events.map((event) => req.listeners(event).filter(({ name }) => name !== 'clearIncoming').length)
      let listened: number[] | undefined
      let continueNow = () => {}
      const reading = new Promise<void>((resolve) => (continueNow = resolve))
      const { port, next } = await startServer({ continueNow }, (req) => void (listened = count(req)))
      const socket = openConnection(port, `${toHead('transfer-encoding: chunked')}1\r\na\r\n`)
      if (end === 'success') socket.write('0\r\n\r\n')
      if (end === 'too large') socket.write(`${(limit + 1).toString(16)}\r\n${'a'.repeat(limit + 1)}\r\n`)
      await reading
      // at this point the listeners and the timer exist
      await new Promise((resolve) => setImmediate(resolve))
      if (end === 'timeout') vi.advanceTimersByTime(10_000)
      if (end === 'abort') socket.destroy()
      const { req } = await next()
      expect(vi.getTimerCount()).toBe(0)
      expect(count(req)).toEqual(listened)
    },
  )
})

describe('the limit of a body', () => {
  test('a body of exactly the limit is read, and a longer one is refused, with a declared length and without', async () => {
    expect((await post('a'.repeat(limit))).body?.bytes).toHaveLength(limit)
    expect((await post('a'.repeat(limit + 1))).problem?.code).toBe('body-too-large')
    for (const [size, code] of [
      [limit, undefined],
      [limit + 1, 'body-too-large'],
    ] as const) {
      const { port, next } = await startServer()
      openConnection(
        port,
        `${toHead('transfer-encoding: chunked')}${size.toString(16)}\r\n${'a'.repeat(size)}\r\n0\r\n\r\n`,
      )
      expect((await next()).problem?.code).toBe(code)
    }
  })

  test('a declared length over the limit is refused before a byte of the body arrives', async () => {
    const { port, next } = await startServer()
    openConnection(port, toHead(`content-length: ${limit + 1}`))
    const { problem, req } = await next()
    expect(problem?.status).toBe(413)
    expect(req.readableDidRead).toBe(false)
  })

  test('a body without a declared length is refused at the first byte over the limit, not at its end', async () => {
    const { port, next } = await startServer()
    openConnection(port, `${toHead('transfer-encoding: chunked')}fffff\r\n${'a'.repeat(limit + 1)}`)
    expect((await next()).problem?.status).toBe(413)
  })

  test('the limit also applies to the inflated body', async () => {
    for (const [encoding, compress] of [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
      ['deflate', deflateRawSync],
      ['br', brotliCompressSync],
    ] as const) {
      expect((await post(compress('a'.repeat(limit)), encoding)).body?.bytes).toHaveLength(limit)
      expect((await post(compress('a'.repeat(limit + 1)), encoding)).problem?.code).toBe('body-too-large')
    }
  })

  test('a compression bomb is stopped long before its end', async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000))
    // the end of the data is broken, so a reader that inflated all of it would call it invalid
    const broken = bomb.subarray(0, bomb.length - 1_000)
    expect((await post(broken, 'gzip', { limit: 100_000 })).problem?.code).toBe('body-too-large')
  })
})

describe('encodings of a body', () => {
  test.each([
    ['gzip', gzipSync],
    ['GZip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
  ] as const)(
    'a body in %s is inflated, and its bytes are kept as sent for the signature',
    async (encoding, compress) => {
      const sent = compress('{"text":"Grüße"}')
      const { body } = await post(sent, encoding)
      expect(body?.bytes.toString()).toBe('{"text":"Grüße"}')
      expect(body?.raw).toEqual(sent)
      expect(body?.bytes.buffer.byteLength).toBe(body?.bytes.length)
    },
  )

  test('a body with the encoding identity is not inflated', async () => {
    const { body } = await post('{}', 'identity')
    expect(body?.bytes).toBe(body?.raw)
  })

  test('an empty body is valid in every encoding', async () => {
    expect((await post('', 'gzip')).body?.bytes).toHaveLength(0)
  })

  test.each(['zstd', 'compress', 'gzip, gzip', 'identity, gzip', 'gzip;q=1', 'none'])(
    'a body in %s is refused with 415 before it is read',
    async (encoding) => {
      const { problem, req } = await post(gzipSync('{}'), encoding)
      expect(problem?.code).toBe('encoding-unsupported')
      expect(req.readableDidRead).toBe(false)
    },
  )

  test('two Content-Encoding headers count as two encodings and are refused', async () => {
    const { port, next } = await startServer()
    openConnection(port, toHead('content-encoding: gzip', 'content-encoding: identity', 'content-length: 0'))
    expect((await next()).problem?.code).toBe('encoding-unsupported')
  })

  test.each(['gzip', 'deflate', 'br'])(
    'a body that is not %s is answered 400, and the answer does not quote it',
    async (encoding) => {
      const { problem } = await post('canary canary canary', encoding)
      expect(problem?.code).toBe('body-invalid')
      expect(problem?.message).not.toContain('canary')
    },
  )

  test('compressed data that ends early is answered 400', async () => {
    expect((await post(gzipSync('a'.repeat(100)).subarray(0, 20), 'gzip')).problem?.code).toBe('body-invalid')
    expect((await post(brotliCompressSync('abcdefghijk').subarray(0, 8), 'br')).problem?.code).toBe('body-invalid')
  })
})

describe('the time limit of a body', () => {
  test('a body that arrives byte by byte is refused when all of it takes too long', async () => {
    const { port, next } = await startServer({ timeoutMs: 150 })
    const socket = openConnection(port, toHead('content-length: 900'))
    const drip = setInterval(() => socket.write('a'), 10)
    closers.push(() => clearInterval(drip))
    const { problem } = await next()
    expect(problem?.code).toBe('body-timeout')
    expect(problem?.status).toBe(408)
  })

  test('a body that arrives byte by byte is read if it arrives in time', async () => {
    const { port, next } = await startServer()
    const socket = openConnection(port, toHead('content-length: 5'))
    const drip = setInterval(() => socket.write('a'), 10)
    closers.push(() => clearInterval(drip))
    expect((await next()).body?.bytes.toString()).toBe('aaaaa')
  })
})

describe('senders that disconnect', () => {
  test('a connection that is reset during the body is body-incomplete', async () => {
    const { port, next } = await startServer()
    const socket = openConnection(port, `${toHead('content-length: 100')}abc`)
    socket.once('connect', () => socket.resetAndDestroy())
    expect((await next()).problem?.code).toBe('body-incomplete')
  })

  test('a body shorter than its declared length is body-incomplete, not a shorter body', async () => {
    const { port, next } = await startServer()
    openConnection(port, `${toHead('content-length: 100')}{}`).end()
    expect((await next()).problem?.code).toBe('body-incomplete')
  })

  test('a chunked body without its last chunk is body-incomplete', async () => {
    const { port, next } = await startServer()
    openConnection(port, `${toHead('transfer-encoding: chunked')}2\r\n{}\r\n`).end()
    expect((await next()).problem?.code).toBe('body-incomplete')
  })

  test('a sender that disconnected before the read began is noticed at once, not at the timeout', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { port, next } = await startServer({}, async (req) => {
      req.socket.destroy()
      await new Promise<void>((resolve) => req.on('close', () => resolve()))
    })
    openConnection(port, `${toHead('content-length: 100')}abc`)
    expect((await next()).problem?.code).toBe('body-incomplete')
  })
})

describe('Expect: 100-continue', () => {
  test('the answer 100 is sent once, and the body follows', async () => {
    const { port, next } = await startServer()
    const socket = openConnection(port, toHead('expect: 100-continue', 'content-length: 2'))
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1\.1 100 Continue\r\n/)
    socket.write('{}')
    const { body, continued } = await next()
    expect(body?.bytes.toString()).toBe('{}')
    expect(continued).toBe(1)
  })

  test.each([
    ['a declared length over the limit', `content-length: ${limit + 1}`],
    ['an encoding that is not inflated', 'content-encoding: zstd'],
  ])('the answer 100 is never sent for %s', async (_, line) => {
    const { port, next } = await startServer()
    openConnection(port, toHead('expect: 100-continue', line))
    expect(await next()).toMatchObject({ continued: 0, problem: expect.any(Problem) })
  })
})
