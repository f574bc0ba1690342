// The admin port: it serves the operator's commands, and no page in the operator's browser.
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Log } from '../../src/base/log.ts'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import { readVerdict } from './answers.ts'
import { calls } from './declared-calls.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { exchange, type Headers, post, type RequestParts, send, toRequest } from './wire.ts'

let gateway: Inside
let port: number

beforeAll(async () => {
  gateway = await startInside({
    config: { hooks: { mappings: [{ id: 'any', match: { path: 'any' }, deliver: false }] } },
  })
  port = toPort(gateway)
})

const toPort = ({ adminUrl }: Inside) => Number(new URL(adminUrl).port)
const bearer: Headers = [['authorization', `Bearer ${gatewayToken}`]]
const ask = (parts: RequestParts) => send(port, { method: 'GET', ...parts })

/** Every call that needs a token. */
const api: readonly (readonly [method: string, target: string])[] = [
  ...calls
    .filter(({ port: of, right }) => of === 'admin' && right !== 'none')
    .map(({ method, path }) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x')] as const),
  ['GET', '/api/openapi.json'],
  // it needs a code instead of a token
  ['POST', '/api/page/key'],
]
const open: typeof api = [
  ['GET', '/livez'],
  ['GET', '/healthz'],
  ['GET', '/readyz'],
  ['GET', '/metrics'],
]

describe('browser pages and the admin port', () => {
  const splitWords = (text: string) => text.trim().split(/\s+/)

  test.each(splitWords('localhost 127.0.0.1 [::1] LOCALHOST localhost:8791 127.0.0.1:1 [::1]:8791'))(
    'the admin port accepts the host %s',
    async (host) => {
      expect((await ask({ target: '/healthz', headers: [['host', host]] })).status).toBe(200)
    },
  )

  test.each(
    splitWords(`evil.test localhost.evil.test 127.0.0.1.evil.test evil.test:127.0.0.1 127.0.0.1@evil.test localhost. 127.1
      2130706433 0x7f.1 0.0.0.0 [::] [::ffff:127.0.0.1] localhost: localhost:80:80 localhost:x 127.0.0.2`),
  )('the admin port refuses the host %s, even with the token', async (host) => {
    for (const [method, target] of [...open, ...api]) {
      expect(readVerdict(await ask({ method, target, headers: [['host', host], ...bearer] }))).toBe('origin-denied')
    }
  })

  test.each(
    splitWords(`null http://evil.test https://evil.test:8791 http://localhost.evil.test http://localhost@evil.test file://
      http://127.0.0.1.evil.test http://http://localhost http://localhost/x chrome-extension://abcdef`),
  )('the admin port refuses the origin %s as another site', async (origin) => {
    for (const [method, target] of [...open, ...api]) {
      expect(readVerdict(await ask({ method, target, headers: [['origin', origin], ...bearer] }))).toBe('origin-denied')
    }
  })

  test('no page of another site may read an answer of the admin port or send its own header to it', async () => {
    const preflight: Headers = [
      ['origin', 'http://localhost:3000'],
      ['access-control-request-method', 'POST'],
      ['access-control-request-headers', 'authorization'],
    ]
    // the stream has no end
    for (const [, target] of [...open, ...api.filter((each) => each[1] !== '/api/stream')]) {
      for (const reply of [
        await ask({ method: 'OPTIONS', target, headers: preflight }),
        await ask({ target, headers: [preflight[0] ?? ['', ''], ...bearer] }),
      ]) {
        expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
      }
      expect((await ask({ method: 'OPTIONS', target, headers: preflight })).status).toBe(404)
    }
  })
})

describe('gateway token', () => {
  test.each<[string, Headers]>([
    ['none', []],
    ['a wrong one', [['authorization', 'Bearer wrong']]],
    ['the hook token', [['authorization', `Bearer ${hookToken}`]]],
    ['the right one twice', [...bearer, ...bearer]],
    ['the right one as Basic', [['authorization', `Basic ${gatewayToken}`]]],
    ['the right one in a cookie', [['cookie', `token=${gatewayToken}`]]],
  ])('the credential "%s" does not open /api', async (_, headers) => {
    // each call is made twice, and twenty wrong tokens lock a client out, so the test needs several gateways
    const ports = await Promise.all(
      Array.from({ length: Math.ceil(api.length / 9) }, async () => toPort(await startInside())),
    )
    for (const [index, [method, target]] of api.entries()) {
      const own = ports[index % ports.length] ?? 0
      for (const asked of [target, `${target}?token=${gatewayToken}`]) {
        expect(readVerdict(await send(own, { method, target: asked, headers }))).toBe('unauthorized')
      }
    }
  })

  test('a client with twenty wrong guesses is locked out except with the right token, and still reads the health pages', async () => {
    const own = toPort(await startInside())
    const get = (target: string, headers: Headers = []) => send(own, { method: 'GET', target, headers })
    const guess: Headers = [['authorization', 'Bearer wrong']]
    // a request without a token does not count as a guess
    for (let n = 0; n < 25; n++) expect(readVerdict(await get('/api/refusals'))).toBe('unauthorized')
    expect((await get('/api/refusals', bearer)).status).toBe(200)
    for (let n = 0; n < 20; n++)
      expect(readVerdict(await get(n % 2 ? '/api/runs/x' : '/readyz', guess))).toBe('unauthorized')
    const locked = await get('/api/refusals', guess)
    expect(readVerdict(locked)).toBe('rate-limited')
    expect(Number(locked.headers['retry-after'])).toBeGreaterThan(50)
    expect(readVerdict(await get('/readyz', guess))).toBe('rate-limited')
    expect((await get('/api/refusals', bearer)).status).toBe(200)
    for (const [, target] of open) expect((await get(target)).status).toBe(200)
  })

  test('the gateway token opens the API, and the health pages need no token', async () => {
    expect((await ask({ target: '/api/refusals', headers: bearer })).status).toBe(200)
    for (const [method, target] of open) expect((await ask({ method, target })).status).toBe(200)
  })

  test('without a gateway token in the configuration, the API is open to nobody', async () => {
    const without = toPort(await startInside({ config: { gateway: { token: undefined } } }))
    for (const token of ['', 'undefined', hookToken]) {
      const headers: Headers = [['authorization', `Bearer ${token}`]]
      const reply = await send(without, { method: 'GET', target: '/api/refusals', headers })
      expect([readVerdict(reply), reply.body]).toEqual(['unauthorized', expect.stringContaining('Set gateway.token')])
    }
  })
})

test.each([
  '/inspector',
  '/inspector/../package.json',
  '/inspector/x.js',
  '/api',
  '/healthz/',
  '/Healthz',
  '/hooks/wake',
  '/api/sessions/a/b',
  '//healthz',
])('the path %s is not found, and the answer names /readyz', async (target) => {
  const reply = await ask({ target, headers: bearer })
  expect([readVerdict(reply), reply.body]).toEqual(['not-found', expect.stringContaining('/readyz')])
})

test('a call is not found with another method than its own', async () => {
  const isCall = (method: string, target: string) => api.some(([own, path]) => own === method && path === target)
  for (const target of new Set(api.map(([, path]) => path))) {
    for (const method of ['GET', 'POST', 'DELETE'].filter((each) => !isCall(each, target))) {
      const verdict = readVerdict(await ask({ method, target, headers: bearer }))
      expect([method, target, verdict]).toEqual([method, target, 'not-found'])
    }
  }
})

test('a request without a body keeps its connection for the next one', async () => {
  const buildPageRequest = (target: string) => toRequest({ method: 'GET', target, headers: bearer, length: false })
  const targets = ['/healthz', '/readyz', '/metrics', '/api/refusals', '/nothing', '/healthz']
  const { replies } = await exchange(port, Buffer.concat(targets.map(buildPageRequest)), { until: targets.length })
  expect(replies.map(({ headers }) => headers['connection'])).toEqual(targets.map(() => 'keep-alive'))
})

describe('/readyz', () => {
  const file = { 'hooks/transforms/secret-name.ts': 'export default () => { throw new Error("a line of source") ' }
  const mapping = { id: 'm', match: { path: 'm' }, transform: { module: 'secret-name.ts' } }

  test('/readyz without a token shows the number of broken modules, but not their names', async () => {
    const degraded = await startInside({ config: { hooks: { mappings: [mapping] } }, files: file })
    const reply = await send(toPort(degraded), { method: 'GET', target: '/readyz' })
    expect(JSON.parse(reply.body)).toEqual({
      ok: true,
      degraded: true,
      configuration: 'live',
      modules: 1,
      paused: 0,
      warnings: [],
    })
  })

  test('/readyz without a token shows that a saved configuration is not live, but not why', async () => {
    const gateway = await startInside({ config: { hooks: { mappings: [{ ...mapping, transform: undefined }] } } })
    const readOutline = async () => JSON.parse((await send(toPort(gateway), { method: 'GET', target: '/readyz' })).body)
    expect(await readOutline()).toEqual({
      ok: true,
      degraded: false,
      configuration: 'live',
      modules: 0,
      paused: 0,
      warnings: [],
    })
    writeFileSync(join(gateway.dir, 'hookloom.jsonc'), '{ "secret-key": 1 }')
    await expect.poll(readOutline).toEqual({
      ok: true,
      degraded: true,
      configuration: 'refused',
      modules: 0,
      paused: 0,
      warnings: [],
    })
  })

  test('/readyz with the gateway token shows the details', async () => {
    const degraded = await startInside({ config: { hooks: { mappings: [mapping] } }, files: file })
    const reply = await send(toPort(degraded), { method: 'GET', target: '/readyz', headers: bearer })
    expect(JSON.parse(reply.body)).toMatchObject({
      ok: true,
      degraded: true,
      problems: [
        { module: 'secret-name.ts', detail: expect.any(String), frame: expect.stringContaining('a line of source') },
      ],
      store: { engine: 'sqlite', facts: { synchronous: 2 } },
    })
  })

  test('/readyz warns before the store is full', async () => {
    const store = { maxWaitingBytes: 100_000 }
    const near = await startInside({
      config: { store, hooks: { mappings: [{ ...mapping, transform: { module: 'gone.ts' } }] } },
    })
    const warnings = async () =>
      z
        .object({ warnings: z.array(z.string()) })
        .parse(JSON.parse((await send(toPort(near), { method: 'GET', target: '/readyz' })).body)).warnings
    for (let count = 0; count < 8; count++) await post(near.port, '/hooks/m', { more: 'x'.repeat(8_000) })
    expect(await warnings()).toEqual([])
    for (let count = 0; count < 2; count++) await post(near.port, '/hooks/m', { more: 'x'.repeat(8_000) })
    expect(await warnings()).toEqual([expect.stringContaining('of store.maxWaitingBytes')])
  })
})

test('an internal failure is logged with its reason and answered without it', async () => {
  const told: { fields: object; text: string }[] = []
  const log: Log = { debug() {}, info() {}, warn() {}, error: (fields, text) => void told.push({ fields, text }) }
  const store = createMemoryStore({ clock: Date.now })
  let cause: Error | undefined
  const failing = { ...store, counts: () => (cause === undefined ? store.counts() : Promise.reject(cause)) }
  const broken = toPort(await startInside({ store: failing, log }))
  cause = await readFile('/nowhere/disk').then(
    () => new Error('it was read'),
    (error: Error) => error,
  )
  const reply = await send(broken, { method: 'GET', target: '/metrics' })
  expect([reply.status, reply.body]).toEqual([500, expect.not.stringContaining('disk')])
  expect(told).toEqual([
    {
      fields: {
        err: expect.objectContaining({ code: 'ENOENT', message: expect.stringContaining('/nowhere/disk') }),
        requestId: reply.headers['x-request-id'],
      },
      text: 'a request failed inside the gateway',
    },
  ])
})

describe('an admin port that others can reach', () => {
  const server = { adminHost: '0.0.0.0', adminNames: ['admin.example.com', 'Hookloom.Default.svc'] }
  const startReachable = () => startInside({ config: { server: { port: 0, adminPort: 0, ...server } } })
  const closed: typeof api = [['GET', '/metrics'], ...api]

  test('the gateway token opens the metrics and /api, and nothing else does, even over loopback', async () => {
    const own = await startReachable()
    const askVerdicts = async (headers: Headers) =>
      Promise.all(
        closed.map(async ([method, target]) => readVerdict(await send(toPort(own), { method, target, headers }))),
      )
    expect(new Set(await askVerdicts([]))).toEqual(new Set(['unauthorized']))
    const metrics = await send(toPort(own), { method: 'GET', target: '/metrics', headers: bearer })
    expect([metrics.status, metrics.body]).toEqual([200, expect.stringContaining('hookloom_waiting_bytes')])
    expect((await send(toPort(own), { method: 'GET', target: '/api/health', headers: bearer })).status).toBe(200)
  })

  test('probes need no token and learn only whether the gateway is ready', async () => {
    const own = await startReachable()
    const get = async (target: string, headers: Headers = []) => {
      const { status, body } = await send(toPort(own), { method: 'GET', target, headers })
      return { status, body: JSON.parse(body) }
    }
    for (const target of ['/livez', '/healthz', '/readyz'])
      expect(await get(target)).toEqual({ status: 200, body: { ok: true } })
    expect((await get('/readyz', bearer)).body).toMatchObject({ store: { engine: 'sqlite' } })
  })

  test('the host must be one of the configured names or the address of the connection', async () => {
    const own = toPort(await startReachable())
    const ask = async (host: string, more: Headers = []) =>
      (await send(own, { method: 'GET', target: '/livez', headers: [['host', host], ...more, ...bearer] })).status
    const accepted = ['localhost', 'admin.example.com', 'ADMIN.example.com:8791', 'hookloom.default.svc', '127.0.0.1']
    for (const host of accepted) expect([host, await ask(host)]).toEqual([host, 200])
    const refused = ['example.com', 'x.admin.example.com', 'admin.example.com.evil.test', '127.0.0.2', '0.0.0.0', '']
    for (const host of refused) expect([host, await ask(host)]).not.toEqual([host, 200])
    expect(await ask('localhost', [['origin', 'https://admin.example.com']])).toBe(200)
    expect(await ask('localhost', [['origin', 'https://evil.test']])).toBe(403)
    const asOwn = await fetch(`http://127.0.0.2:${own}/livez`)
    expect(asOwn.status).toBe(200)
  })

  test('configured host names make the metrics require the token, even on loopback', async () => {
    const proxied = await startInside({ config: { server: { port: 0, adminPort: 0, adminNames: ['a.example.com'] } } })
    const get = (headers: Headers) => send(toPort(proxied), { method: 'GET', target: '/metrics', headers })
    expect(readVerdict(await get([['host', 'a.example.com']]))).toBe('unauthorized')
    expect((await get([['host', 'a.example.com'], ...bearer])).status).toBe(200)
    expect((await fetch(`http://127.0.0.1:${toPort(proxied)}/livez`)).status).toBe(200)
  })
})

describe('list of refusals', () => {
  const Refusals = z.object({
    refusals: z.array(z.looseObject({ requestId: z.string(), hook: z.string().optional(), isKept: z.boolean() })),
  })
  const list = async (of = gateway) =>
    Refusals.parse(
      JSON.parse((await send(toPort(of), { method: 'GET', target: '/api/refusals', headers: bearer })).body),
    ).refusals

  test('the list of refusals can be limited to a hook and to the newest', async () => {
    for (const hook of ['wake', 'nobody-1', 'nobody-1']) await post(gateway.port, `/hooks/${hook}`, { text: 1 })
    const read = async (query: string) => {
      const { body } = await send(toPort(gateway), { method: 'GET', target: `/api/refusals?${query}`, headers: bearer })
      return Refusals.parse(JSON.parse(body)).refusals.map(({ hook }) => hook)
    }
    expect(await read('hook=nobody-1')).toEqual(['nobody-1', 'nobody-1'])
    expect(await read('limit=1')).toEqual(['nobody-1'])
    expect(await read('hook=nobody-1&limit=1')).toEqual(['nobody-1'])
  })

  test('a refusal is found by its request id, with the failed check and without the payload', async () => {
    const reply = await post(gateway.port, '/hooks/wake', { text: 1, more: 'pickled herring' })
    const found = (await list()).find(({ requestId }) => requestId === reply.headers['x-request-id'])
    expect(found).toEqual({
      requestId: reply.headers['x-request-id'],
      receivedAt: expect.any(Number),
      client: '127.0.0.1',
      credential: 'hook-token',
      path: '/hooks/wake',
      isStranger: false,
      isKept: true,
      nearestHook: null,
      signature: null,
      proofs: [],
      expects: [],
      hook: 'wake',
      status: 400,
      code: 'payload-invalid',
      error: expect.stringContaining('text'),
      reason: expect.stringContaining('text'),
      trace: expect.any(Array),
    })
    expect(JSON.stringify(found)).not.toContain('herring')
  })

  test('the list has the last five hundred refusals and those that are stored, newest last', async () => {
    const own = await startInside()
    await post(own.port, '/hooks/wake', { text: 1 })
    const name = 'n'.repeat(10_000)
    const gets = Array.from({ length: 501 }, (_, n) =>
      toRequest({ method: 'GET', target: `/hooks/${n}-${name}`, length: false }),
    )
    for (const request of gets) await exchange(own.port, request)
    // a refusal is stored after its answer
    await expect
      .poll(async () => (await list(own)).filter(({ isKept }) => isKept).map(({ hook }) => hook))
      .toEqual(['wake'])
    const all = await list(own)
    const hooks = all.flatMap(({ hook, isKept }) => (isKept ? [] : [hook]))
    expect([hooks.length, hooks[0], hooks.at(-1)]).toEqual([
      500,
      `1-${name}`.slice(0, 200),
      `500-${name}`.slice(0, 200),
    ])
  })
})
