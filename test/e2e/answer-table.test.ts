// The exact answer to each outcome of a hook: status and body, and what is stored.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { bearer, type Headers, post, type Reply, send } from './wire.ts'

const files = {
  'hooks/transforms/echo.ts': 'export default ({ payload }) => payload.result',
  'hooks/transforms/throws.ts': 'export default () => { throw new Error("out of yarn") }',
  'hooks/transforms/held.ts':
    'export default async ({ payload }) => ({ message: await (await fetch(payload.gate)).text() })',
  'hooks/transforms/checked.ts': `
    import { defineTransform } from 'hookloom'
    import { z } from 'zod'
    export default defineTransform({ payload: z.object({ n: z.number() }), run: () => ({ message: 'checked' }) })`,
}
const toMapping = (path: string, more: object = {}) => ({ id: path, match: { path }, deliver: false, ...more })
const mappings = [
  toMapping('echo', { transform: { module: 'echo.ts' } }),
  toMapping('throws', { transform: { module: 'throws.ts' } }),
  toMapping('held', { transform: { module: 'held.ts' } }),
  toMapping('checked', { transform: { module: 'checked.ts' } }),
  toMapping('gone', { transform: { module: 'gone.ts' } }),
  toMapping('each', { forEach: 'items', messageTemplate: '{{items[0].n}}' }),
  toMapping('blank', { messageTemplate: '{{nothing}}' }),
  toMapping('blank-key', { messageTemplate: 'x', sessionKey: '{{nothing}}' }),
  { id: 'only', match: { path: 'only', payload: { go: true } } },
]
// if a template begins with a placeholder, the sender chooses the key
const hooks = { mappings, allowRequestSessionKey: true }
/** No test waits this long, because a request that is not held is answered earlier. */
const patience = 60_000

let gateway: Inside
const ask = (hook: string, body: unknown, headers?: Headers) => post(gateway.port, `/hooks/${hook}`, body, headers)
const parseBody = ({ body }: Reply): unknown => JSON.parse(body)
const id = expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
const readRecord = (reply: Reply, dir = gateway.dir) =>
  readStore(dir, (reader) => reader.delivery(readDeliveryId(reply)))
const readNewest = async () => {
  const [record] = await readStore(gateway.dir, (reader) => reader.deliveries({ limit: 1 }))
  return record
}

beforeAll(async () => {
  gateway = await startInside({
    config: { hooks: { ...hooks, answerWithinMs: patience } },
    files,
  })
})

describe('accepted deliveries', () => {
  test('the answer to a wake has its delivery and its mode, and nothing else', async () => {
    expect(parseBody(await ask('wake', { text: 'x' }))).toEqual({ ok: true, deliveryId: id, mode: 'now' })
    expect(parseBody(await ask('wake', { text: 'x', mode: 'next-heartbeat' }))).toEqual({
      ok: true,
      deliveryId: id,
      mode: 'next-heartbeat',
    })
  })

  test('the answer to a wake says "deferred" outside the active hours, but not if heartbeats are off', async () => {
    const formatUtcHour = (hour: number) => `${String((new Date().getUTCHours() + hour) % 24).padStart(2, '0')}:00`
    const answerWith = async (heartbeat: object) => {
      const { port } = await startInside({ config: { hooks, agents: { defaults: { heartbeat } } }, files })
      return parseBody(await post(port, '/hooks/wake', { text: 'x' }))
    }
    const activeHours = { start: formatUtcHour(3), end: formatUtcHour(6), timezone: 'UTC' }
    const said = { ok: true, deliveryId: id, mode: 'now' }
    expect(await answerWith({ activeHours })).toEqual({ ...said, heartbeat: 'deferred' })
    expect(await answerWith({ activeHours, every: 0 })).toEqual(said)
  })

  test('the answer to an agent action has its delivery, its run and its session, and nothing else', async () => {
    const reply = await ask('agent', { message: 'x', deliver: false })
    const sessionKey = expect.stringMatching(/^hook:[\da-f-]{36}$/)
    expect(parseBody(reply)).toEqual({ ok: true, deliveryId: id, runId: id, sessionKey })
    const { jobs } = (await readRecord(reply)) ?? { jobs: [] }
    expect(jobs.map((job) => job.id)).toEqual([JSON.parse(reply.body).runId])
  })

  test.each([
    ['one wake', [{ kind: 'wake', text: 'x' }], { mode: 'now' }],
    ['two runs', [{ message: 'a' }, { message: 'b' }], { runIds: [id, id], wakes: 0 }],
    ['two wakes', ['x', 'y'].map((text) => ({ kind: 'wake', text })), { runIds: [], wakes: 2 }],
    [
      'a run between wakes',
      [{ kind: 'wake', text: 'x' }, { message: 'b' }, { kind: 'wake', text: 'y' }],
      { runIds: [id], wakes: 2 },
    ],
  ])(
    'the answer has the ids of a transform’s runs and the number of its wakes, or the mode of its only wake: %s',
    async (_, result, rest) => {
      expect(parseBody(await ask('echo', { result }))).toEqual({ ok: true, deliveryId: id, ...rest })
    },
  )

  test('the answer lists a run for each item, in the order of the items', async () => {
    const reply = await ask('each', { items: [{ n: 1 }, { n: 2 }, { n: 3 }] })
    expect(parseBody(reply)).toEqual({ ok: true, deliveryId: id, runIds: [id, id, id], wakes: 0 })
    const { jobs } = (await readRecord(reply)) ?? { jobs: [] }
    expect(jobs.map((job) => job.id)).toEqual(JSON.parse(reply.body).runIds)
  })
})

describe('skipped deliveries', () => {
  test.each([
    ['a transform returns null', 'echo', { result: null }],
    ['no condition is met', 'only', { go: false }],
    ['the array is missing', 'each', {}],
    ['the value is not an array', 'each', { items: 'x' }],
    ['the array is empty', 'each', { items: [] }],
  ])('a skipped delivery is answered 204 and recorded with its reason: %s', async (_, hook, payload) => {
    const reply = await ask(hook, payload)
    expect([reply.status, reply.body, reply.headers['content-type']]).toEqual([204, '', undefined])
    const record = await readNewest()
    expect(record).toMatchObject({ hook, state: 'skipped', jobs: [] })
    expect(record?.trace.length).toBeGreaterThan(0)
  })
})

describe('parked deliveries', () => {
  test.each([
    ['code that throws', 'throws', {}, 'transform-failed'],
    ['code that is missing', 'gone', {}, 'transform-missing'],
    ['an invalid result', 'echo', { result: 7 }, 'transform-result-invalid'],
    ['no result', 'echo', {}, 'transform-result-invalid'],
    ['a blank message from code', 'echo', { result: { message: ' ' } }, 'transform-result-invalid'],
    [
      'an attempt to leave the boundary',
      'echo',
      { result: { message: 'x', allowUnsafeExternalContent: true } },
      'transform-result-invalid',
    ],
  ])('a fault of the operator is answered 200, and the delivery is parked: %s', async (_, hook, payload, code) => {
    const reply = await ask(hook, payload)
    expect(parseBody(reply)).toEqual({ ok: true, deliveryId: id, status: 'parked' })
    expect(await readRecord(reply)).toMatchObject({ state: 'parked', jobs: [], problem: { code } })
  })

  test('a fault of the operator is answered 500 with onTransformError "reject", and nothing is stored', async () => {
    const { port, dir } = await startInside({ config: { hooks: { ...hooks, onTransformError: 'reject' } }, files })
    for (const [hook, code] of [
      ['throws', 'transform-failed'],
      ['gone', 'transform-missing'],
    ] as const) {
      const reply = await post(port, `/hooks/${hook}`, {}, [['idempotency-key', 'again']])
      expect([reply.status, parseBody(reply)]).toEqual([500, { ok: false, error: expect.any(String), code }])
      expect(reply.body).not.toContain('yarn')
    }
    expect(await readStore(dir, (reader) => reader.deliveries({ limit: 10 }))).toEqual([])
  })
})

describe('refused deliveries', () => {
  test.each([
    ['a template that renders blank', 'blank', {}, 'payload-invalid'],
    ['a session key that renders blank', 'blank-key', {}, 'payload-invalid'],
    ['a payload that does not fit the schema of the code', 'checked', { n: 'x' }, 'payload-invalid'],
  ])('a fault of the sender is refused, and nothing is stored: %s', async (_, hook, payload, code) => {
    const before = await readNewest()
    const reply = await ask(hook, payload)
    expect(readVerdict(reply)).toBe(code)
    expect((await readNewest())?.deliveryId).toBe(before?.deliveryId)
  })
})

describe('answers about runs', () => {
  test('a run resource answers with its state, 404, 405 or 409, and a request beyond hooks.maxWaiting gets 202 at once', async () => {
    const reply = await ask('agent', { message: 'x', deliver: false }, [['prefer', 'wait=30']])
    expect([reply.status, reply.headers['preference-applied']]).toEqual([200, 'wait=30'])
    const { runId } = JSON.parse(reply.body) as { runId: string }
    const askRun = (method: string, run = runId) =>
      send(gateway.port, { method, target: `/hooks/runs/${run}`, headers: bearer, length: false })
    const shown = await askRun('GET')
    expect([shown.status, parseBody(shown)]).toMatchObject([
      200,
      { ok: true, runId: id, deliveryId: id, state: 'done' },
    ])
    const verdicts = [await askRun('GET', readDeliveryId(reply)), await askRun('POST'), await askRun('DELETE')].map(
      readVerdict,
    )
    expect(verdicts).toEqual(['not-found', 'method-not-allowed', 'conflict'])
    const { port } = await startInside({ config: { hooks: { ...hooks, maxWaiting: 0 } }, files })
    const wait: Headers = [['prefer', 'wait=30']]
    const early = await post(port, '/hooks/each', { items: Array.from({ length: 50 }, (_, n) => ({ n })) }, wait)
    expect([early.status, early.headers['location'], early.headers['retry-after']]).toEqual([
      202,
      expect.stringMatching(/^\/hooks\/runs\/[\da-f-]{36}$/),
      '5',
    ])
  })
})

describe('pending deliveries', () => {
  let release: () => void
  const released = new Promise<void>((resolve) => (release = resolve))
  const gate = createServer(async (_, res) => {
    await released
    res.end('through the gate')
  }).listen(0, '127.0.0.1')
  afterAll(() => void gate.close().closeAllConnections())

  test('the answer to a slow transform and to its duplicates is 200 pending, and one action is made when the transform ends', async () => {
    if (!gate.listening) await once(gate, 'listening')
    const { port, dir } = await startInside({ config: { hooks: { ...hooks, answerWithinMs: 50 } }, files })
    // as: a listening TCP server has an AddressInfo
    const payload = { gate: `http://127.0.0.1:${(gate.address() as AddressInfo).port}/` }
    const deliver = () => post(port, '/hooks/held', payload, [['idempotency-key', 'slow']])
    const [first, twin] = await Promise.all([deliver(), deliver()])
    expect(parseBody(first)).toEqual({ ok: true, deliveryId: id, status: 'pending' })
    expect(twin.body).toBe(first.body)
    expect(await readRecord(first, dir)).toMatchObject({ state: 'pending', jobs: [] })
    release()
    await vi.waitUntil(async () => (await readRecord(first, dir))?.state === 'accepted', { timeout: 60_000 })
    const record = await readRecord(first, dir)
    expect(record?.jobs.map(({ planned }) => planned.kind === 'agent' && planned.action.message)).toEqual([
      'through the gate',
    ])
    const later = await deliver()
    expect([later.body, later.headers['idempotent-replay']]).toEqual([first.body, 'true'])
  })
})

describe('redeliveries in development', () => {
  const github = (delivery: string): Headers => [
    ['x-github-event', 'ping'],
    ['x-github-delivery', delivery],
  ]

  test('a redelivery by the sender runs again in development, and a repetition with an Idempotency-Key does not', async () => {
    const { port } = await startInside({ config: { hooks }, files, development: true })
    const deliver = (headers: Headers) => post(port, '/hooks/echo', { result: { message: 'x' } }, headers)
    const first = await deliver(github('1'))
    const again = await deliver(github('1'))
    expect(readDeliveryId(again)).not.toBe(readDeliveryId(first))
    expect(again.headers['idempotent-replay']).toBeUndefined()
    const keyed: Headers = [...github('2'), ['idempotency-key', 'k']]
    expect((await deliver(keyed)).body).toBe((await deliver(keyed)).body)
  })
})
