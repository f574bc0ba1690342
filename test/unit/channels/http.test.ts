// What is known after one request: an answer, surely nothing, or nobody knows.
import { type AddressInfo, createServer as createNet, type Server } from 'node:net'
import { createServer } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { type HttpOutcome, type HttpRequest, sendJson, toCode, toSendFailure } from '../../../src/channels/http.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listen(server: Server): Promise<string> {
  servers.push(server)
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening))
  // a TCP server has an address of this kind
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

function send(url: string, given: Partial<HttpRequest> = {}) {
  return sendJson({ url, body: { a: 1 }, timeoutMs: 5_000, signal: new AbortController().signal, ...given })
}

function answer(status: number, headers: Record<string, string> = {}): HttpOutcome {
  return { kind: 'answer', status, headers: new Headers(headers), body: undefined }
}

describe('sendJson', () => {
  it('a host that refuses connections, or whose name is unknown, received nothing', async () => {
    const server = createNet()
    const host = await listen(server)
    await new Promise((closed) => void server.close(closed))
    expect(await send(`http://${host}/secret`)).toEqual({
      kind: 'unsent',
      detail: 'no connection to its host (ECONNREFUSED)',
    })
    expect(await send('http://no-such-host.invalid/secret')).toMatchObject({ kind: 'unsent' })
  })

  it('an invalid certificate fails the request before anything is sent', async () => {
    const cause = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    const fetch: typeof globalThis.fetch = async () => {
      throw new TypeError('fetch failed', { cause })
    }
    expect(await send('https://chat.example/', { fetch })).toEqual({
      kind: 'unsent',
      detail: 'its certificate was not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)',
    })
  })

  it('a connection that ends after the request was sent makes its result unknown', async () => {
    const closing = createNet((socket) => void socket.once('data', () => socket.end()))
    const resetting = createNet((socket) => void socket.once('data', () => socket.resetAndDestroy()))
    for (const host of [await listen(closing), await listen(resetting)]) {
      expect(await send(`http://${host}/`)).toMatchObject({ kind: 'unknown' })
    }
  })

  it('a refusal with an endless body is a refusal; an acceptance with one is an unknown result', async () => {
    const cut = (status: number) =>
      createServer((_request, response) => {
        response.writeHead(status, { 'content-length': '100' })
        response.write('{"ok":', () => response.socket?.destroy())
      })
    expect(await send(`http://${await listen(cut(403))}/`)).toMatchObject({ kind: 'answer', status: 403 })
    expect(await send(`http://${await listen(cut(200))}/`)).toMatchObject({ kind: 'unknown' })
  })

  it('an answer without end is read up to a limit', async () => {
    const endless = createServer((_request, response) => {
      response.writeHead(200)
      const write = (): void => void response.write('x'.repeat(65_536), (error) => error ?? write())
      write()
    })
    const outcome = await send(`http://${await listen(endless)}/`)
    expect(outcome).toMatchObject({ kind: 'answer', status: 200, body: undefined })
  })

  it('a stop says so, and a token that no header can hold is not shown', async () => {
    const stopped = await send('http://127.0.0.1/', { signal: AbortSignal.abort() })
    expect(stopped).toEqual({ kind: 'unknown', detail: 'stopped before the answer came' })
    const broken = await send('http://127.0.0.1/', { headers: { authorization: 'Bearer a\nb' } })
    expect(broken).toEqual({ kind: 'unsent', detail: 'the URL or the token has characters that HTTP forbids' })
  })
})

describe('toFailure', () => {
  const context = { provider: 'Chat', code: 'E1', hint: 'Do this.' }

  it.each([
    [400, 'permanent'],
    [401, 'permanent'],
    [404, 'permanent'],
    [408, 'transient'],
    [425, 'transient'],
    [429, 'rate-limited'],
    [500, 'ambiguous'],
    [502, 'ambiguous'],
    [503, 'transient'],
    [504, 'ambiguous'],
    [521, 'transient'],
    [524, 'ambiguous'],
  ])('%i is %s', (status, kind) => {
    expect(toSendFailure(answer(status), context)).toEqual({ kind, detail: `Chat answered ${status} (E1). Do this.` })
  })

  it('an acceptance that names no message is ambiguous', () => {
    expect(toSendFailure(answer(200), { provider: 'Chat' })).toEqual({
      kind: 'ambiguous',
      detail: 'Chat answered 200, but not in the documented format. Check baseUrl.',
    })
  })

  it('a wait is told where the provider names one, and what its body says wins over the header', () => {
    const limited = answer(429, { 'retry-after': '9' })
    expect(toSendFailure(limited, { provider: 'Chat' })).toMatchObject({ retryAfterMs: 9_000 })
    expect(toSendFailure(limited, { provider: 'Chat', retryAfterMs: 700 })).toMatchObject({ retryAfterMs: 700 })
    expect(toSendFailure(answer(429), { provider: 'Chat' })).not.toHaveProperty('retryAfterMs')
  })
})

it('a code is a number or one short word; anything longer could be the message', () => {
  expect([50_001, 'channel_not_found', 'api.context.permissions.app_error'].map(toCode)).toEqual([
    '50001',
    'channel_not_found',
    'api.context.permissions.app_error',
  ])
  expect([undefined, null, {}, '', 'The build is green.', 'x'.repeat(81)].map(toCode)).toEqual(Array(6).fill(undefined))
})
