// Hostile bodies: types, sizes, encodings and slow senders.
import { connect } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { readVerdict } from './answers.ts'
import { type Inside, startInside } from './inside.ts'
import { bearer, exchange, type Headers, json, send, toRequest } from './wire.ts'

const limit = 10_000
let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({
    config: {
      server: { maxBodyBytes: limit, bodyTimeoutMs: 400 },
      hooks: { mappings: [{ id: 'any', match: { path: 'any' }, deliver: false }] },
    },
  })
})

const wake = JSON.stringify({ text: 'hello' })
const toTypeHeaders = (type: string): Headers => [...bearer, ['content-type', type]]
const toEncodingHeaders = (encoding: string): Headers => [...bearer, ...json, ['content-encoding', encoding]]
/** A wake of exactly this many bytes. */
const buildSizedBody = (bytes: number) =>
  JSON.stringify({ text: 'x'.repeat(bytes - JSON.stringify({ text: '' }).length) })
const ask = (headers: Headers, body: string | Uint8Array, name = 'wake') =>
  send(gateway.port, { target: `/hooks/${name}`, headers, body })

describe('content types', () => {
  test('a multipart form is refused by a built-in hook, and an incomplete one also by a mapped hook', async () => {
    const type = 'multipart/form-data; boundary=x'
    const part = '--x\r\ncontent-disposition: form-data; name="text"\r\n\r\nhi\r\n'
    expect(readVerdict(await ask(toTypeHeaders(type), `${part}--x--\r\n`))).toBe('media-type-unsupported')
    expect(readVerdict(await ask(toTypeHeaders(type), part, 'any'))).toBe('body-invalid')
  })

  test.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; charset=utf8',
    'application/cloudevents+json',
    'application/vnd.api+json; charset=utf-8',
    'application/json; foo=bar',
  ])('the content type %s is read as JSON', async (type) => {
    expect(readVerdict(await ask(toTypeHeaders(type), wake))).toBe('accepted')
  })

  test('a body without a content type is read as JSON', async () => {
    expect(readVerdict(await ask(bearer, wake))).toBe('accepted')
  })

  test.each([
    'text/plain',
    'text/xml',
    'application/xml',
    'text/html',
    'image/png',
    'application/jsonp',
    'text/json',
    'application/json, text/plain',
    'application/octet-stream',
    'json',
    '*/*',
    'application/json; charset=no-such-charset',
    'application/json; charset=utf-7',
    'application/x-ndjson',
  ])('the content type %s is refused', async (type) => {
    expect(readVerdict(await ask(toTypeHeaders(type), wake))).toBe('media-type-unsupported')
    expect(readVerdict(await ask(toTypeHeaders(type), wake, 'any'))).toBe('media-type-unsupported')
  })

  test('a form is accepted by a mapped hook, and not by the hook wake', async () => {
    const form = toTypeHeaders('application/x-www-form-urlencoded')
    expect(readVerdict(await ask(form, 'text=hello', 'any'))).toBe('accepted')
    expect(readVerdict(await ask(form, 'text=hello'))).toBe('media-type-unsupported')
  })
})

describe('body sizes', () => {
  const encodeChunks = (body: string): string =>
    `POST /hooks/wake HTTP/1.1\r\nhost: x\r\nauthorization: ${bearer[0]?.[1]}\r\ntransfer-encoding: chunked\r\n\r\n` +
    `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`

  test('a body with Content-Length at the limit is accepted, and one byte more is refused', async () => {
    expect(readVerdict(await ask([...bearer, ...json], buildSizedBody(limit)))).toBe('accepted')
    expect(readVerdict(await ask([...bearer, ...json], buildSizedBody(limit + 1)))).toBe('body-too-large')
  })

  test('a chunked body at the limit is accepted, and one byte more is refused', async () => {
    for (const [bytes, verdict] of [
      [limit, 'accepted'],
      [limit + 1, 'body-too-large'],
    ] as const) {
      const { replies } = await exchange(gateway.port, encodeChunks(buildSizedBody(bytes)))
      expect(replies.map(readVerdict)).toEqual([verdict])
    }
  })

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const)(
    'a body inflated from %s to the limit is accepted, and one byte more is refused',
    async (encoding, compress) => {
      expect(readVerdict(await ask(toEncodingHeaders(encoding), compress(buildSizedBody(limit))))).toBe('accepted')
      expect(readVerdict(await ask(toEncodingHeaders(encoding), compress(buildSizedBody(limit + 1))))).toBe(
        'body-too-large',
      )
    },
  )

  test('a small body that inflates to 8 MiB is refused', async () => {
    const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024))
    expect(bomb.length).toBeLessThan(limit)
    expect(readVerdict(await ask(toEncodingHeaders('gzip'), bomb))).toBe('body-too-large')
  })

  test('a body with a declared length over the limit is refused before it is sent', async () => {
    const request = toRequest({
      target: '/hooks/wake',
      headers: [...bearer, ...json, ['content-length', '99999999'], ['expect', '100-continue']],
      length: false,
    })
    const { replies, interim } = await exchange(gateway.port, request)
    expect(interim).toEqual([])
    expect(replies.map(readVerdict)).toEqual(['body-too-large'])
  })

  test('a sender that waits for 100 Continue gets it only with the token', async () => {
    const expecting: Headers = [...json, ['expect', '100-continue']]
    const allowed = await exchange(
      gateway.port,
      toRequest({ target: '/hooks/wake', headers: [...bearer, ...expecting], body: wake }),
    )
    expect([allowed.interim, allowed.replies.map(({ status }) => status)]).toEqual([[100], [200]])
    const denied = await exchange(gateway.port, toRequest({ target: '/hooks/wake', headers: expecting, body: wake }))
    expect([denied.interim, denied.replies.map(({ status }) => status)]).toEqual([[], [401]])
  })
})

describe('body encodings', () => {
  test.each<[string, string | Uint8Array]>([
    ['identity', wake],
    ['gzip', gzipSync(wake)],
    ['x-gzip', gzipSync(wake)],
    ['GZIP', gzipSync(wake)],
    ['deflate', deflateSync(wake)],
    ['deflate', deflateRawSync(wake)],
    ['br', brotliCompressSync(wake)],
  ])('a body in %s is inflated', async (encoding, body) => {
    expect(readVerdict(await ask(toEncodingHeaders(encoding), body))).toBe('accepted')
  })

  test.each(['zstd', 'compress', 'gzip, gzip', 'gzip, br', 'utf-8', 'x'])(
    'the encoding %s is refused',
    async (encoding) => {
      expect(readVerdict(await ask(toEncodingHeaders(encoding), gzipSync(wake)))).toBe('encoding-unsupported')
    },
  )

  test.each<[string, string, Uint8Array]>([
    ['text declared as gzip', 'gzip', Buffer.from(wake)],
    ['half a gzip', 'gzip', gzipSync(wake).subarray(0, 15)],
    ['gzip with a wrong checksum', 'gzip', Buffer.concat([gzipSync(wake).subarray(0, -8), Buffer.alloc(8)])],
    ['text declared as br', 'br', Buffer.from(wake)],
    ['half a deflate', 'deflate', deflateSync(wake).subarray(0, 6)],
    ['gzip declared as br', 'br', gzipSync(wake)],
  ])('the invalid encoded body is refused: %s', async (_, encoding, body) => {
    expect(readVerdict(await ask(toEncodingHeaders(encoding), body))).toBe('body-invalid')
  })

  test('a body compressed twice with gzip is not JSON', async () => {
    expect(readVerdict(await ask(toEncodingHeaders('gzip'), gzipSync(gzipSync(wake))))).toBe('body-invalid')
  })
})

describe('slow senders', () => {
  test('a body that stops halfway is answered 408 when its time is over', async () => {
    const request = toRequest({ target: '/hooks/wake', headers: [...bearer, ['content-length', '50']], length: false })
    const began = performance.now()
    const { replies } = await exchange(gateway.port, Buffer.concat([request, Buffer.from('{"text":')]))
    expect(performance.now() - began).toBeGreaterThan(390)
    expect(replies.map(readVerdict)).toEqual(['body-timeout'])
  })

  test('a body that arrives byte by byte does not get more time', async () => {
    const socket = connect({ port: gateway.port, host: '127.0.0.1' })
    const head = toRequest({ target: '/hooks/wake', headers: [...bearer, ['content-length', '5000']], length: false })
    socket.write(head)
    const drip = setInterval(() => socket.writable && socket.write('x'), 50)
    const answer = await new Promise<string>((resolve, reject) => {
      socket.once('data', (chunk: Buffer) => resolve(chunk.toString('latin1')))
      socket.once('error', reject)
    })
    clearInterval(drip)
    socket.destroy()
    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
  })

  test('after a sender disconnects in the middle of a body, the gateway accepts other requests', async () => {
    const socket = connect({ port: gateway.port, host: '127.0.0.1' })
    const head = toRequest({ target: '/hooks/wake', headers: [...bearer, ['content-length', '500']], length: false })
    await new Promise<void>((resolve) => socket.write(Buffer.concat([head, Buffer.from('{"te')]), () => resolve()))
    socket.destroy()
    expect(readVerdict(await ask([...bearer, ...json], wake))).toBe('accepted')
  })

  test('a hundred slow senders are answered 408, and another request is accepted meanwhile', async () => {
    const head = toRequest({ target: '/hooks/wake', headers: [...bearer, ['content-length', '500']], length: false })
    const slow = Array.from({ length: 100 }, () => exchange(gateway.port, head))
    expect(readVerdict(await ask([...bearer, ...json], wake))).toBe('accepted')
    const statuses = (await Promise.all(slow)).map(({ replies }) => replies.map(({ status }) => status))
    expect(new Set(statuses.flat())).toEqual(new Set([408]))
  })
})
