// A request that arrived elsewhere is the same request for the hook port.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { createInjector, findArrived } from '../../../../src/gateway/http/inject.ts'

const arrived = {
  id: 'request-1',
  at: 1_767_323_045_000,
  method: 'POST',
  url: '/hooks/deploy?a=%20b',
  rawHeaders: [
    'Host',
    'relay.example.org',
    'X-One',
    'é',
    'x-one',
    'two',
    'Connection',
    'keep-alive',
    'Content-Length',
    '9',
  ],
  client: '203.0.113.7',
  body: Buffer.from([0, 255, 10]),
}

type Seen = Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'> & {
  client: string | undefined
  body: Buffer
  arrived: unknown
}

function open(answer: (res: ServerResponse) => void = (res) => res.end('ok')) {
  const seen: Seen[] = []
  const receive = createInjector({
    path: () => '/hooks',
    async listener(req, res) {
      const { method, url, rawHeaders, socket } = req
      seen.push({
        method,
        url,
        rawHeaders,
        client: socket.remoteAddress,
        body: await buffer(req),
        arrived: findArrived(req),
      })
      answer(res)
    },
  })
  return { seen, receive }
}

test('method, URL, headers, bytes and client are those of the request; only what belongs to its connection is new', async () => {
  const { seen, receive } = open((res) => res.writeHead(202, { 'x-two': ['a', 'b'] }).end('given'))
  expect(await receive(arrived)).toMatchObject({
    status: 202,
    headers: { 'x-two': 'a, b' },
    body: Buffer.from('given'),
  })
  const { method, url, client, body, id, at } = arrived
  const rawHeaders = [
    'Host',
    'relay.example.org',
    'X-One',
    'é',
    'x-one',
    'two',
    'connection',
    'close',
    'content-length',
    '3',
  ]
  expect(seen).toEqual([{ method, url, client, body, rawHeaders, arrived: { id, at } }])
})

test('a request without a body has none', async () => {
  const { seen, receive } = open()
  await receive({ ...arrived, method: 'GET', body: Buffer.alloc(0) })
  await receive({ ...arrived, body: Buffer.alloc(0) })
  expect(seen.map(({ body, rawHeaders }) => [body.length, rawHeaders.slice(6)])).toEqual([
    [0, ['connection', 'close']],
    [0, ['connection', 'close', 'content-length', '0']],
  ])
})

test('a path outside of the hooks gets 404, and reaches nothing', async () => {
  const { seen, receive } = open()
  for (const url of ['/readyz', '/', '/hooks2/a', '//hooks/a', '/x/../hooks/a', 'http://a/hooks/b'])
    expect([url, (await receive({ ...arrived, url })).status]).toEqual([url, 404])
  expect(seen).toEqual([])
})

test.each([
  ['a URL with a space', { url: '/hooks/a b' }],
  ['a URL with a line', { url: '/hooks/a\r\nx: y' }],
  ['a header with a line', { rawHeaders: ['x-one', 'a\r\nx-two: b'] }],
  ['a name of a header with a space', { rawHeaders: ['x one', 'a'] }],
  ['a method with a space', { method: 'GET /hooks/b' }],
])('%s gets 400, and reaches nothing', async (_, change) => {
  const { seen, receive } = open()
  expect((await receive({ ...arrived, ...change })).status).toBe(400)
  expect(seen).toEqual([])
})

test('an answer that breaks off is a failure, and not a refusal', async () => {
  const { receive } = open((res) => res.destroy())
  await expect(receive(arrived)).rejects.toThrow('The gateway did not answer the request.')
})

test('a request of another connection did not arrive elsewhere', () => {
  // as: only the socket is read
  expect(findArrived({ socket: {} } as IncomingMessage)).toBe(undefined)
})
