// Senders do not wait long: a slow transform is answered with 200 once the delivery is durable, and ends after the answer.
import { createServer, type ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readDeliveryId } from './answers.ts'
import { readStore, startInside } from './inside.ts'
import { post } from './wire.ts'

/** A slow service that transforms call: it answers no request until `answerAll` is called. */
function createSlowService() {
  const held: ServerResponse[] = []
  const server = createServer((_, response) => held.push(response))
  return {
    async listen(): Promise<string> {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const address = server.address()
      return typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : ''
    },
    answerAll: () => held.splice(0).forEach((response) => response.end('now')),
    countWaiting: () => held.length,
    close: () => server.close(),
  }
}

const files = {
  'hooks/transforms/slow.ts': `export default async ({ payload }) => {
    if (payload.ask) await fetch(payload.ask)
    return { message: 'done' }
  }`,
}
const buildConfig = (hooks: object) => ({
  hooks: { ...hooks, mappings: [{ match: { path: 'slow' }, transform: { module: 'slow.ts' }, deliver: false }] },
})

describe('transforms that are slower than hooks.answerWithinMs', () => {
  const service = createSlowService()
  let ask: string
  beforeAll(async () => {
    ask = await service.listen()
  })
  afterAll(() => service.close())

  test('a delivery of a slow transform is stored and answered pending, and accepted when the transform ends', async () => {
    const gateway = await startInside({ config: buildConfig({ answerWithinMs: 100 }), files })
    const reply = await post(gateway.port, '/hooks/slow', { ask })
    expect(reply.status).toBe(200)
    const id = readDeliveryId(reply)
    expect(JSON.parse(reply.body)).toEqual({ ok: true, deliveryId: id, status: 'pending' })
    const readState = async () => (await readStore(gateway.dir, (reader) => reader.delivery(id)))?.state
    expect(await readState()).toBe('pending')

    await vi.waitFor(() => expect(service.countWaiting()).toBe(1), { timeout: 60_000 })
    service.answerAll()
    await vi.waitFor(async () => expect(await readState()).toBe('accepted'), { timeout: 60_000 })
  })

  test('the answer waits for a slow transform with onTransformError "reject"', async () => {
    const gateway = await startInside({ config: buildConfig({ answerWithinMs: 1, onTransformError: 'reject' }), files })
    const replying = post(gateway.port, '/hooks/slow', { ask })
    await vi.waitFor(() => expect(service.countWaiting()).toBe(1), { timeout: 60_000 })
    service.answerAll()
    expect(JSON.parse((await replying).body)).toMatchObject({ ok: true, runId: expect.any(String) })
  })
})
