import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { listen } from '../../../../src/gateway/http/server.ts'

const closers: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** A server that answers nothing by itself, and the requests that it got. */
async function startServer() {
  const responses: ServerResponse[] = []
  const server = await listen((_, res) => responses.push(res), {
    host: '127.0.0.1',
    port: 0,
    ports: { hooks: 0, admin: 0 },
    bodyTimeoutMs: 1_000,
    keepAliveTimeoutMs: 130_000,
    log: silentLog,
  })
  closers.push(() => server.close(0))
  const waitFor = (count: number) => vi.waitFor(() => expect(responses).toHaveLength(count), { timeout: 60_000 })
  return { ...server, responses, waitFor }
}

async function openConnection(port: number) {
  const socket = connect({ port, host: '127.0.0.1' })
  closers.push(() => socket.destroy())
  const seen = { text: '' }
  socket.on('data', (chunk) => (seen.text += String(chunk)))
  const closed = once(socket, 'close')
  await once(socket, 'connect')
  return { socket, seen, closed }
}

const ask = (socket: Socket, path: string) => socket.write(`GET ${path} HTTP/1.1\r\nhost: hooks.test\r\n\r\n`)
const endAnswer = (res: ServerResponse | undefined) => res?.end(`answer to ${res.req.url}`)
const longest = 3_600_000

test('a stop closes a kept connection at once', async () => {
  const { port, close, responses, waitFor } = await startServer()
  const kept = await openConnection(port)
  ask(kept.socket, '/1')
  await waitFor(1)
  endAnswer(responses[0])
  await vi.waitFor(() => expect(kept.seen.text).toMatch(/keep-alive: timeout=130\r\n[^]*answer to \/1/i), {
    timeout: 60_000,
  })
  await close(longest)
  await kept.closed
})

test('a stop closes a connection without a request at once, and lets a running request end', async () => {
  const { port, close, responses, waitFor } = await startServer()
  const silent = await openConnection(port)
  const asking = await openConnection(port)
  ask(asking.socket, '/1')
  await waitFor(1)
  const stopped = close(longest)
  await silent.closed
  endAnswer(responses[0])
  await stopped
  await asking.closed
  expect(asking.seen.text).toMatch(/^HTTP\/1\.1 200 [^]*connection: close[^]*answer to \/1$/i)
})

test('a stop closes a connection after the answer to its newest request, and ignores later requests', async () => {
  const { port, close, responses, waitFor } = await startServer()
  const asking = await openConnection(port)
  for (const path of ['/1', '/2', '/3']) ask(asking.socket, path)
  await waitFor(3)
  const stopped = close(longest)
  ask(asking.socket, '/4')
  endAnswer(responses[0])
  await vi.waitFor(() => expect(asking.seen.text).toContain('answer to /1'), { timeout: 60_000 })
  endAnswer(responses[1])
  endAnswer(responses[2])
  await stopped
  await asking.closed
  expect(asking.seen.text.match(/answer to \/\d|connection: \S+/gi)).toEqual([
    'Connection: keep-alive',
    'answer to /1',
    'Connection: keep-alive',
    'answer to /2',
    'connection: close',
    'answer to /3',
  ])
  expect(responses).toHaveLength(3)
})

test('the refusal of a body with malformed chunks comes after the answers to the requests before it', async () => {
  const { port, responses, waitFor } = await startServer()
  const asking = await openConnection(port)
  ask(asking.socket, '/1')
  asking.socket.write('POST /2 HTTP/1.1\r\nhost: hooks.test\r\ntransfer-encoding: chunked\r\n\r\n')
  await waitFor(2)
  const socket = responses[1]?.req.socket
  const before = socket?.bytesRead ?? 0
  asking.socket.write('no chunk\r\n')
  await vi.waitFor(() => expect(socket?.bytesRead).toBeGreaterThan(before), { timeout: 60_000 })
  endAnswer(responses[0])
  await asking.closed
  expect(asking.seen.text).toMatch(/^HTTP\/1\.1 200 [^]*answer to \/1HTTP\/1\.1 400 [^]*request-malformed/)
})
