// The outcome of one request: answered, certainly unsent, or unknown.
import { type AddressInfo, createServer as createNet, type Server } from 'node:net'
import { createServer } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type HttpOutcome,
  type HttpRequest,
  createFailureReader,
  sendJson,
} from '../../../../src/plugins/channels/shared/http.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listen(server: Server): Promise<string> {
  servers.push(server)
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening))
  // as: the address of a TCP server has this type
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

function send(url: string, given: Partial<HttpRequest> = {}) {
  return sendJson({ url, body: { a: 1 }, timeoutMs: 5_000, signal: new AbortController().signal, ...given })
}

function buildAnswer(status: number, headers: Record<string, string> = {}, body?: object): HttpOutcome {
  return { kind: 'answer', status, headers: new Headers(headers), body }
}

describe('sendJson', () => {
  it('if a host refuses connections, or its name is unknown, the request is known to be unsent', async () => {
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

  it('the result of a request is unknown if the connection ends after it was sent', async () => {
    const closing = createNet((socket) => void socket.once('data', () => socket.end()))
    const resetting = createNet((socket) => void socket.once('data', () => socket.resetAndDestroy()))
    for (const host of [await listen(closing), await listen(resetting)]) {
      expect(await send(`http://${host}/`)).toMatchObject({ kind: 'unknown' })
    }
  })

  it('a refusal with a cut-off body is still a refusal, and an acceptance with a cut-off body is an unknown result', async () => {
    const buildCutAnswer = (status: number) =>
      createServer((_request, response) => {
        response.writeHead(status, { 'content-length': '100' })
        response.write('{"ok":', () => response.socket?.destroy())
      })
    expect(await send(`http://${await listen(buildCutAnswer(403))}/`)).toMatchObject({ kind: 'answer', status: 403 })
    expect(await send(`http://${await listen(buildCutAnswer(200))}/`)).toMatchObject({ kind: 'unknown' })
  })

  it('an endless answer is read up to a limit', async () => {
    const endless = createServer((_request, response) => {
      response.writeHead(200)
      const write = (): void => void response.write('x'.repeat(65_536), (error) => error ?? write())
      write()
    })
    const outcome = await send(`http://${await listen(endless)}/`)
    expect(outcome).toMatchObject({ kind: 'answer', status: 200, body: undefined })
  })

  it('the error of a stopped request says that it was stopped, and the error for an invalid token does not show the token', async () => {
    const stopped = await send('http://127.0.0.1/', { signal: AbortSignal.abort() })
    expect(stopped).toEqual({ kind: 'unknown', detail: 'stopped before the answer came' })
    const broken = await send('http://127.0.0.1/', { headers: { authorization: 'Bearer a\nb' } })
    expect(broken).toEqual({ kind: 'unsent', detail: 'the URL or the token has characters that HTTP forbids' })
  })
})

describe('a failure', () => {
  const schema = z.object({ code: z.unknown() })
  const readFailure = createFailureReader({
    provider: 'Chat',
    schema,
    readCode: ({ code }) => code,
    explain: ({ body }) => body && { hint: 'Do this.' },
  })
  const readPlain = createFailureReader({ provider: 'Chat' })

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
  ])('the status %i is a failure of the kind %s, and its detail shows the code and the hint', (status, kind) => {
    expect(readFailure(buildAnswer(status, {}, { code: 'E1' }))).toEqual({
      kind,
      detail: `Chat answered ${status} (E1). Do this.`,
    })
  })

  it('an answer 200 that is not in the documented format is ambiguous', () => {
    expect(readPlain(buildAnswer(200))).toEqual({
      kind: 'ambiguous',
      detail: 'Chat answered 200, but not in the documented format. Check baseUrl.',
    })
  })

  it('a failure has the wait of the header Retry-After, but a wait that explain returns takes precedence', () => {
    const limited = buildAnswer(429, { 'retry-after': '9' })
    const readWait = createFailureReader({ provider: 'Chat', explain: () => ({ retryAfterMs: 700 }) })
    expect(readPlain(limited)).toMatchObject({ retryAfterMs: 9_000 })
    expect(readWait(limited)).toMatchObject({ retryAfterMs: 700 })
    expect(readPlain(buildAnswer(429))).not.toHaveProperty('retryAfterMs')
  })

  it('the kind and the hint that a provider gives replace those of the status', () => {
    const readMeaning = createFailureReader({
      provider: 'Chat',
      schema,
      refusesWith200: true,
      readCode: ({ code }) => code,
      explain: ({ code }) => ({ kind: 'permanent', hint: code === 'closed' ? 'It is closed.' : undefined }),
    })
    expect(readMeaning(buildAnswer(200, {}, { code: 'closed' }))).toEqual({
      kind: 'permanent',
      detail: 'Chat answered 200 (closed). It is closed.',
    })
  })

  it.each([50_001, 'channel_not_found', 'api.context.permissions.app_error'])(
    'the detail of a failure shows the code %j, which is a number or one short word',
    (code) => {
      expect(readFailure(buildAnswer(400, {}, { code })).detail).toBe(`Chat answered 400 (${code}). Do this.`)
    },
  )

  it.each([undefined, null, {}, '', 'The build is green.', 'x'.repeat(81)])(
    'the detail of a failure does not quote the code %j, which could be the message',
    (code) => {
      expect(readFailure(buildAnswer(400, {}, { code })).detail).toBe('Chat answered 400. Do this.')
    },
  )
})
