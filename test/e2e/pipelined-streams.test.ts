// Streams of the admin API that one connection asks for at once, and that it leaves before they are answered.
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { gatewayToken } from './gateway.ts'
import { startInside } from './inside.ts'

const slow = { timeout: 60_000 }
const headers = { authorization: `Bearer ${gatewayToken}` }

test('streams whose connection ends before their turn leave their places to others', slow, async () => {
  const gateway = await startInside()
  const openStream = async () => {
    const ended = new AbortController()
    const { status } = await fetch(`${gateway.adminUrl}/api/stream`, { headers, signal: ended.signal })
    return { status, end: () => ended.abort() }
  }
  const socket = connect(Number(new URL(gateway.adminUrl).port), '127.0.0.1')
  socket.on('error', () => {})
  const request = `GET /api/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${gatewayToken}\r\n\r\n`
  socket.write(request.repeat(20))
  await once(socket, 'data')
  const tryOne = async () => {
    const { status, end } = await openStream()
    end()
    return status
  }
  await expect.poll(tryOne, slow).toBe(429)
  socket.destroy()
  const held: Awaited<ReturnType<typeof openStream>>[] = []
  const holdAnother = async () => {
    const stream = await openStream()
    if (stream.status === 200) held.push(stream)
    return held.length
  }
  await expect.poll(holdAnother, { timeout: 20_000 }).toBe(20)
  for (const { end } of held) end()
})
