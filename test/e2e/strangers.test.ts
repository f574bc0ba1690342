// A client without a credential cannot find out which hooks exist: the answer depends on its request, not on the name.
import { createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { readVerdict } from './answers.ts'
import { type SignedGateway, startSignedGateway } from './proving.ts'
import { bearer, type Headers, json, type Reply } from './wire.ts'

const forged: Headers = [['x-hub-signature-256', `sha256=${'0'.repeat(64)}`]]
const guess: Headers = [['authorization', 'Bearer a-guess']]
const over = 'x'.repeat(300_000)

const encodeChunks = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`

/** Every kind of hook, by the credential that opens it. */
const existing = ['signed', 'timed', 'in-body', 'word', 'bearer', 'basic', 'account', 'own-header', 'both', 'open']
const missing = ['nobody', '', 'constructor', 'signed/', 'Signed'.toUpperCase()]

let gateway: SignedGateway
beforeAll(async () => {
  gateway = await startSignedGateway([
    { match: { path: 'signed' }, verify: { scheme: 'github', secret: 'long-enough-for-all' } },
    { match: { path: 'timed' }, verify: { scheme: 'stripe', secret: 'long-enough-for-all' } },
    { match: { path: 'in-body' }, verify: { scheme: 'mailgun', secret: 'long-enough-for-all' } },
    { match: { path: 'word' }, verify: { scheme: 'microsoft-graph', secret: 'long-enough-for-all' } },
    { match: { path: 'bearer' }, verify: { scheme: 'alertmanager', secret: 'long-enough-for-all' } },
    { match: { path: 'basic' }, verify: { scheme: 'postmark', secret: 'u:long-enough-for-all' } },
    { match: { path: 'account' }, verify: { scheme: 'google-pubsub', email: 'a@x.example', audience: 'a' } },
    {
      match: { path: 'own-header' },
      verify: { scheme: 'generic-hmac', secret: 'long-enough-for-all', header: 'x-own', prefix: 'v1=' },
    },
    { match: { path: 'both' }, verify: { scheme: 'github', secret: 'long-enough-for-all', also: 'token' } },
    { match: { path: 'open' } },
  ])
})

type Request = { headers: Headers; body: string | Buffer; length?: boolean }

const ask = (name: string, request: Request, client?: string): Promise<Reply> =>
  gateway.ask({ target: `/hooks/${name}`, ...request }, client)

/**
 * Everything that a stranger sees, except values that differ in each answer and whether the connection is kept: a hook whose proof is in
 * the body or in a Bearer token has to read the body first.
 */
function toSeen({ status, headers, body }: Reply) {
  const { 'x-request-id': _id, date: _date, connection: _connection, 'keep-alive': _alive, ...rest } = headers
  return { status, headers: rest, body: body.replace(/"requestId":"[^"]*"/, '') }
}

const carriers: Readonly<Record<string, Headers>> = {
  'nothing to show': [],
  'a wrong token': guess,
  'a wrong token in the other header': [['x-service-token', 'a-guess']],
  'a repeated token': [...guess, ...guess],
  'a forged signature': forged,
  'a forged signature and a wrong token': [...forged, ...guess],
  'a forged signature in a header that the operator named': [['x-own', 'v1=00']],
  'a forged time and signature': [['stripe-signature', 't=1,v1=00']],
  'a wrong password': [['authorization', 'Basic dTpx']],
  'a forged token of an account': [['authorization', 'Bearer e30.e30.AAAA']],
  'the signature of a scheme that no hook asks for': [['linear-signature', '00']],
}
const bodies: Readonly<Record<string, Request>> = {
  'a body': { headers: json, body: '{"a":1}' },
  'no body': { headers: [], body: '' },
  'a body with a forged proof inside': {
    headers: json,
    body: '{"signature":{"timestamp":"1700000000","token":"t","signature":"00"},"value":[{"clientState":"x"}]}',
  },
  'a body over the limit': { headers: json, body: over },
  'a body over the limit in chunks': {
    headers: [...json, ['transfer-encoding', 'chunked']],
    body: encodeChunks(over),
    length: false,
  },
  'a body that inflates over the limit': { headers: [...json, ['content-encoding', 'gzip']], body: gzipSync(over) },
  'a body that does not inflate': { headers: [...json, ['content-encoding', 'gzip']], body: '{}' },
  'an unsupported encoding': { headers: [...json, ['content-encoding', 'zstd']], body: '{}' },
  'a media type that no hook accepts': { headers: [['content-type', 'image/png']], body: '{}' },
  'a body that is not JSON': { headers: json, body: '{' },
}

const table = Object.entries(carriers).flatMap(([shown, carrier]) =>
  Object.entries(bodies).map(
    ([sent, request]) => [shown, sent, { ...request, headers: [...carrier, ...request.headers] }] as const,
  ),
)

describe('clients without a token', () => {
  test.each(table)('a client with %s and %s gets the same answer for every hook name', async (_, __, request) => {
    const expected = toSeen(await ask('no-such-hook', request))
    expect([401, 413, 415, 400]).toContain(expected.status)
    for (const name of [...existing, ...missing]) {
      expect([name, toSeen(await ask(name, request))]).toEqual([name, expected])
    }
  })

  test('a client learns that its body is too large only if it sends a proof, even a forged one', async () => {
    for (const [shown, carrier] of Object.entries(carriers)) {
      const isShown = /signature|password/.test(shown) && !shown.includes('that no hook asks for')
      const reply = await ask('no-such-hook', { headers: [...json, ...carrier], body: over })
      expect([shown, readVerdict(reply)]).toEqual([shown, isShown ? 'body-too-large' : 'unauthorized'])
    }
  })

  test('a refused client gets the same sentence with and without a proof', async () => {
    const sentences = await Promise.all(
      Object.values(carriers).map(async (headers) => (await ask('signed', { headers, body: '{}' })).body),
    )
    expect(new Set(sentences).size).toBe(1)
  })

  test.each(Object.entries(carriers))(
    'a client with %s is locked out of every hook name after twenty failures',
    async (shown, headers) => {
      const request = { headers: [...headers, ...json], body: '{"a":1}' }
      const names = ['signed', 'in-body', 'bearer', 'open', 'nobody']
      for (const [index, name] of names.entries()) {
        const client = `203.0.${Object.keys(carriers).indexOf(shown)}.${index}`
        for (let count = 0; count < 20; count++) {
          // half of the requests are to an unknown hook, because all names share one count
          const at = count % 2 === 0 ? name : 'no-such-hook'
          expect([name, count, readVerdict(await ask(at, request, client))]).toEqual([name, count, 'unauthorized'])
        }
        expect([name, readVerdict(await ask(name, request, client))]).toEqual([name, 'rate-limited'])
        expect(readVerdict(await ask('no-such-hook', request, client))).toBe('rate-limited')
      }
    },
  )
})

describe('failures of one request', () => {
  const sign = (body: string): Headers => [
    ['x-hub-signature-256', `sha256=${createHmac('sha256', 'long-enough-for-all').update(body).digest('hex')}`],
  ]

  test.each([
    ['a wrong token and a valid proof', '198.51.100.1', () => [...guess, ...sign('{}')], 'both'],
    ['a wrong token and a forged signature', '198.51.100.2', () => [...guess, ...forged], 'both'],
    ['a wrong token and a proof that opens its hook', '198.51.100.3', () => [...guess, ...sign('{}')], 'signed'],
  ])('a request counts as one failure at most: %s', async (_, client, toHeaders, name) => {
    const request = { headers: [...toHeaders(), ...json], body: '{}' }
    for (let count = 0; count < 19; count++) await ask(name, request, client)
    const right = { headers: [...bearer, ...json], body: '{"text":"x"}' }
    expect(readVerdict(await ask('wake', right, client))).toBe('accepted')
    await ask(name, request, client)
    expect(readVerdict(await ask('wake', right, client))).toBe('rate-limited')
  })
})

test('a client with the hook token is told whether a name exists', async () => {
  const askVerdict = async (name: string) => readVerdict(await ask(name, { headers: [...bearer, ...json], body: '{}' }))
  expect([await askVerdict('no-such-hook'), await askVerdict('signed'), await askVerdict('open')]).toEqual([
    'hook-unknown',
    'unauthorized',
    'accepted',
  ])
})

test('the built-in hooks require the token before they read a body, even if a proof is shown', async () => {
  for (const name of ['wake', 'agent']) {
    expect(readVerdict(await ask(name, { headers: [...forged, ...json], body: over }))).toBe('unauthorized')
  }
})
