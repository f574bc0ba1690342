import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { dropRest } from '../../../../src/gateway/http/body.ts'

const closers: (() => void)[] = []

afterEach(() => {
  vi.useRealTimers()
  for (const close of closers.splice(0)) close()
})

async function startServer(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  const sockets: Socket[] = []
  server.on('connection', (socket) => sockets.push(socket))
  await once(server, 'listening')
  closers.push(() => server.close().closeAllConnections())
  // a listening TCP server has an AddressInfo
  return { port: (server.address() as AddressInfo).port, sockets }
}

function openConnection(port: number, text: string) {
  // the client keeps its side of the connection open when the server ends the other side
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const seen: { text: string; error?: string | undefined } = { text: '' }
  socket.on('data', (chunk) => (seen.text += String(chunk)))
  socket.on('error', (error: NodeJS.ErrnoException) => (seen.error = error.code))
  closers.push(() => socket.destroy())
  socket.write(text)
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  return { socket, seen, closed }
}

const refuse: RequestListener = (req, res) => {
  dropRest(req, res)
  res.writeHead(413).end('too large')
}

const toHead = (length: number) => `POST / HTTP/1.1\r\nhost: hooks.test\r\ncontent-length: ${length}\r\n\r\n`

test('a refused sender can read the whole answer, even if it sent more than the gateway read', async () => {
  const { port } = await startServer(refuse)
  const { socket, seen, closed } = openConnection(port, toHead(2_000_000) + 'a'.repeat(40_000))
  await once(socket, 'end')
  expect(seen.text).toMatch(/^HTTP\/1\.1 413 [^]*connection: close[^]*too large/i)
  // a gateway that resets the connection does so in place of the end above, or when these further bytes arrive
  socket.end('a'.repeat(10_000))
  await closed
  expect(seen.error).toBeUndefined()
})

test('a sender that continues to send is cut off before the gateway has read a megabyte', async () => {
  const { port, sockets } = await startServer(refuse)
  const { socket, closed } = openConnection(port, toHead(1_000_000_000))
  const more = Buffer.alloc(64 * 1024)
  const pump = () => {
    while (socket.writable && socket.write(more)) continue
  }
  socket.on('drain', pump)
  pump()
  await closed
  expect(sockets[0]?.bytesRead).toBeLessThan(1_000_000)
})

test('a sender that neither sends nor disconnects is cut off after a second', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { port, sockets } = await startServer(refuse)
  const { socket } = openConnection(port, toHead(2_000))
  await once(socket, 'end')
  vi.advanceTimersByTime(999)
  expect(sockets[0]?.destroyed).toBe(false)
  vi.advanceTimersByTime(1)
  expect(sockets[0]?.destroyed).toBe(true)
})

test('a refusal of a complete request keeps the connection for the next one', async () => {
  let requests = 0
  const { port } = await startServer(async (req, res) => {
    requests++
    req.resume()
    if (!req.complete) await once(req, 'end')
    refuse(req, res)
  })
  const { socket, seen } = openConnection(port, `${toHead(2)}{}`)
  await once(socket, 'data')
  expect(seen.text).not.toMatch(/connection: close/i)
  socket.write(`${toHead(2)}{}`)
  await once(socket, 'data')
  expect(requests).toBe(2)
})
