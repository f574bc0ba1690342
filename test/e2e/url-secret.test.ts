// Senders that only have a URL: the secret in it lets a request in, and nobody sees it.
import { beforeAll, describe, expect, test } from 'vitest'
import { Problem } from '../../src/core/model/problem.ts'
import { createHookloom } from '../../src/app.ts'
import { type SignedGateway, startSignedGateway } from './proving.ts'
import { gatewayToken, makeConfigDir } from './gateway.ts'
import { bearer, exchange, type Headers, json, toRequest } from './wire.ts'

const secret = '8f14e45fceea167a5a36dedd4bea2543'
const wrong = '1679091c5a880faf6fb5e6087eb1b2dc'
const body = '{"event":"media.play"}'
let gateway: SignedGateway
let clients = 0
beforeAll(async () => {
  gateway = await startSignedGateway([
    {
      id: 'plex',
      match: { path: 'plex' },
      verify: { scheme: 'url-secret', secret },
      textTemplate: '{{payload}} {{url}} {{path}}',
      retain: true,
    },
    {
      id: 'shelly',
      match: { path: 'home/shelly' },
      verify: { scheme: 'url-secret', secret, get: true },
      textTemplate: '{{query.temp}} {{payload}}',
    },
    { id: 'other', match: { path: 'plex/other' } },
    { id: 'github', match: { path: 'github' }, verify: { scheme: 'github', secret } },
  ])
})

const post = (target: string, headers: Headers = json, client?: string) =>
  gateway.ask({ target, headers, body }, client)

/** All that an operator or an agent can read, as one text. */
async function readEverything(): Promise<string> {
  const paths = [
    '/api/deliveries',
    '/api/refusals',
    '/api/attention',
    '/api/senders',
    '/api/hooks',
    '/metrics',
    '/api/audit',
  ]
  const answers = await Promise.all(paths.map((path) => gateway.callAdmin('GET', path)))
  const deliveries = await gateway.deliveries()
  const events = await Promise.all(deliveries.map(({ deliveryId }) => gateway.readEvent(deliveryId)))
  const shown = await Promise.all(
    deliveries.map(({ deliveryId }) => gateway.callAdmin('GET', `/api/deliveries/${deliveryId}`)),
  )
  return JSON.stringify([answers, deliveries, events, shown])
}

describe('a secret in the URL', () => {
  test('the right secret lets a request in, also with escapes of RFC 3986 and a slash at the end, and no record of it has the secret', async () => {
    const escaped = `%${secret.charCodeAt(0).toString(16)}${secret.slice(1)}`
    for (const path of [`plex/${secret}`, `plex/${secret}/`, `plex/${escaped}`, `%70lex/${secret}?a=1`]) {
      expect((await post(`/hooks/${path}`)).status).toBe(200)
    }
    const deliveries = await gateway.deliveries()
    expect(deliveries.map(({ hook }) => hook)).toEqual(['plex', 'plex', 'plex', 'plex'])
    expect(await readEverything()).not.toContain(secret)
  })

  test('a header of a proxy that repeats the URL has no secret, and all other headers stay', async () => {
    const repeated: Headers = [
      ['x-original-url', `/hooks/plex/${secret}?a=1`],
      ['X-Forwarded-Uri', `/hooks/plex/%${secret.charCodeAt(0).toString(16)}${secret.slice(1)}`],
      ['referer', `https://hooks.example.com/hooks/plex/${secret}`],
      ['x-plex-device', '100% /hooks/plex/'],
    ]
    expect((await post(`/hooks/plex/${secret}`, [...json, ...repeated])).status).toBe(200)
    await post(`/hooks/plexx/${wrong}`, [...json, ['x-original-url', `/hooks/plexx/${wrong}`]])
    const [delivery] = (await gateway.deliveries()).slice(-1)
    const request = await gateway.callAdmin('GET', `/api/deliveries/${delivery?.deliveryId}/request`)
    expect(JSON.stringify(request)).toContain('/hooks/plex/[secret]?a=1')
    expect(JSON.stringify(request)).toContain('100% /hooks/plex/')
    expect(JSON.stringify([request, await readEverything()])).not.toContain(secret.slice(1))
  })

  test.each([
    ['a wrong secret', `/hooks/plex/${wrong}`],
    ['no secret', '/hooks/plex'],
    ['a secret with more after it', `/hooks/plex/${secret}/${wrong}`],
    ['a part of the secret', `/hooks/plex/${secret.slice(0, -1)}`],
    ['the secret in another case', `/hooks/plex/${secret.toUpperCase()}`],
    ['the secret in the query', `/hooks/plex?secret=${secret}`],
    ['the secret of another hook', `/hooks/github/${secret}`],
  ])('%s is 401, and counts as a failure of its client', async (_, target) => {
    const client = `198.51.100.${++clients}`
    const statuses = new Set<number>()
    for (let count = 0; count < 22; count++) statuses.add((await post(target, json, client)).status)
    expect([...statuses]).toEqual([401, 429])
  })

  test('no list shows a wrong secret, nor one of a hook that does not exist', async () => {
    for (const target of [
      `/hooks/plex/${wrong}`,
      `/hooks/plexx/${wrong}`,
      `/hooks/plex/${wrong}/x`,
      `http://h/hooks/plex/${wrong}`,
    ]) {
      await post(target)
    }
    const everything = await readEverything()
    expect(everything).not.toContain(wrong)
    expect(everything).toContain('plexx')
  })

  test('a token does not open the hook, a token in the query is 400, and a path that a mapping names is no secret', async () => {
    expect((await post('/hooks/plex', [...json, ...bearer])).status).toBe(401)
    expect((await post(`/hooks/plex/${secret}?token=x`)).status).toBe(400)
    expect((await post('/hooks/plex/other', [...json, ...bearer])).status).toBe(200)
  })

  test('a client cannot send the header that carries the secret inside the gateway', async () => {
    for (const name of [':url-secret', ' :url-secret', 'x\r\n:url-secret']) {
      const { replies } = await exchange(
        gateway.port,
        toRequest({ target: '/hooks/plex', headers: [[name, secret], ...json], body }),
        { until: 'all' },
      )
      expect(replies[0]?.status).toBeGreaterThanOrEqual(400)
    }
  })
})

describe('GET', () => {
  test('a GET is a delivery with the payload null and a readable query where the mapping says so, and a check elsewhere', async () => {
    const reply = await gateway.ask({ method: 'GET', target: `/hooks/home/shelly/${secret}?temp=21`, length: false })
    expect(reply.status).toBe(200)
    const { deliveryId } = JSON.parse(reply.body) as { deliveryId: string }
    expect(await gateway.readEvent(deliveryId)).toMatch(/^21 $/)
    const before = await gateway.deliveries()
    for (const method of ['GET', 'HEAD']) {
      expect((await gateway.ask({ method, target: `/hooks/plex/${secret}`, length: false })).status).toBe(200)
      expect((await gateway.ask({ method, target: `/hooks/plex/${wrong}`, length: false })).status).toBe(401)
      expect((await gateway.ask({ method, target: '/hooks/plex', length: false })).status).toBe(405)
    }
    expect((await gateway.ask({ method: 'GET', target: `/hooks/home/shelly/${wrong}`, length: false })).status).toBe(
      401,
    )
    expect((await gateway.ask({ method: 'PUT', target: `/hooks/home/shelly/${secret}` })).status).toBe(405)
    expect(await gateway.deliveries()).toEqual(before)
  })
})

test.each([
  ['that is short', { scheme: 'url-secret', secret: 'a1b2c3d4e5f60718' }],
  ['that nobody made at random', { scheme: 'url-secret', secret: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }],
  ['that is no part of a path', { scheme: 'url-secret', secret: `${secret}/x` }],
])('a secret %s is refused, with the command that makes a good one', async (_, verify) => {
  const dir = makeConfigDir({
    config: { gateway: { token: gatewayToken }, hooks: { mappings: [{ match: { path: 'plex' }, verify }] } },
  })
  const error = await createHookloom({ dir, env: {}, write: () => {} }).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(Problem)
  expect(String(error)).toMatch(/openssl rand -hex 32/)
})

describe('handshakes of senders that prove themselves with a word', () => {
  const origin: Headers = [
    ['webhook-request-origin', 'eventgrid.azure.net'],
    ['webhook-request-rate', '120'],
  ]
  const options = (target: string, headers: Headers = []) =>
    gateway.ask({ method: 'OPTIONS', target, headers: [...origin, ...headers], length: false })

  test('the sender of CloudEvents that has the secret, or the hook token, may send, and no other one learns whether the hook exists', async () => {
    const allowed = { 'webhook-allowed-origin': 'eventgrid.azure.net', 'webhook-allowed-rate': '*', allow: 'POST' }
    expect(await options(`/hooks/plex/${secret}`)).toMatchObject({ status: 200, headers: allowed })
    expect(await options('/hooks/plex/other', bearer)).toMatchObject({ status: 200, headers: allowed })
    expect((await options(`/hooks/plex/${wrong}`)).status).toBe(401)
    for (const target of ['/hooks/plex', '/hooks/plex/other', '/hooks/github', '/hooks/nobody']) {
      const reply = await options(target)
      expect([reply.status, reply.headers['webhook-allowed-origin']]).toEqual([405, undefined])
    }
    expect((await options('/hooks/nobody', bearer)).status).toBe(405)
  })

  test('an origin that is no plain text is not repeated', async () => {
    const reply = await options(`/hooks/plex/${secret}`, [['webhook-request-origin', '<script>']])
    expect([reply.status, reply.headers['webhook-allowed-origin']]).toEqual([405, undefined])
  })

  test('the validation of Event Grid is answered with its code, and is no delivery', async () => {
    const before = await gateway.deliveries()
    const event = [
      { eventType: 'Microsoft.EventGrid.SubscriptionValidationEvent', data: { validationCode: '512d38b6' } },
    ]
    const headers: Headers = [['aeg-event-type', 'SubscriptionValidation'], ...json]
    const reply = await gateway.ask({ target: `/hooks/plex/${secret}`, headers, body: JSON.stringify(event) })
    expect([reply.status, reply.body]).toEqual([200, '{"validationResponse":"512d38b6"}'])
    expect((await gateway.ask({ target: `/hooks/plex/${wrong}`, headers, body: JSON.stringify(event) })).status).toBe(
      401,
    )
    expect(await gateway.deliveries()).toEqual(before)
  })
})
