// One client that occupies shared resources: connections, and memory for unproven bodies.
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { readVerdict } from './answers.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { bearer, exchange, type Headers, json, send, toRequest } from './wire.ts'

const secret = 'whsec-0123456789abcdefghij'
const closers: (() => void)[] = []
let gateway: Inside

beforeAll(async () => {
  const verify = { scheme: 'github', secret }
  gateway = await startInside({
    config: {
      server: { trustedProxies: ['127.0.0.1'] },
      hooks: { mappings: [{ id: 'signed', match: { path: 'signed' }, verify, deliver: false }] },
    },
  })
})
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

const toFrom = (client: string): Headers => [['x-forwarded-for', client]]
const wake = JSON.stringify({ text: 'hello' })

describe('connections after a refusal', () => {
  test.each<[string, Headers]>([
    ['a wrong token', [['authorization', 'Bearer wrong']]],
    ['no token', []],
    ['a page of another site', [['origin', 'https://evil.test']]],
  ])('the refusal of a request with %s closes its connection', async (_, headers) => {
    const request = toRequest({
      target: '/hooks/wake',
      headers: [...toFrom('10.4.0.1'), ...headers],
      body: '',
    })
    const { replies, closed } = await exchange(gateway.port, Buffer.concat([request, request]), { until: 'all' })
    expect([closed, replies.length, replies[0]?.headers['connection']]).toEqual([true, 1, 'close'])
  })

  test('the refusal of a locked-out client closes its connection', async () => {
    const guessToken = (token: string) =>
      toRequest({
        target: '/hooks/wake',
        headers: [...toFrom('10.4.0.2'), ['authorization', `Bearer ${token}`]],
      })
    for (let count = 0; count < 20; count++) await exchange(gateway.port, guessToken('wrong'))
    const { replies, closed } = await exchange(gateway.port, guessToken(hookToken), { until: 'all' })
    expect([closed, replies.map(readVerdict)]).toEqual([true, ['rate-limited']])
    expect(replies[0]?.headers['connection']).toBe('close')
  })

  test('a wrong token on the admin port closes its connection', async () => {
    const port = Number(new URL(gateway.adminUrl).port)
    const ask = (token: string) =>
      toRequest({ method: 'GET', target: '/api/refusals', headers: [['authorization', `Bearer ${token}`]] })
    const { replies, closed } = await exchange(port, Buffer.concat([ask('wrong'), ask(gatewayToken)]), { until: 'all' })
    expect([closed, replies.map(({ status }) => status)]).toEqual([true, [401]])
  })

  test('a refusal of a request with the hook token keeps the connection open', async () => {
    const request = toRequest({ target: '/hooks/wake', headers: [...bearer, ...json], body: '{}' })
    const { replies } = await exchange(gateway.port, Buffer.concat([request, request]), { until: 2 })
    expect(replies.map(({ headers }) => headers['connection'])).toEqual(['keep-alive', 'keep-alive'])
  })
})

describe('memory for unproven bodies', () => {
  const size = 262_144
  const signed = (body: string): Headers => [
    ...json,
    ['x-github-event', 'push'],
    ['x-hub-signature-256', `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`],
  ]
  const deliver = (client: string) =>
    send(gateway.port, { target: '/hooks/signed', headers: [...toFrom(client), ...signed(wake)], body: wake })

  /** A forged delivery that never ends: its body without the last byte. */
  async function startEndless(client: string) {
    const socket = connect({ port: gateway.port, host: '127.0.0.1' })
    const seen = { text: '' }
    closers.push(() => socket.destroy())
    socket.on('error', () => {}).on('data', (chunk) => (seen.text += String(chunk)))
    await once(socket, 'connect')
    const headers: Headers = [...toFrom(client), ...signed('forged'), ['content-length', String(size)]]
    const head = toRequest({ target: '/hooks/signed', headers, length: false })
    await new Promise<void>((resolve) =>
      socket.write(Buffer.concat([head, Buffer.alloc(size - 1, 'x')]), () => resolve()),
    )
    return { socket, seen }
  }

  test('a client that has used up its share of memory is answered 503, and others are not affected', async () => {
    const held: Awaited<ReturnType<typeof startEndless>>[] = []
    for (let count = 0; count < 40; count++) held.push(await startEndless('10.5.0.1'))
    const listRefused = () => held.filter(({ seen }) => seen.text.startsWith('HTTP/1.1 503 '))
    // 8 MiB have room for 32 bodies of 256 KiB
    await vi.waitFor(() => expect(listRefused()).toHaveLength(8), { timeout: 60_000 })
    expect(listRefused()[0]?.seen.text).toMatch(/retry-after: \d+[^]*"code":"overloaded"/i)
    expect(readVerdict(await deliver('10.5.0.1'))).toBe('overloaded')
    expect(readVerdict(await deliver('10.5.0.2'))).toBe('accepted')
    // a client with the token does not use the memory for unproven bodies
    const token: Headers = [...toFrom('10.5.0.1'), ...bearer, ...json]
    expect(readVerdict(await send(gateway.port, { target: '/hooks/wake', headers: token, body: wake }))).toBe(
      'accepted',
    )
    for (const { socket } of held) socket.destroy()
    await vi.waitFor(async () => expect(readVerdict(await deliver('10.5.0.1'))).toBe('accepted'), { timeout: 60_000 })
  })

  test('each request gives back its share of the memory, whatever its outcome', async () => {
    const body = 'x'.repeat(size)
    const forged: Headers = [...signed('forged'), ['content-type', 'application/json']]
    for (let count = 0; count < 80; count++) {
      const headers = [...toFrom(`10.6.0.${count}`), ...forged.slice(1)]
      expect(readVerdict(await send(gateway.port, { target: '/hooks/signed', headers, body }))).toBe('unauthorized')
    }
    for (let count = 0; count < 40; count++) expect(readVerdict(await deliver('10.6.1.1'))).toBe('accepted')
  })
})
