// Requests that are interrupted: their sender disconnects, the configuration changes, the gateway stops.
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { type Headers, json, send, toRequest } from './wire.ts'

const closers: (() => void)[] = []

afterEach(() => {
  for (const close of closers.splice(0)) close()
})

const asOperator = { headers: { authorization: `Bearer ${gatewayToken}` } }
const toBearer = (token: string): Headers => [...json, ['authorization', `Bearer ${token}`]]
const sendWake = (port: number, headers: Headers) =>
  send(port, { target: '/hooks/wake', headers, body: '{"text":"x"}' })

/** A sender with its own connection. */
async function dial(port: number) {
  const socket = connect({ port, host: '127.0.0.1' })
  closers.push(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Sends the head of a request and, when the gateway asks for the body, half of the body. `end` sends the rest and returns the answer. */
async function begin(port: number, { target = '/hooks/wake', body = '{"text":"in the middle"}' } = {}) {
  const headers: Headers = [...toBearer(hookToken), ['expect', '100-continue'], ['content-length', String(body.length)]]
  const socket = await dial(port)
  socket.write(toRequest({ target, headers, length: false }))
  const [leave] = await once(socket, 'data')
  expect(String(leave)).toMatch(/^HTTP\/1\.1 100 /)
  const half = body.length >> 1
  socket.write(body.slice(0, half))
  return {
    async end() {
      socket.write(body.slice(half))
      const [answer] = await once(socket, 'data')
      return String(answer)
    },
  }
}

test('a delivery is accepted even if its sender disconnects before the answer, and a repetition gets the answer', async () => {
  const store = createMemoryStore({ clock: Date.now })
  let commit = () => {}
  const held = new Promise<void>((resolve) => (commit = resolve))
  let asked = 0
  const slow = {
    ...store,
    async append(...delivery: Parameters<typeof store.append>) {
      asked += 1
      await held
      return store.append(...delivery)
    },
  }
  const { port } = await startInside({ store: slow })
  const headers: Headers = [...toBearer(hookToken), ['idempotency-key', 'once']]
  const socket = await dial(port)
  socket.write(toRequest({ target: '/hooks/wake', headers, body: '{"text":"x"}' }))
  await vi.waitUntil(() => asked === 1, { timeout: 60_000 })
  socket.resetAndDestroy()
  commit()
  expect((await sendWake(port, headers)).headers['idempotent-replay']).toBe('true')
  expect([asked, (await store.events({ limit: 10 })).length]).toEqual([1, 1])
})

describe('saves of the configuration during a request', () => {
  const toMapping = (path: string) => ({ id: path, match: { path }, messageTemplate: '{{text}}', deliver: false })
  const config = { hooks: { mappings: [toMapping('before')] } }
  const readGeneration = async ({ adminUrl }: Inside): Promise<unknown> =>
    Reflect.get(Object(await (await fetch(`${adminUrl}/readyz`, asOperator)).json()), 'generation')

  test('a new configuration applies to the next request, and not to the running one', async () => {
    const gateway = await startInside({ config })
    const generation = await readGeneration(gateway)
    const request = await begin(gateway.port, { target: '/hooks/before' })
    const next = {
      server: { port: 0, adminPort: 0 },
      gateway: { token: gatewayToken },
      hooks: { enabled: true, token: 'another-token-0123456789abcdefghij', mappings: [toMapping('after')] },
    }
    writeFileSync(join(gateway.dir, 'hookloom.jsonc'), JSON.stringify(next))
    await vi.waitUntil(async () => (await readGeneration(gateway)) !== generation, { timeout: 60_000 })

    expect((await sendWake(gateway.port, toBearer(hookToken))).status).toBe(401)
    expect((await sendWake(gateway.port, toBearer(next.hooks.token))).status).toBe(200)
    expect(await request.end()).toMatch(/^HTTP\/1\.1 200 /)
    const records = await readStore(gateway.dir, (reader) => reader.deliveries({ limit: 10 }))
    expect(records.find(({ hook }) => hook === 'before')).toMatchObject({
      state: 'accepted',
      mappingId: 'before',
      generation,
    })
  })
})

test('a stop waits for a body that is arriving, and its delivery is stored and answered', async () => {
  const gateway = await startInside()
  const request = await begin(gateway.port)
  const stopped = gateway.stop()
  await vi.waitUntil(() => isRefused(gateway.port), { timeout: 60_000 })
  expect(await request.end()).toMatch(/^HTTP\/1\.1 200 [^]*connection: close/i)
  await stopped
  const events = await readStore(gateway.dir, (reader) => reader.events({ limit: 10 }))
  expect(events.map(({ text }) => text)).toEqual(['in the middle'])
})

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('error', () => resolve(true)).once('connect', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
