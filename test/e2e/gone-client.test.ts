import { connect } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { readDeliveryId } from './answers.ts'
import { gatewayToken } from './gateway.ts'
import { startInside } from './inside.ts'
import { post } from './wire.ts'

test('a client of the admin port that disconnects while it sends is not logged as an error', async () => {
  const lines: string[] = []
  const addLine = (_: object, message: string) => void lines.push(message)
  const gateway = await startInside({
    config: { hooks: { mappings: [{ match: { path: 'any' }, deliver: false, retain: true }] } },
    log: { debug() {}, info() {}, warn: addLine, error: addLine },
  })
  const id = readDeliveryId(await post(gateway.port, '/hooks/any', {}))
  const headers = { authorization: `Bearer ${gatewayToken}`, 'content-type': 'application/json' }
  const socket = connect(Number(new URL(gateway.adminUrl).port), '127.0.0.1')
  await once(socket, 'connect')
  const head = Object.entries({ host: '127.0.0.1', ...headers, 'content-length': '100' })
  socket.write(
    `POST /api/deliveries/${id}/again HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n{"a`,
  )
  // when the gateway answers a request on another connection, it has started on the first request
  await fetch(`${gateway.adminUrl}/healthz`)
  socket.resetAndDestroy()
  await once(socket, 'close')
  await gateway.stop()
  expect(lines).toEqual([])
})
