// A captured signed request that is sent again with other headers stays the same delivery, unless its sender signs nothing that can be its id.
import { createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type SignedGateway, startSignedGateway } from './proving.ts'
import { bearer, type Headers } from './wire.ts'

const key = Buffer.from('0123456789abcdef0123456789abcdef')
const secret = `whsec_${key.toString('base64')}`
const json: Headers = [['content-type', 'application/json']]
const body = '{"type":"invoice.paid","id":"evt_1"}'

let gateway: SignedGateway
beforeAll(async () => {
  gateway = await startSignedGateway([
    ...['standard-webhooks', 'gitlab-signing', 'svix', 'clerk', 'resend', 'openai', 'replicate'].map((scheme) => ({
      match: { path: scheme },
      verify: { scheme, secret },
    })),
    { match: { path: 'stripe' }, verify: { scheme: 'stripe', secret } },
    { match: { path: 'zoom' }, verify: { scheme: 'zoom', secret } },
    { match: { path: 'linear' }, verify: { scheme: 'linear', secret } },
    { match: { path: 'nylas' }, verify: { scheme: 'nylas', secret } },
    { match: { path: 'mailgun' }, verify: { scheme: 'mailgun', secret } },
    { id: 'bot', match: { path: 'shared' }, verify: { scheme: 'telegram', secret: 'bot-word-of-the-shop' } },
    { id: 'shop', match: { path: 'shared' }, verify: { scheme: 'stripe', secret } },
    { match: { path: 'github' }, verify: { scheme: 'github', secret } },
  ])
})

const send = (path: string, headers: Headers, text: string | Buffer = body) =>
  gateway.ask({ target: `/hooks/${path}`, headers: [...headers, ...(hasType(headers) ? [] : json)], body: text })
const hasType = (headers: Headers) => headers.some(([name]) => name === 'content-type')

function signWebhook(id: string, names: 'svix' | 'webhook' = 'webhook'): Headers {
  const at = String(gateway.time.now / 1000)
  const signature = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')
  return [
    [`${names}-id`, id],
    [`${names}-timestamp`, at],
    [`${names}-signature`, `v1,${signature}`],
  ]
}

function signStripe(text: string): Headers {
  const at = gateway.time.now / 1000
  return [['stripe-signature', `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${text}`).digest('hex')}`]]
}

/** Zoom signs no id: the signed text with its time is the delivery id. */
function signZoom(text: string): Headers {
  const at = String(gateway.time.now / 1000)
  const signature = createHmac('sha256', secret).update(`v0:${at}:${text}`).digest('hex')
  return [
    ['x-zm-request-timestamp', at],
    ['x-zm-signature', `v0=${signature}`],
  ]
}

/** Headers that no signature covers. Each is a delivery id of some sender, or suggests another sender. */
const unsigned: readonly (readonly [string, Headers])[] = [
  ['a new Idempotency-Key', [['idempotency-key', 'another']]],
  ['the id header of another sender', [['x-request-uuid', 'another']]],
  [
    'the headers of GitHub',
    [
      ['x-github-event', 'push'],
      ['x-github-delivery', 'another'],
    ],
  ],
  [
    'the headers of a CloudEvent',
    [
      ['ce-specversion', '1.0'],
      ['ce-source', 'x'],
      ['ce-id', 'another'],
    ],
  ],
  ['the media type of a form', [['content-type', 'application/x-www-form-urlencoded']]],
]

describe.each([
  ...['standard-webhooks', 'gitlab-signing', 'openai', 'replicate'].map(
    (scheme) => [scheme, (id: string) => signWebhook(id)] as const,
  ),
  ...['svix', 'clerk', 'resend'].map((scheme) => [scheme, (id: string) => signWebhook(id, 'svix')] as const),
  ['stripe', () => signStripe(body)] as const,
])('captured deliveries of %s', (scheme, sign) => {
  test.each(unsigned)('a replayed delivery is a duplicate even with %s', async (name, headers) => {
    const captured = sign(`msg-${name}`)
    const first = await send(scheme, captured)
    const again = await send(scheme, [...captured.filter(([one]) => !headers.some(([two]) => one === two)), ...headers])
    expect([readVerdict(first), again.headers['idempotent-replay']]).toEqual(['accepted', 'true'])
    expect(readDeliveryId(again)).toBe(readDeliveryId(first))
  })
})

test.each(unsigned)('a replayed delivery of Zoom is a duplicate even with %s', async (name, headers) => {
  const text = JSON.stringify({ event: 'meeting.started', name })
  const captured = signZoom(text)
  const first = await send('zoom', captured, text)
  const again = await send('zoom', [...captured, ...headers], text)
  expect([readVerdict(first), again.headers['idempotent-replay']]).toEqual(['accepted', 'true'])
  expect(readDeliveryId(again)).toBe(readDeliveryId(first))
})

test('an attempt by Zoom an hour after its signature is accepted only once', async () => {
  const text = '{"event":"meeting.ended"}'
  const captured = signZoom(text)
  const other = signZoom('{"event":"meeting.started"}')
  gateway.time.now += 3_600_000
  const first = await send('zoom', captured, text)
  const again = await send('zoom', [...captured, ['idempotency-key', 'another']], text)
  expect([readVerdict(first), readDeliveryId(again)]).toEqual(['accepted', readDeliveryId(first)])
  expect(readVerdict(await send('zoom', other, text))).not.toBe('accepted')
  // the same words at another time are another event
  expect(readDeliveryId(await send('zoom', signZoom(text), text))).not.toBe(readDeliveryId(first))
})

test.each(['svix', 'clerk', 'resend'])('%s counts an id once, under either name of its headers', async (scheme) => {
  const first = await send(scheme, signWebhook('msg-renamed', 'svix'))
  const renamed = await send(scheme, [...signWebhook('msg-renamed'), ['idempotency-key', 'another']])
  expect([readVerdict(renamed), readDeliveryId(renamed)]).toEqual(['accepted', readDeliveryId(first)])
  expect(renamed.headers['idempotent-replay']).toBe('true')
})

test.each(['standard-webhooks', 'gitlab-signing', 'openai', 'replicate'])(
  'a delivery of %s cannot get another id under the header name of Svix',
  async (scheme) => {
    const captured = signWebhook('msg-twice')
    const first = await send(scheme, captured)
    const again = await send(scheme, [...captured, ['svix-id', 'another']])
    expect([readVerdict(first), readDeliveryId(again)]).toEqual(['accepted', readDeliveryId(first)])
  },
)

test('two signed ids are two deliveries, even with one Idempotency-Key', async () => {
  const same: Headers = [['idempotency-key', 'same']]
  const [one, two] = [
    await send('standard-webhooks', [...signWebhook('msg-one'), ...same]),
    await send('standard-webhooks', [...signWebhook('msg-two'), ...same]),
  ]
  expect([readVerdict(one), readVerdict(two)]).toEqual(['accepted', 'accepted'])
  expect(readDeliveryId(two)).not.toBe(readDeliveryId(one))
})

test('the token of Mailgun is accepted once, whatever the event says', async () => {
  const at = String(gateway.time.now / 1000)
  const signature = createHmac('sha256', secret).update(`${at}token-1`).digest('hex')
  const postEvent = (event: string, headers: Headers) =>
    send('mailgun', headers, JSON.stringify({ signature: { timestamp: at, token: 'token-1', signature }, event }))
  const first = await postEvent('delivered', [])
  const again = await postEvent('forged', [['idempotency-key', 'another']])
  expect([readVerdict(first), readDeliveryId(again)]).toEqual(['accepted', readDeliveryId(first)])
})

test('a compressed signed body has the same id as the uncompressed body', async () => {
  const packed = gzipSync(body)
  const captured: Headers = [
    ['content-encoding', 'gzip'],
    ['x-nylas-signature', createHmac('sha256', secret).update(packed).digest('hex')],
  ]
  const first = await send('nylas', captured, packed)
  const again = await send('nylas', [...captured, ['idempotency-key', 'another']], packed)
  expect([readVerdict(first), readDeliveryId(again)]).toEqual(['accepted', readDeliveryId(first)])
})

test('a replayed delivery is a duplicate even with the proof of another mapping', async () => {
  const text = '{"id":"evt_shared","update_id":7}'
  const captured = signStripe(text)
  const first = await send('shared', captured, text)
  const both = await send('shared', [...captured, ['x-telegram-bot-api-secret-token', 'bot-word-of-the-shop']], text)
  expect([readVerdict(first), readDeliveryId(both)]).toEqual(['accepted', readDeliveryId(first)])
})

test('the Idempotency-Key takes precedence over the header of the sender if the signature covers no id', async () => {
  const text = '{"zen":1}'
  const github: Headers = [
    ['x-hub-signature-256', `sha256=${createHmac('sha256', secret).update(text).digest('hex')}`],
    ['x-github-event', 'ping'],
    ['x-github-delivery', 'd-1'],
  ]
  const first = await send('github', github, text)
  expect(readDeliveryId(await send('github', github, text))).toBe(readDeliveryId(first))
  const keyed = await send('github', [...github, ['idempotency-key', 'k']], text)
  expect(readDeliveryId(keyed)).not.toBe(readDeliveryId(first))
})

test('a repetition of a request with the hook token is recognised by its Idempotency-Key', async () => {
  const postWake = async (id: string) =>
    readDeliveryId(await send('wake', [...bearer, ['idempotency-key', id]], '{"text":"x"}'))
  const one = await postWake('w-1')
  expect([(await postWake('w-1')) === one, (await postWake('w-2')) === one]).toEqual([true, false])
})

test('each repetition of Linear is let in for eight hours and counts once, whatever its unsigned id is; later ones, and times more than five minutes ahead, are refused', async () => {
  const begun = gateway.time.now
  const sendLinear = (webhookTimestamp: number, delivery: string) => {
    const text = JSON.stringify({ action: 'create', type: 'Issue', webhookTimestamp })
    const signature = createHmac('sha256', secret).update(text).digest('hex')
    return send(
      'linear',
      [
        ['linear-signature', signature],
        ['linear-delivery', delivery],
        ['linear-event', 'Issue'],
      ],
      text,
    )
  }
  const first = await readDeliveryId(await sendLinear(begun, 'a'))
  for (const [seconds, delivery] of [
    [61, 'a'],
    [3_665, 'b'],
    [25_280, 'a'],
  ] as const) {
    gateway.time.now = begun + seconds * 1_000
    const again = await sendLinear(begun, delivery)
    expect([readDeliveryId(again), again.headers['idempotent-replay']]).toEqual([first, 'true'])
  }
  gateway.time.now = begun + 28_801_000
  expect((await sendLinear(begun, 'a')).status).toBe(401)
  expect((await sendLinear(gateway.time.now + 301_000, 'c')).status).toBe(401)
  expect((await sendLinear(gateway.time.now + 299_000, 'c')).status).toBe(200)
  gateway.time.now = begun
})
