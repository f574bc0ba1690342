import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { send } from '../../../../src/gateway/http/api/send.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

afterEach(() => void vi.restoreAllMocks())

const generation = createGeneration({
  senders: builtInSenders,
  config: ConfigSchema.parse({}),
  mappings: [],
  transforms: new Map(),
})

function sendTo(port: number, headers: Record<string, string> = {}) {
  const parts = { generation: () => generation, handed: { find: () => [] }, hooksUrl: () => `http://127.0.0.1:${port}` }
  return send(parts, { hook: 'a', headers, query: {}, body: '{}' })
}

/** Calls `run` with the port of a server. */
async function withServer(listener: RequestListener, run: (port: number) => Promise<void>): Promise<void> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    // a listening TCP server has an AddressInfo
    await run((server.address() as AddressInfo).port)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

test('a header that HTTP does not allow is named as the fault of the request', async () => {
  await expect(sendTo(9, { 'x-a': 'a\nb' })).rejects.toMatchObject({
    code: 'usage-invalid',
    message: expect.stringContaining('a header or the name of the hook is invalid'),
  })
})

test('a refused connection to the hook port is reported with its code', async () => {
  let closed = 0
  await withServer(
    () => {},
    async (port) => void (closed = port),
  )
  await expect(sendTo(closed)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('ECONNREFUSED'),
  })
})

test.each([['before it begins'], ['after its head']])('an answer that takes too long %s is a timeout', async (when) => {
  const ended = new AbortController()
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(ended.signal)
  const endSoon = () => setImmediate(() => ended.abort(new DOMException('late', 'TimeoutError')))
  const listener: RequestListener = (_, res) => {
    if (when === 'after its head') res.flushHeaders()
    endSoon()
  }
  await withServer(listener, async (port) => {
    await expect(sendTo(port)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('did not answer within 60 s'),
    })
  })
})
