// Credentials in every spelling, the token in the query, and the penalty for guessing.
import { beforeAll, describe, expect, test } from 'vitest'
import { readVerdict } from './answers.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { type Headers, json, send } from './wire.ts'

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({
    config: {
      server: { trustedProxies: ['127.0.0.1', '10.9.0.0/16'] },
      hooks: { mappings: [{ id: 'any', match: { path: 'any' }, deliver: false }] },
    },
  })
})

const wake = JSON.stringify({ text: 'hello' })
let clients = 0
/** The address of a new client each time. */
function newClient(): string {
  clients += 1
  return `10.2.${clients >> 8}.${clients & 255}`
}
const askAs = (client: string, headers: Headers, target = '/hooks/wake') =>
  send(gateway.port, { target, headers: [['x-forwarded-for', client], ...json, ...headers], body: wake })
const ask = (headers: Headers, target?: string) => askAs(newClient(), headers, target)

describe('valid credentials', () => {
  test.each<[string, Headers]>([
    ['as Bearer', [['Authorization', `Bearer ${hookToken}`]]],
    ['as bearer', [['authorization', `bearer ${hookToken}`]]],
    ['as BEARER', [['AUTHORIZATION', `BEARER ${hookToken}`]]],
    ['after two spaces', [['authorization', `Bearer  ${hookToken}`]]],
    ['as x-service-token', [['x-service-token', hookToken]]],
    ['as X-Service-Token', [['X-Service-Token', hookToken]]],
    [
      'as Bearer, whatever x-service-token says',
      [
        ['authorization', `Bearer ${hookToken}`],
        ['x-service-token', 'wrong'],
      ],
    ],
    [
      'as x-service-token, with the Basic of a proxy',
      [
        ['authorization', 'Basic eDp5'],
        ['x-service-token', hookToken],
      ],
    ],
  ])('the hook token is accepted %s', async (_, headers) => {
    expect(readVerdict(await ask(headers))).toBe('accepted')
  })
})

describe('invalid credentials', () => {
  const half = hookToken.slice(0, -1)
  test.each<[string, Headers]>([
    ['without anything', []],
    ['with an empty Authorization', [['authorization', '']]],
    ['with a scheme alone', [['authorization', 'Bearer']]],
    ['with a scheme and a space', [['authorization', 'Bearer ']]],
    ['with the token alone', [['authorization', hookToken]]],
    ['with Basic', [['authorization', `Basic ${hookToken}`]]],
    ['with Basic in base64', [['authorization', `Basic ${Buffer.from(`:${hookToken}`).toString('base64')}`]]],
    ['with Token', [['authorization', `Token ${hookToken}`]]],
    ['with Digest', [['authorization', `Digest ${hookToken}`]]],
    ['with Bearer and a colon', [['authorization', `Bearer: ${hookToken}`]]],
    ['with Bearer and no space', [['authorization', `Bearer${hookToken}`]]],
    ['with Bearer and a tab', [['authorization', `Bearer\t${hookToken}`]]],
    ['with a quoted token', [['authorization', `Bearer "${hookToken}"`]]],
    ['with a word after the token', [['authorization', `Bearer ${hookToken} x`]]],
    ['with a list of tokens', [['authorization', `Bearer ${hookToken}, Bearer ${hookToken}`]]],
    ['with one character less', [['authorization', `Bearer ${half}`]]],
    ['with one character more', [['authorization', `Bearer ${hookToken}x`]]],
    ['with another last character', [['authorization', `Bearer ${half}_`]]],
    ['with the token in capitals', [['authorization', `Bearer ${hookToken.toUpperCase()}`]]],
    ['with a prefix of the token', [['authorization', `Bearer ${hookToken.slice(0, 1)}`]]],
    ['with the gateway token', [['authorization', `Bearer ${gatewayToken}`]]],
    ['with the token in base64', [['authorization', `Bearer ${Buffer.from(hookToken).toString('base64')}`]]],
    ['with the token percent-encoded', [['authorization', `Bearer ${hookToken.replaceAll('-', '%2D')}`]]],
    ['with the word undefined', [['authorization', 'Bearer undefined']]],
    ['with a wildcard', [['authorization', 'Bearer *']]],
    ['with a token of 6 kB', [['authorization', `Bearer ${'x'.repeat(6_000)}`]]],
    ['with bytes beyond ASCII', [['authorization', 'Bearer \u00ff\u00fe']]],
    [
      'with Authorization twice',
      [
        ['authorization', `Bearer ${hookToken}`],
        ['authorization', `Bearer ${hookToken}`],
      ],
    ],
    [
      'with a wrong token after the right one',
      [
        ['authorization', `Bearer ${hookToken}`],
        ['authorization', 'Bearer x'],
      ],
    ],
    [
      'with a wrong token before the right one',
      [
        ['authorization', 'Bearer x'],
        ['Authorization', `Bearer ${hookToken}`],
      ],
    ],
    [
      'with x-service-token twice',
      [
        ['x-service-token', hookToken],
        ['X-Service-Token', hookToken],
      ],
    ],
    [
      'with a wrong Bearer and the right x-service-token',
      [
        ['authorization', 'Bearer wrong'],
        ['x-service-token', hookToken],
      ],
    ],
    ['with an empty x-service-token', [['x-service-token', '']]],
    ['with Bearer in x-service-token', [['x-service-token', `Bearer ${hookToken}`]]],
    ['with a wrong x-service-token', [['x-service-token', 'wrong']]],
    ['in a cookie', [['cookie', `token=${hookToken}`]]],
    ['in proxy-authorization', [['proxy-authorization', `Bearer ${hookToken}`]]],
    ['in x-hook-token', [['x-hook-token', hookToken]]],
    ['in x-api-key', [['x-api-key', hookToken]]],
    ['in x_service_token', [['x_service_token', hookToken]]],
    ['in the query under another name', []],
  ])('a request with an invalid credential is refused: %s', async (title, headers) => {
    const target = title.includes('query') ? `/hooks/wake?access_token=${hookToken}` : '/hooks/wake'
    expect(readVerdict(await ask(headers, target))).toBe('unauthorized')
  })
})

describe('tokens in the query', () => {
  const valid: Headers = [['authorization', `Bearer ${hookToken}`]]

  const splitWords = (text: string) => text.trim().split(/\s+/)
  const spellings = splitWords(`
    ?token=${hookToken} ?token=x ?token= ?token ?a=1&token=x ?token=x&a=1 ?&&token=x& ?token=x&token=y ?token==x ?token=%
    ?%74oken=x ?t%6Fken=x ?%74%6f%6b%65%6e=x ?token[=x&token=y ?a?token=x&token=x ?%zz&token=x`)

  test.each(spellings)('the query %s is refused, even if the Authorization header is valid', async (query) => {
    expect(readVerdict(await ask(valid, `/hooks/wake${query}`))).toBe('token-in-query')
    expect(readVerdict(await ask([], `/hooks/any${query}`))).toBe('token-in-query')
  })

  test.each(splitWords('? ?Token=x ?tokens=x ?a=token ?%2574oken=x ?token%20=x ?to+ken=x ?x[token]=1'))(
    'the query %s contains no token and is accepted',
    async (query) => {
      expect(readVerdict(await ask(valid, `/hooks/wake${query}`))).toBe('accepted')
    },
  )
})

describe('guesses of the token', () => {
  const right: Headers = [['authorization', `Bearer ${hookToken}`]]
  const wrong: Headers = [['authorization', 'Bearer wrong']]
  async function fail(client: string, times: number): Promise<void> {
    const verdicts = new Set<string>()
    for (let n = 0; n < times; n++) verdicts.add(readVerdict(await askAs(client, n % 2 ? wrong : [])))
    expect([...verdicts]).toEqual(['unauthorized'])
  }

  test('nineteen failed guesses of the token lock no client out', async () => {
    const client = newClient()
    await fail(client, 19)
    expect(readVerdict(await askAs(client, right))).toBe('accepted')
  })

  test('a client with twenty failed guesses is locked out on every path, even with the right token, and other clients are not', async () => {
    const client = newClient()
    await fail(client, 20)
    for (const target of ['/hooks/wake', '/hooks/agent', '/hooks/any', '/hooks/nobody']) {
      for (const headers of [wrong, right, [['x-service-token', hookToken]] as const]) {
        const reply = await askAs(client, headers, target)
        expect(readVerdict(reply)).toBe('rate-limited')
        const seconds = Number(reply.headers['retry-after'])
        expect(seconds).toBeGreaterThan(50)
        expect(seconds).toBeLessThanOrEqual(60)
      }
    }
    expect(readVerdict(await ask(right))).toBe('accepted')
    // the checks before the token check give their usual answers
    expect(readVerdict(await askAs(client, right, '/hooks/wake?token=x'))).toBe('token-in-query')
    expect(readVerdict(await askAs(client, right, '/elsewhere'))).toBe('hook-unknown')
  })

  test('twenty concurrent wrong guesses lock a client out', async () => {
    const client = newClient()
    const statuses = await Promise.all(Array.from({ length: 30 }, async () => (await askAs(client, wrong)).status))
    expect(statuses.filter((status) => status === 401)).toHaveLength(20)
    expect(statuses.filter((status) => status === 429)).toHaveLength(10)
  })

  test('requests that are refused for another reason than their token do not count as guesses of it', async () => {
    const client = newClient()
    for (let n = 0; n < 25; n++) {
      await send(gateway.port, { method: 'GET', target: '/hooks/wake', headers: [['x-forwarded-for', client]] })
      expect(readVerdict(await askAs(client, right, '/hooks/wake?token=wrong'))).toBe('token-in-query')
      expect(readVerdict(await askAs(client, right, '/hooks/nobody'))).toBe('hook-unknown')
    }
    expect(readVerdict(await askAs(client, right))).toBe('accepted')
  })

  test('an address that the client adds before the trusted ones does not make it another client', async () => {
    const client = newClient()
    for (let n = 0; n < 20; n++) await askAs(`1.1.1.${n}, ${client}, 10.9.0.${n}`, wrong)
    expect(readVerdict(await askAs(`9.9.9.9, ${client}`, right))).toBe('rate-limited')
    expect(readVerdict(await askAs(client.replace('10.2', '10.3'), right))).toBe('accepted')
  })

  test('the addresses of one IPv6 network are one client', async () => {
    for (let n = 0; n < 20; n++) await askAs(`2001:db8:0:1::${n}`, wrong)
    expect(readVerdict(await askAs('2001:db8:0:1:ffff::1', right))).toBe('rate-limited')
    expect(readVerdict(await askAs('2001:db8:0:2::1', right))).toBe('accepted')
  })

  test('a client cannot choose its address without a trusted proxy, and loopback is locked out too', async () => {
    const { port } = await startInside()
    const askFrom = (client: string, headers: Headers) =>
      send(port, { target: '/hooks/wake', headers: [['x-forwarded-for', client], ...json, ...headers], body: wake })
    for (let n = 0; n < 20; n++) expect(readVerdict(await askFrom(`1.2.3.${n}`, wrong))).toBe('unauthorized')
    expect(readVerdict(await askFrom('1.2.3.99', right))).toBe('rate-limited')
  })
})
