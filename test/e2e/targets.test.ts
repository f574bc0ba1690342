// The same request in other words: targets, names, credentials and headers that mean the same get the same answer.
import { beforeAll, describe, expect, test } from 'vitest'
import { hookToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { bearer, exchange, type Headers, json, send, toRequest } from './wire.ts'

const body = '{"text":"hello"}'
let gateway: Inside
beforeAll(async () => {
  gateway = await startInside({
    config: {
      hooks: {
        mappings: [
          { match: { path: 'caf%c3%a9' }, action: 'wake', textTemplate: 'x' },
          { match: { path: 'a%2fb' }, action: 'wake', textTemplate: 'x' },
        ],
      },
    },
  })
})
const ask = async (target: string, headers: Headers = [...bearer, ...json], method = 'POST') =>
  (await send(gateway.port, { method, target, headers, body })).status

test.each([
  ['the absolute form', 'http://hooks.example/hooks/wake'],
  ['the absolute form with https, a port and capitals', 'HTTPS://Hooks.Example:443/hooks/wake?a=1'],
  ['an escaped letter', '/hooks/%77ake'],
  ['an escaped letter of the prefix', '/h%6foks/wake'],
  ['escapes in lower case', '/hooks/caf%c3%a9'],
  ['escapes in upper case', '/hooks/caf%C3%A9'],
  ['an escaped slash in either case', '/hooks/a%2Fb'],
])('%s is the same hook', async (_, target) => {
  expect(await ask(target)).toBe(200)
})

test.each([
  ['an escaped slash instead of a slash', '/hooks%2fwake', 404],
  ['a slash instead of an escaped one', '/hooks/a/b', 404],
  ['an escape that is decoded once only', '/hooks/%2577ake', 404],
  ['two slashes at the beginning', '//hooks/wake', 404],
  ['dots', '/hooks/../hooks/wake', 404],
  ['escaped dots', '/hooks/%2e%2e/hooks/wake', 404],
  ['another scheme', 'ftp://hooks.example/hooks/wake', 404],
  ['a user in the absolute form', 'http://user@hooks.example/hooks/wake', 400],
  ['no host in the absolute form', 'http:///hooks/wake', 400],
  ['a token in the query of the absolute form', 'http://hooks.example/hooks/wake?token=x', 400],
])('%s is another target', async (_, target, status) => {
  expect(await ask(target)).toBe(status)
})

test('the absolute form does not reach what the path alone does not reach, and OPTIONS * is no hook', async () => {
  expect(await ask('http://hooks.example', bearer)).toBe(404)
  expect(await ask('http://hooks.example?/hooks/wake', bearer)).toBe(404)
  expect(await ask('*', bearer, 'OPTIONS')).toBe(404)
})

describe('credentials and media types', () => {
  const own: Headers = [['x-service-token', hookToken], ...json]
  test.each(['Bearer', 'Bearer ', 'bearer   '])(
    'an authorization of %j beside the right x-service-token is no failure',
    async (value) => {
      for (let count = 0; count < 25; count++)
        expect(await ask('/hooks/wake', [['authorization', value], ...own])).toBe(200)
    },
  )

  test('a wrong Bearer token beside the right x-service-token, and an empty one alone, are refused', async () => {
    expect(await ask('/hooks/wake', [['authorization', 'Bearer wrong'], ...own])).toBe(401)
    expect(await ask('/hooks/wake', [['authorization', 'Bearer '], ...json])).toBe(401)
  })

  test('two equal lines of Content-Type are one, and two different ones are refused', async () => {
    expect(await ask('/hooks/wake', [...bearer, ...json, ...json])).toBe(200)
    expect(await ask('/hooks/wake', [...bearer, ...json, ['content-type', 'text/plain']])).toBe(415)
  })
})

test('a request behind one in the absolute form on the same connection is read as usual', async () => {
  const parts = { headers: [...bearer, ...json], body }
  const bytes = Buffer.concat(
    ['http://a.example/hooks/wake', '/hooks/wake'].map((target) => toRequest({ target, ...parts })),
  )
  const { replies } = await exchange(gateway.port, bytes, { until: 2 })
  expect(replies.map(({ status }) => status)).toEqual([200, 200])
})
