// The connection for signals: it does not outlive its listener.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { createListener } from '../../../../src/store/postgres/listener.ts'

test('a listener that is closed while it starts does not connect afterwards', async () => {
  const sockets: Socket[] = []
  const server = createServer((socket) => void sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  let answer = () => {}
  const listener = createListener({
    url: `postgres://nobody@127.0.0.1:${port}/none`,
    query: () => new Promise((resolve) => (answer = () => resolve([]))),
    now: () => '0',
    log: silentLog,
  })
  listener.subscribe(() => {})
  listener.close()
  answer()
  for (let turn = 0; turn < 5; turn += 1) await setImmediate()

  // the server accepts connections in their order, so an earlier connection would be the first
  const own = connect(port, '127.0.0.1')
  const accepted = new Promise((resolve) => server.once('connection', resolve))
  await Promise.all([accepted, new Promise((resolve) => own.once('connect', resolve))])
  expect(sockets.map(({ remotePort }) => remotePort)).toEqual([own.localPort])
  own.destroy()
})
