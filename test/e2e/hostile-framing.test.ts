// Requests whose end is ambiguous are refused and answered once, and the connection is closed.
import { inspect } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { readDeliveryId, readVerdict } from './answers.ts'
import { hookToken } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { exchange, type Exchange, post, toRequest } from './wire.ts'

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({ config: { server: { bodyTimeoutMs: 1_000, maxBodyBytes: 8_000 } } })
})

const body = '{"text":"x"}'
const chunks = `c\r\n${body}\r\n0\r\n\r\n`
/** A request that an attacker hides behind another one, for a reader that sees the end of the other one too early. */
const hideRequest = (text: string) =>
  toRequest({
    target: '/hooks/wake',
    headers: [['authorization', `Bearer ${hookToken}`]],
    body: JSON.stringify({ text }),
  })
const toHead = (...lines: string[]) =>
  `${['POST /hooks/wake HTTP/1.1', 'Host: x', `Authorization: Bearer ${hookToken}`, ...lines].join('\r\n')}\r\n\r\n`

async function isThere(wanted: string): Promise<boolean> {
  const events = await readStore(gateway.dir, (reader) => reader.events({ limit: 10_000 }))
  return events.some(({ text }) => text === wanted)
}

function expectRefusedOnce({ replies, closed }: Exchange): void {
  expect(closed).toBe(true)
  expect(replies.map(readVerdict)).toEqual(['request-malformed'])
}

describe('ambiguous HTTP', () => {
  test.each<[string, string]>([
    ['two lengths', toHead('Content-Length: 12', 'Content-Length: 0') + body],
    ['the same length twice', toHead('Content-Length: 12', 'Content-Length: 12') + body],
    ['a list of lengths', toHead('Content-Length: 12, 12') + body],
    ['a length and chunks', toHead('Content-Length: 12', 'Transfer-Encoding: chunked') + chunks],
    ['chunks and a length', toHead('Transfer-Encoding: chunked', 'Content-Length: 4') + chunks],
    ['a length with a sign', toHead('Content-Length: +12') + body],
    ['a negative length', toHead('Content-Length: -1') + body],
    ['a length in hex', toHead('Content-Length: 0xc') + body],
    ['a length with a fraction', toHead('Content-Length: 12.0') + body],
    ['a length that is too large', toHead('Content-Length: 99999999999999999999999') + body],
    ['an empty length', toHead('Content-Length:') + body],
    ['a space after the name Content-Length', toHead('Content-Length : 12') + body],
    ['a folded header', toHead('X-A: b\r\n Content-Length: 12') + body],
    ['chunked before another coding', toHead('Transfer-Encoding: chunked, gzip') + chunks],
    ['an unknown coding', toHead('Transfer-Encoding: xchunked') + chunks],
    ['a quoted coding', toHead('Transfer-Encoding: "chunked"') + chunks],
    ['chunked with a control character', toHead('Transfer-Encoding: \u000bchunked') + chunks],
    ['chunks in HTTP/1.0', toHead('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0') + chunks],
    ['two codings', toHead('Transfer-Encoding: identity', 'Transfer-Encoding: chunked') + chunks],
    ['a chunk without a size', toHead('Transfer-Encoding: chunked') + `\r\n${body}\r\n0\r\n\r\n`],
    ['a chunk size with a sign', toHead('Transfer-Encoding: chunked') + `+c\r\n${body}\r\n0\r\n\r\n`],
    ['a chunk size with 0x', toHead('Transfer-Encoding: chunked') + `0xc\r\n${body}\r\n0\r\n\r\n`],
    [
      'a chunk size that is too large',
      toHead('Transfer-Encoding: chunked') + `fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`,
    ],
    ['a chunk longer than its size', toHead('Transfer-Encoding: chunked') + `2\r\n${body}\r\n0\r\n\r\n`],
    ['a chunk ended by a bare LF', toHead('Transfer-Encoding: chunked') + `c\n${body}\n0\n\n`],
    ['lines ended by bare LF', `${toHead('Content-Length: 12').replaceAll('\r\n', '\n')}${body}`],
    ['lines ended by bare CR', `${toHead('Content-Length: 12').replaceAll('\r\n', '\r')}${body}\r\n\r\n`],
    ['a bare CR in a value', toHead('X-A: b\rContent-Length: 99', 'Content-Length: 12') + body],
    ['a NUL in a value', toHead('X-A: b\0c', 'Content-Length: 12') + body],
    ['a NUL in a name', toHead('X-\0A: b', 'Content-Length: 12') + body],
    ['a space in a name', toHead('X A: b', 'Content-Length: 12') + body],
    ['a line without a colon', toHead('nonsense', 'Content-Length: 12') + body],
    ['no host', toHead('Content-Length: 12').replace('Host: x\r\n', '') + body],
    ['two hosts', toHead('Host: y', 'Content-Length: 12') + body],
    ['an unknown version', toHead('Content-Length: 12').replace('HTTP/1.1', 'HTTP/1.9') + body],
    ['HTTP/2 in the clear', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/0.9', `GET /hooks/wake\r\n\r\n`],
    ['no version', toHead('Content-Length: 12').replace(' HTTP/1.1', '') + body],
    ['a method in lower case', toHead('Content-Length: 12').replace('POST', 'post') + body],
    ['a space in the target', toHead('Content-Length: 12').replace('/hooks/wake', '/hooks/ wake') + body],
    ['TLS on a plain port', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003\r\n\r\n'],
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['headers that are too long', toHead(...Array.from({ length: 40 }, (_, n) => `X-${n}: ${'a'.repeat(1_000)}`))],
  ])('a request with %s is refused, and so is the request after it', async (title, request) => {
    const bytes = Buffer.concat([Buffer.from(request, 'latin1'), hideRequest(`behind ${title}`)])
    expectRefusedOnce(await exchange(gateway.port, bytes, { until: 'all' }))
    expect(await isThere(`behind ${title}`)).toBe(false)
  })

  test('bytes beyond a declared length that is too short are not read as a request', async () => {
    const bytes = toHead('Content-Length: 12') + body + body
    const { replies, closed } = await exchange(gateway.port, bytes, { until: 'all' })
    expect(closed).toBe(true)
    expect(replies.map(readVerdict)).toEqual(['accepted', 'request-malformed'])
  })

  test('bytes after an unread body are never read as a request', async () => {
    const unread = toHead('Content-Length: 99999999').replace(hookToken, 'wrong')
    const bytes = Buffer.concat([Buffer.from(unread), hideRequest('unread')])
    const { replies } = await exchange(gateway.port, bytes, { until: 'all' })
    expect(replies.map(({ status }) => status)).toEqual([401])
    expect(await isThere('unread')).toBe(false)
  })
})

// Node drops what follows such a request in its packet, and reads the next packet as the beginning of a request
test('what follows a request for another protocol is no request, so no body can pass for one', async () => {
  const switched = toHead('Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 12') + body
  const head = toHead('Content-Length: 300')
  const bytes = hideRequest('in a body')
  const { replies, closed } = await exchange(gateway.port, switched + head, { until: 'all', next: bytes })
  expect([replies.map(readVerdict), closed]).toEqual([['accepted'], true])
  readDeliveryId(await post(gateway.port, '/hooks/wake', { text: 'the next' }))
  expect(await isThere('in a body')).toBe(false)
})

describe('requests after an answer that closes the connection', () => {
  const replaceToken = (request: string) => request.replace(hookToken, 'wrong')
  test.each<[string, number, string]>([
    ['a wrong token', 401, replaceToken(toHead('Content-Length: 12')) + body],
    ['a wrong token, in chunks', 401, replaceToken(toHead('Transfer-Encoding: chunked')) + chunks],
    ['a method that has a body', 405, toHead('Content-Length: 12').replace('POST', 'PUT') + body],
    ['an unknown name', 404, toHead('Content-Length: 12').replace('wake', 'nobody') + body],
    ['an unsupported encoding', 415, toHead('Content-Encoding: zstd', 'Content-Length: 12') + body],
    ['a body over the limit', 413, toHead('Content-Length: 9000') + 'x'.repeat(9_000)],
  ])('a request after the refusal of %s is ignored', async (title, status, request) => {
    const bytes = Buffer.concat([Buffer.from(request), hideRequest(`after ${title}`)])
    const { replies, closed } = await exchange(gateway.port, bytes, { until: 'all' })
    expect([replies.map((reply) => reply.status), closed]).toEqual([[status], true])
    // when this request is answered, every earlier request is in the store
    readDeliveryId(await post(gateway.port, '/hooks/wake', { text: 'the next' }))
    expect(await isThere(`after ${title}`)).toBe(false)
  })
})

test('a second credential is found even after 900 other headers, and a request with 2,100 headers is refused', async () => {
  const buildHeaders = (count: number) => Array.from({ length: count }, () => 'a:')
  const twice = toHead(...buildHeaders(2_100), 'Authorization: Bearer wrong', 'Content-Length: 12') + body
  expectRefusedOnce(await exchange(gateway.port, twice, { until: 'all' }))
  const within = toHead(...buildHeaders(900), 'Authorization: Bearer wrong', 'Content-Length: 12') + body
  const { replies } = await exchange(gateway.port, within)
  expect(replies.map(readVerdict)).toEqual(['unauthorized'])
})

// Node 20 and later versions differ in the hosts that they accept as a URL, but all of them refuse these hosts
test.each(['http://[/hooks/wake?token=canary', 'http://a<b/hooks?token=canary', 'http://u:canary@[::1/hooks'])(
  'a target that is not a URL is refused on both ports, and its token is not logged: %s',
  async (target) => {
    const lines: string[] = []
    const note = (...args: unknown[]) => void lines.push(inspect(args, { depth: 5 }))
    const log = { debug: note, info: note, warn: note, error: note }
    const { port, adminUrl } = await startInside({ log })
    for (const each of [port, Number(new URL(adminUrl).port)]) {
      expectRefusedOnce(await exchange(each, `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`, { until: 'all' }))
    }
    expect(lines.join('')).not.toContain('canary')
  },
)

describe('unambiguous HTTP', () => {
  test.each<[string, string]>([
    ['a length', toHead('Content-Length: 12') + body],
    ['a length with zeros', toHead('Content-Length: 0012') + body],
    ['chunks', toHead('Transfer-Encoding: chunked') + chunks],
    ['chunks in capitals', toHead('TRANSFER-ENCODING: CHUNKED') + chunks],
    [
      'chunks with extensions and trailers',
      toHead('Transfer-Encoding: chunked') + `C;a=b\r\n${body}\r\n0;x\r\nX-T: y\r\n\r\n`,
    ],
    [
      'small chunks',
      toHead('Transfer-Encoding: chunked') + [...body].map((c) => `1\r\n${c}\r\n`).join('') + '0\r\n\r\n',
    ],
    ['blank lines before the request', `\r\n\r\n${toHead('Content-Length: 12')}${body}`],
    ['an unknown expectation', toHead('Expect: the-unexpected', 'Content-Length: 12') + body],
    ['HTTP/1.0', toHead('Content-Length: 12').replace('HTTP/1.1', 'HTTP/1.0') + body],
    ['a hundred headers', toHead(...Array.from({ length: 100 }, (_, n) => `X-${n}: a`), 'Content-Length: 12') + body],
  ])('a request with %s is accepted', async (_, request) => {
    const { replies } = await exchange(gateway.port, Buffer.from(request, 'latin1'))
    expect(replies.map(readVerdict)).toEqual(['accepted'])
  })

  test('pipelined requests are answered in order', async () => {
    const bytes = [1, 2, 3].map((n) => toHead('Content-Length: 12') + `{"text":"${n}"}`).join('')
    const { replies } = await exchange(gateway.port, bytes, { until: 3 })
    const ids = replies.map(readDeliveryId)
    const events = await readStore(gateway.dir, (reader) => reader.events({ limit: 10_000 }))
    const texts = ids.map((id) => events.find(({ deliveryId }) => deliveryId === id)?.text)
    expect(texts).toEqual(['1', '2', '3'])
  })

  test('each answer of a connection has a separate request id', async () => {
    const bytes = toHead('Content-Length: 12') + body + toHead('Content-Length: 12') + body
    const { replies } = await exchange(gateway.port, bytes, { until: 2 })
    const ids = replies.map(({ headers }) => headers['x-request-id'])
    expect(new Set(ids).size).toBe(2)
  })

  test('a request id in a header of the request is ignored', async () => {
    const { replies } = await exchange(gateway.port, toHead('X-Request-Id: chosen', 'Content-Length: 12') + body)
    expect(replies.map(({ headers }) => headers['x-request-id'] === 'chosen')).toEqual([false])
  })
})
