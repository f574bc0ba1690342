// A call to the API of a sender.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createApiCall } from '../../../../src/plugins/outboxes/shared/call.ts'

test('an answer of an API that is too large is requested only once, and the problem gives the limit', async () => {
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  let requests = 0
  const server = createServer((_request, response) => {
    requests += 1
    let chunks = 0
    const write = () => {
      while (chunks < 65) {
        chunks += 1
        if (!response.write(chunk)) return void response.once('drain', write)
      }
      response.end()
    }
    write()
  })
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  // as: a TCP server has a port
  const { port } = server.address() as AddressInfo
  const tools = { clock: Date.now, pause: async () => {}, signal: new AbortController().signal, onWait: () => {} }
  const call = createApiCall({ baseUrl: `http://127.0.0.1:${port}`, authorize: () => ({}) }, tools)
  await expect(call({ path: '/events' })).rejects.toMatchObject({
    code: 'recover-unavailable',
    message: `The answer of 127.0.0.1:${port} is over 64 MiB, so it was not read.`,
  })
  expect(requests).toBe(1)
})
