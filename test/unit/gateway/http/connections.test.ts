import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createPeerLookup, type Peer } from '../../../../src/gateway/http/client.ts'
import { connectionLimits, createConnections } from '../../../../src/gateway/http/connections.ts'

const { perClient, loopback, all, idleMs } = connectionLimits
const keptMs = 130_000
/** More than the system keeps of an answer that nobody reads. */
const maxBuffered = 48 * 1024 * 1024
const closers: (() => void)[] = []

afterEach(() => {
  for (const close of closers.splice(0)) close()
})

/** A server that answers nothing by itself. `peers`: the clients of its connections, in order; the last one is repeated. */
async function startServer(...peers: (Peer | undefined)[]) {
  const time = { now: 1_000_000 }
  const told: string[] = []
  const responses: ServerResponse[] = []
  const connections = createConnections({
    peerOf: () => (peers.length > 1 ? peers.shift() : peers[0]),
    keptMs,
    now: () => time.now,
    warn: (text) => void told.push(text),
  })
  const server = createServer(
    { keepAliveTimeout: 3_600_000, headersTimeout: 0, requestTimeout: 0 },
    connections.watch((_, res) => void responses.push(res)),
  )
  server.on('connection', connections.track)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close().closeAllConnections())
  // a listening TCP server has an AddressInfo
  const { port } = server.address() as AddressInfo
  const openConnection = async () => {
    const socket = connect({ port, host: '127.0.0.1' })
    closers.push(() => socket.destroy())
    const state = { closed: false, text: '' }
    socket.on('data', (chunk) => (state.text += String(chunk))).on('error', () => {})
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve(void (state.closed = true))))
    await once(socket, 'connect')
    return { socket, state, closed }
  }
  const ask = async (socket: { write(text: string): unknown }, path = '/') => {
    const count = responses.length + 1
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
    await vi.waitFor(() => expect(responses).toHaveLength(count), { timeout: 60_000 })
    return responses.at(-1)
  }
  return { ...connections, time, told, responses, openConnection, ask, count: () => countConnections(server) }
}

const countConnections = (server: ReturnType<typeof createServer>) =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )

const remote: Peer = { client: '203.0.113.7', isLoopback: false }
const another: Peer = { client: '203.0.113.8', isLoopback: false }

describe('the number of connections of a client', () => {
  test('a connection over the limit of its client is closed, one of another client is not, and a closed connection makes room for a new one', async () => {
    const many = Array.from({ length: perClient + 1 }, () => remote)
    const { openConnection, ask, responses, told } = await startServer(...many, another, remote, remote)
    const held: Awaited<ReturnType<typeof openConnection>>[] = []
    for (let count = 0; count < perClient; count++) held.push(await openConnection())
    const tooMany = await openConnection()
    await tooMany.closed
    const other = await openConnection()
    ;(await ask(other.socket))?.end('hello')
    await vi.waitFor(() => expect(other.state.text).toContain('hello'), { timeout: 60_000 })
    expect(held.filter(({ state }) => state.closed)).toEqual([])
    held[0]?.socket.destroy()
    await vi.waitFor(
      async () => {
        const next = await openConnection()
        next.socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
        await vi.waitFor(() => expect(responses).toHaveLength(2), { timeout: 200 })
      },
      { timeout: 60_000 },
    )
    expect(told).toEqual([expect.stringContaining(`more than ${perClient} connections`)])
  })

  test('a new connection of a client with its maximum closes the kept one that is unused for the longest time', async () => {
    const { openConnection, ask, told } = await startServer(remote)
    const used = async (path: string) => {
      const connection = await openConnection()
      ;(await ask(connection.socket, path))?.end('hello')
      await vi.waitFor(() => expect(connection.state.text).toContain('hello'), { timeout: 60_000 })
      return connection
    }
    const first = await used('/1')
    const second = await used('/2')
    for (let count = 2; count < perClient; count++) await openConnection()
    // the first one is used again, so the second one is unused for longer
    ;(await ask(first.socket))?.end('again')
    await vi.waitFor(() => expect(first.state.text).toContain('again'), { timeout: 60_000 })
    await used('/3')
    await second.closed
    expect([first.state.closed, told]).toEqual([false, []])
  })

  test('a connection whose request runs is not closed for a new one, and is no kept one before its answer', async () => {
    const { openConnection, ask, told } = await startServer(remote)
    const busy = await openConnection()
    const res = await ask(busy.socket)
    for (let count = 1; count < perClient; count++) await openConnection()
    await (
      await openConnection()
    ).closed
    res?.end('hello')
    await vi.waitFor(() => expect(busy.state.text).toContain('hello'), { timeout: 60_000 })
    expect(told).toHaveLength(1)
    await openConnection()
    await busy.closed
  })

  test('a trusted proxy has no limit, because it carries the connections of many clients', async () => {
    const { openConnection, count } = await startServer(undefined)
    for (let number = 0; number <= perClient; number++) await openConnection()
    expect(await count()).toBe(perClient + 1)
  })

  test('a client may use at most a sixteenth of all connections, and this machine at least a thousand and at most half', () => {
    expect(perClient * 16).toBeLessThanOrEqual(all)
    expect(loopback * 2).toBeLessThanOrEqual(all)
    expect(loopback).toBeGreaterThanOrEqual(1_000)
  })
})

describe('idle connections', () => {
  test('a kept connection is closed soon after its time, even if blank lines arrive', async () => {
    const { openConnection, ask, time, closeIdle } = await startServer(remote)
    const dripping = await openConnection()
    ;(await ask(dripping.socket))?.end('hello')
    await vi.waitFor(() => expect(dripping.state.text).toContain('hello'), { timeout: 60_000 })
    for (let count = 0; count < 10; count++) dripping.socket.write('\r\n')
    time.now += keptMs + idleMs
    closeIdle()
    expect(dripping.state.closed).toBe(false)
    time.now += 1
    closeIdle()
    await dripping.closed
  })

  test('a connection that never had a request is closed after the idle limit', async () => {
    const { openConnection, time, closeIdle, count } = await startServer(remote)
    const silent = await openConnection()
    await vi.waitFor(async () => expect(await count()).toBe(1), { timeout: 60_000 })
    time.now += idleMs + 1
    closeIdle()
    await silent.closed
  })

  test('a connection with a running request or with new requests is not closed', async () => {
    const { openConnection, ask, time, closeIdle } = await startServer(remote)
    const waiting = await openConnection()
    const first = await ask(waiting.socket, '/1')
    const second = await ask(waiting.socket, '/2')
    second?.end('two')
    for (let count = 0; count < 3; count++) {
      time.now += idleMs + 1
      closeIdle()
    }
    first?.end('one')
    await vi.waitFor(() => expect(waiting.state.text).toContain('two'), { timeout: 60_000 })
    time.now += idleMs
    closeIdle()
    ;(await ask(waiting.socket, '/3'))?.end('three')
    time.now += idleMs
    closeIdle()
    await vi.waitFor(() => expect(waiting.state.text).toContain('three'), { timeout: 60_000 })
    expect(waiting.state.closed).toBe(false)
  })

  test('a connection whose client never reads its answer is closed after the idle limit', async () => {
    const { openConnection, ask, time, closeIdle } = await startServer(remote)
    const deaf = await openConnection()
    deaf.socket.pause()
    const res = await ask(deaf.socket)
    res?.end(Buffer.alloc(64 * 1024 * 1024))
    time.now += idleMs + 1
    closeIdle()
    deaf.socket.resume()
    await deaf.closed
    expect(deaf.state.text.length).toBeLessThan(64 * 1024 * 1024)
  })

  test('a connection is not closed while its client reads an answer slowly, and is closed when the client stops', async () => {
    const { openConnection, ask, time, closeIdle } = await startServer(remote)
    const { socket, state, closed } = await openConnection()
    socket.removeAllListeners('data').pause()
    const res = await ask(socket)
    res?.end(Buffer.alloc(maxBuffered * 5))
    closeIdle()
    let taken = 0
    socket.on('data', (chunk) => {
      taken += chunk.length
      if (taken >= maxBuffered) socket.pause()
    })
    for (let round = 0; round < 3; round++) {
      taken = 0
      socket.resume()
      await vi.waitUntil(() => taken >= maxBuffered || state.closed, { timeout: 60_000 })
      time.now += idleMs + 1
      closeIdle()
    }
    expect([taken >= maxBuffered, socket.destroyed]).toEqual([true, false])
    await vi.waitFor(
      () => {
        time.now += idleMs + 1
        closeIdle()
        expect(res?.destroyed).toBe(true)
      },
      { timeout: 60_000 },
    )
    taken = Number.NEGATIVE_INFINITY
    socket.resume()
    await closed
    expect(socket.bytesRead).toBeLessThan(maxBuffered * 5)
  })
})

describe('the client of a connection', () => {
  const findPeer = (address: string, trusted: string[] = []) => createPeerLookup(() => trusted)(address)

  test('the client of a connection is the IPv4 address, even if it is mapped, or the /64 network of an IPv6 address', () => {
    expect(findPeer('203.0.113.7')).toEqual({ client: '203.0.113.7', isLoopback: false })
    expect(findPeer('::ffff:203.0.113.7')).toEqual({ client: '203.0.113.7', isLoopback: false })
    expect(findPeer('2001:db8:1:2:3:4:5:6')).toEqual(findPeer('2001:db8:1:2::9'))
    expect(findPeer('2001:db8:1:3::9')).not.toEqual(findPeer('2001:db8:1:2::9'))
  })

  test('all connections from this machine count as one client', () => {
    for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) {
      expect(findPeer(address)).toEqual({ client: 'loopback', isLoopback: true })
    }
  })

  test('a connection of a trusted proxy has no client', () => {
    expect(findPeer('10.0.0.3', ['10.0.0.0/8'])).toBeUndefined()
    expect(findPeer('::ffff:10.0.0.3', ['10.0.0.0/8'])).toBeUndefined()
    expect(findPeer('127.0.0.1', ['127.0.0.1'])).toBeUndefined()
    expect(findPeer('11.0.0.3', ['10.0.0.0/8'])).toBeDefined()
  })
})
