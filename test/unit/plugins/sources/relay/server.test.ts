// What a relay answers to senders and to homes.
import { request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { silentLog } from '../../../../../src/base/log.ts'
import { openEnvelope } from '../../../../../src/plugins/sources/relay/envelope.ts'
import { deriveKeys, generateHomeKey, signCall } from '../../../../../src/plugins/sources/relay/keys.ts'
import { createRelayClient } from '../../../../../src/plugins/sources/relay/relay-client.ts'
import { startRelay } from '../../../../../src/plugins/sources/relay/relay-server.ts'
import { onFileEnd } from '../../../../file-end.ts'
import { makeFolder } from '../../../../e2e/gateway.ts'

const start = { epoch: '', number: 0 }

/** A relay with a home that is known and does not ask. `now`: the time of the relay; its requests a second are counted by it. */
async function openRelay(limits: Parameters<typeof startRelay>[0]['limits'] = {}) {
  const now = { ms: Date.now() }
  const clock = () => now.ms
  const relay = await startRelay({ dir: makeFolder(), host: '127.0.0.1', port: 0, limits, clock, log: silentLog })
  onFileEnd(() => relay.close())
  const keys = deriveKeys(generateHomeKey())
  const { signal } = new AbortController()
  const client = createRelayClient({ url: relay.url, keys, host: { fetch, clock }, signal })
  await client.answer(start, [])
  // it has called a moment ago, and counts as busy
  now.ms += 11_000
  return { relay, now, keys, client, url: `${relay.url}/r/${keys.known.address}` }
}

const post = (url: string, body = 'x', headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', body, headers })

test('a request is kept for a home that is away, with what follows its address', async () => {
  const { url, client, keys } = await openRelay()
  const answer = await post(`${url}/hooks/a%20b?c=d`, 'body')
  expect([answer.status, await answer.json()]).toEqual([202, { ok: true }])
  const { handed } = await client.poll(start)
  const opened = handed.map(({ envelope }) => openEnvelope(envelope, keys))
  expect(opened).toMatchObject([
    { method: 'POST', url: '/hooks/a%20b?c=d', client: '127.0.0.1', body: Buffer.from('body') },
  ])
})

test('the client is the last one of X-Forwarded-For, if the proxy is on the same machine', async () => {
  const { url, client, keys } = await openRelay()
  await post(url, 'x', { 'x-forwarded-for': '198.51.100.1, 203.0.113.7' })
  const { handed } = await client.poll(start)
  expect(handed.map(({ envelope }) => openEnvelope(envelope, keys).client)).toEqual(['203.0.113.7'])
})

test('a sender that waits gets the answer of the home, and of a failure 202', async () => {
  const { url, client, keys } = await openRelay()
  for (const [status, expected] of [
    [200, 200],
    [401, 401],
    [503, 202],
  ] as const) {
    const polling = client.poll(start)
    await sleep(50)
    const sent = post(url, String(status))
    const { epoch, handed } = await polling
    const [last] = handed.slice(-1)
    const { id } = openEnvelope(last?.envelope ?? Buffer.alloc(0), keys)
    const headers = { 'content-type': 'text/plain', 'retry-after': '7', 'set-cookie': 'a=b' }
    const through = status === 503 ? 0 : (last?.number ?? 0)
    await client.answer({ epoch, number: through }, [{ id, answer: { status, headers, body: Buffer.from('given') } }])
    const answer = await sent
    expect(answer.status).toBe(expected)
    if (expected === 202) continue
    expect([await answer.text(), answer.headers.get('retry-after'), answer.headers.get('set-cookie')]).toEqual([
      'given',
      '7',
      null,
    ])
  }
  expect((await post(url)).headers.get('content-security-policy')).toContain('sandbox')
  // only the one that the home failed to take is still there
  const { handed } = await client.poll(start)
  expect(handed.map(({ envelope }) => openEnvelope(envelope, keys).body.toString())).toEqual(['503', 'x'])
})

test('a home that has too much gets no more, and its senders 503', async () => {
  const { url } = await openRelay({ envelopes: 2 })
  const statuses = [await post(url), await post(url), await post(url)].map(({ status }) => status)
  expect(statuses).toEqual([202, 202, 503])
  expect((await post(url)).headers.get('retry-after')).toBe('300')
})

test('more than fifty requests a second for a home get 429', async () => {
  const { url, now } = await openRelay()
  const all = await Promise.all(Array.from({ length: 60 }, () => post(url)))
  expect(all.filter(({ status }) => status === 202)).toHaveLength(50)
  expect(all.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('1')
  now.ms += 1_000
  expect((await post(url)).status).toBe(202)
})

test('a relay with all its homes refuses another one', async () => {
  const { relay } = await openRelay({ homes: 1 })
  const keys = deriveKeys(generateHomeKey())
  const { signal } = new AbortController()
  const other = createRelayClient({ url: relay.url, keys, host: { fetch, clock: Date.now }, signal })
  await expect(other.poll(start)).rejects.toThrow(/answered 503|refused the signature/)
})

test('a home gets nothing of another home', async () => {
  const { relay, keys, now } = await openRelay()
  const other = deriveKeys(generateHomeKey())
  const target = `/homes/${keys.known.address}/requests?after=0&epoch=`
  const call = { method: 'GET', host: new URL(relay.url).host, target, body: Buffer.alloc(0) }
  const answer = await fetch(`${relay.url}${target}`, { headers: signCall(other, call, now.ms) })
  expect(answer.status).toBe(401)
})

test(
  'a body without an end, and one over a mebibyte, are refused, and nothing is kept',
  { timeout: 20_000 },
  async () => {
    const { url, client, now } = await openRelay()
    const sent = request(url, { method: 'POST' })
    sent.on('error', () => {})
    const answered = new Promise<number | undefined>((resolve) =>
      sent.once('response', (res) => resolve(res.statusCode)),
    )
    sent.write('begun')
    const { hostname, port, pathname } = new URL(url)
    const socket = connect(Number(port), hostname)
    const head = `POST ${pathname} HTTP/1.1\r\nhost: a\r\ncontent-length: 1048577\r\n\r\n`
    const status = await new Promise<string>((resolve) => {
      socket.once('data', (text) => resolve(String(text).slice(9, 12)))
      socket.write(head)
    })
    expect(status).toBe('413')
    socket.destroy()
    expect(await answered).toBe(408)
    sent.destroy()
    now.ms += 1
    await post(url, 'last')
    expect((await client.poll(start)).handed).toHaveLength(1)
  },
)
