// The order of the checks, paths, methods and payloads: the requests of a stranger and their answers.
import { beforeAll, describe, expect, test } from 'vitest'
import type { ProblemCode } from '../../src/core/model/problem.ts'
import { expectSound, readDeliveryId, readVerdict } from './answers.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { bearer, type Headers, json, post, type RequestParts, send, toRequest, exchange } from './wire.ts'

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({
    config: {
      server: { trustedProxies: ['127.0.0.1'] },
      hooks: {
        mappings: [
          { id: 'any', match: { path: 'any' }, deliver: false },
          { id: 'deep', match: { path: 'a/b' }, deliver: false },
          { id: 'only', match: { path: 'only', payload: { action: 'go' } }, deliver: false },
          {
            id: 'inherited',
            match: { path: 'inherited' },
            messageTemplate: 'found:{{constructor.name}}{{__proto__.constructor.name}}{{toString}}',
            deliver: false,
          },
        ],
      },
    },
  })
})

let clients = 0
/** A new client each time, so that the failures of one row do not lock out another. */
function newClientHeaders(): Headers {
  clients += 1
  return [['x-forwarded-for', `10.1.${clients >> 8}.${clients & 255}`]]
}

const ask = (parts: RequestParts) =>
  send(gateway.port, { ...parts, headers: [...newClientHeaders(), ...(parts.headers ?? [])] })
const wake = JSON.stringify({ text: 'hello' })
const huge: Headers = [['content-length', '99999999']]

describe('order of the checks', () => {
  test.each<[string, RequestParts, ProblemCode]>([
    ['the prefix, before a token in the query', { method: 'GET', target: '/else?token=x' }, 'hook-unknown'],
    ['a path that only begins like the prefix', { target: '/hooksy/wake' }, 'hook-unknown'],
    ['a token in the query, before the method', { method: 'GET', target: '/hooks/wake?token=x' }, 'token-in-query'],
    ['a token in the query, before the credential', { target: '/hooks/wake?token=x' }, 'token-in-query'],
    ['a token in the query, before the name', { target: '/hooks/nobody?token=x', headers: bearer }, 'token-in-query'],
    ['the method, before the credential', { method: 'GET', target: '/hooks/wake' }, 'method-not-allowed'],
    ['the method, before the name', { method: 'PUT', target: '/hooks/nobody', headers: bearer }, 'method-not-allowed'],
    ['the credential, before the name', { target: '/hooks/nobody' }, 'unauthorized'],
    ['the credential, before the length', { target: '/hooks/wake', headers: huge, length: false }, 'unauthorized'],
    [
      'the name, before the length',
      { target: '/hooks/nobody', headers: [...bearer, ...huge], length: false },
      'hook-unknown',
    ],
    [
      'the length, before encoding and type',
      {
        target: '/hooks/wake',
        headers: [...bearer, ...huge, ['content-encoding', 'zstd'], ['content-type', 'text/xml']],
        length: false,
      },
      'body-too-large',
    ],
    [
      'the type, before the syntax',
      { target: '/hooks/wake', headers: [...bearer, ['content-type', 'text/xml']], body: '<x' },
      'media-type-unsupported',
    ],
    [
      'the syntax, before the fields',
      { target: '/hooks/wake', headers: [...bearer, ...json], body: '{"text":1' },
      'body-invalid',
    ],
  ])('a request that fails several checks gets the answer of the first one: %s', async (_, parts, code) => {
    expect(readVerdict(await ask(parts))).toBe(code)
  })

  test('a duplicate gets the first answer before its fields are checked', async () => {
    const key: Headers = [['idempotency-key', 'order-of-checks']]
    const first = await post(gateway.port, '/hooks/wake', wake, key)
    expect(readVerdict(first)).toBe('accepted')
    const second = await post(gateway.port, '/hooks/wake', { text: 1 }, key)
    expect([second.status, second.body]).toEqual([first.status, first.body])
  })

  test('a request to a known hook that meets the conditions of no mapping is not an error', async () => {
    const reply = await post(gateway.port, '/hooks/only', { action: 'stay' })
    expect(readVerdict(reply)).toBe('skipped')
    expect(readVerdict(await post(gateway.port, '/hooks/only', { action: 'go' }))).toBe('accepted')
  })

  test('disabled hooks are unknown, even with the token', async () => {
    const { port } = await startInside({ config: { hooks: { enabled: false } } })
    for (const target of ['/hooks/wake', '/hooks/wake?token=x', '/']) {
      expect(readVerdict(await post(port, target, wake))).toBe('hook-unknown')
    }
  })
})

describe('paths of requests', () => {
  const splitWords = (text: string) => text.trim().split(/\s+/)
  const accepted = splitWords(`
    /hooks/wake /hooks/wake/ /hooks//wake /hooks/wake// /hooks/wake?a=1&b /hooks/a/b /hooks/%77ake /%68ooks/wake
    http://127.0.0.1/hooks/wake`)
  const unknown = splitWords(String.raw`
    /hooks /hooks/ /hooks// /hooks/Wake /hooks/wake/x /hooks/a /hooks/a//b /hooks/wak /hooks/wake.json /hooks/wake;a=1
    /hooks/wake%2f /hooks/a%2fb /hooks/a%2Fb /hooks/a\b /hooks/wake%00 /hooks/wake%20 /hooks/* /hooks/:name
    /hooks/./wake /hooks/../hooks/wake /hooks/x/../wake /hooks/%2e%2e/hooks/wake
    /hooks/__proto__ /hooks/constructor /hooks/toString /hooks/hasOwnProperty /hooks/${'x'.repeat(4_000)}`)
  const outside = splitWords(String.raw`
    / //hooks/wake /Hooks/wake /hook/wake /hooks\wake /./hooks/wake /x/../hooks/wake *`)

  test.each(accepted)('the path %s accepts a delivery only with the token', async (target) => {
    const body = target.includes('/a/b') ? '{}' : wake
    expect(readVerdict(await ask({ target, headers: [...bearer, ...json], body }))).toBe('accepted')
    expect(readVerdict(await ask({ target, headers: json, body }))).toBe('unauthorized')
  })

  test.each(unknown)('the path %s is not a hook, and only a request with the token learns that', async (target) => {
    expect(readVerdict(await ask({ target, headers: [...bearer, ...json], body: wake }))).toBe('hook-unknown')
    expect(readVerdict(await ask({ target, headers: json, body: wake }))).toBe('unauthorized')
  })

  test('an absolute target with a user is malformed', async () => {
    const target = 'http://user@127.0.0.1/hooks/wake'
    expect(readVerdict(await ask({ target, headers: [...bearer, ...json], body: wake }))).toBe('request-malformed')
  })

  test.each(outside)('the path %s is outside the prefix of the hooks', async (target) => {
    expect(readVerdict(await ask({ target, headers: [...bearer, ...json], body: wake }))).toBe('hook-unknown')
  })
})

describe('methods of requests', () => {
  test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'])(
    'the method %s is answered with 405, and the answer names the right one',
    async (method) => {
      for (const headers of [[], bearer]) {
        const reply = await ask({ method, target: '/hooks/wake', headers })
        expect(readVerdict(reply)).toBe('method-not-allowed')
        expect(reply.headers['allow']).toBe('POST')
        expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
      }
    },
  )

  test('the method HEAD is answered 405 without a body', async () => {
    const reply = await ask({ method: 'HEAD', target: '/hooks/wake', headers: bearer })
    expect([reply.status, reply.headers['allow'], reply.body]).toEqual([405, 'POST', ''])
  })

  test('no header turns a GET request into a POST request', async () => {
    const headers: Headers = [...bearer, ['x-http-method-override', 'POST'], ['x-http-method', 'POST']]
    expect(readVerdict(await ask({ method: 'GET', target: '/hooks/wake?_method=POST', headers }))).toBe(
      'method-not-allowed',
    )
  })

  test('a request for an upgrade is answered as an ordinary request, and a tunnel is refused', async () => {
    const upgrade: Headers = [...bearer, ...json, ['connection', 'upgrade'], ['upgrade', 'websocket']]
    expect(readVerdict(await ask({ target: '/hooks/wake', headers: upgrade, body: wake }))).toBe('accepted')
    const { replies, closed } = await exchange(
      gateway.port,
      toRequest({ method: 'CONNECT', target: '127.0.0.1:22', headers: bearer }),
      { until: 'all' },
    )
    expect(closed).toBe(true)
    expect(replies.filter(({ status }) => status < 400)).toEqual([])
  })
})

describe('names of prototypes in requests', () => {
  const poison = '{"polluted":true,"text":"x","message":"x","deliver":"yes"}'
  test.each([
    ['wake', `{"text":"x","__proto__":${poison}}`, 200],
    ['wake', `{"__proto__":${poison}}`, 400],
    ['wake', `{"constructor":{"prototype":${poison}}}`, 400],
    ['agent', `{"message":"x","deliver":false,"__proto__":${poison},"constructor":{"prototype":${poison}}}`, 200],
    ['agent', `{"__proto__":${poison}}`, 400],
    ['any', `{"__proto__":${poison},"constructor":{"prototype":${poison}},"prototype":${poison}}`, 200],
    ['any', `[{"__proto__":${poison}}]`, 200],
  ])('a request to the hook %s with %s is answered %i and changes no prototype', async (name, body, status) => {
    const reply = await post(
      gateway.port,
      `/hooks/${name}?__proto__[polluted]=1&constructor.prototype.polluted=1`,
      body,
      [['__proto__', '{"polluted":true}']],
    )
    expectSound(reply)
    expect([reply.status, reply.body]).toEqual([status, expect.any(String)])
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  test('the names of prototypes in a form are ordinary fields', async () => {
    const form: Headers = [...bearer, ['content-type', 'application/x-www-form-urlencoded']]
    const body = '__proto__=x&__proto__[polluted]=1&constructor=y&toString=z'
    expect(readVerdict(await ask({ target: '/hooks/any', headers: form, body }))).toBe('accepted')
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  test('a template reads only own properties of a payload', async () => {
    const id = readDeliveryId(await post(gateway.port, '/hooks/inherited', {}))
    const record = await readStore(gateway.dir, (reader) => reader.delivery(id))
    expect(record?.jobs.map(({ planned }) => planned.kind === 'agent' && planned.action.message)).toEqual(['found:'])
  })
})
