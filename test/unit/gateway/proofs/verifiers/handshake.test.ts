import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { HandshakeContext, VerifyRequest } from '../../../../../src/core/model/verifier.ts'
import type { VerifyInput } from '../../../../../src/core/model/verify.ts'
import { requestOf, verifierOf } from './stage.ts'

const before: HandshakeContext = { verified: false, armed: false }
const after: HandshakeContext = { verified: true, armed: false }
const armed: HandshakeContext = { verified: false, armed: true }

function ask(settings: VerifyInput, request: VerifyRequest, context = before) {
  return verifierOf(settings).handshake(request, context)
}

function get(query: string, headers: Record<string, string> = {}): VerifyRequest {
  return requestOf(headers, '', { method: 'GET', url: `/hooks/x${query}` })
}

const text = { 'content-type': 'text/plain', 'x-content-type-options': 'nosniff' }
const json = { 'content-type': 'application/json' }
const graphWord = 'Validation: Testing client application reachability for subscription Request-Id: 25460e7d'

describe('handshakes by GET or HEAD', () => {
  const key = { secret: 's' }

  test.each<[string, VerifyInput, VerifyRequest, { status: number; headers: object; body: string }]>([
    [
      'Dropbox',
      { scheme: 'dropbox', ...key },
      get('?challenge=abc123'),
      { status: 200, headers: text, body: 'abc123' },
    ],
    [
      'Nylas',
      { scheme: 'nylas', ...key },
      get('?challenge=bc609b38-c8'),
      { status: 200, headers: text, body: 'bc609b38-c8' },
    ],
    [
      'Meta',
      { scheme: 'meta', ...key, verifyToken: 'V' },
      get('?hub.mode=subscribe&hub.verify_token=V&hub.challenge=1158201444'),
      { status: 200, headers: text, body: '1158201444' },
    ],
    [
      'Strava',
      { scheme: 'strava', secret: '1', verifyToken: 'V' },
      get('?hub.mode=subscribe&hub.verify_token=V&hub.challenge=15f7d1a9'),
      { status: 200, headers: json, body: '{"hub.challenge":"15f7d1a9"}' },
    ],
    [
      'X',
      { scheme: 'x-twitter', ...key },
      get('?crc_token=challenge_string'),
      {
        status: 200,
        headers: json,
        body: JSON.stringify({
          response_token: `sha256=${createHmac('sha256', 's').update('challenge_string').digest('base64')}`,
        }),
      },
    ],
    [
      'Okta',
      { scheme: 'okta', ...key },
      get('', { 'x-okta-verification-challenge': 'my verification challenge' }),
      { status: 200, headers: json, body: '{"verification":"my verification challenge"}' },
    ],
    [
      'Trello',
      { scheme: 'trello', ...key, publicUrl: 'https://x.example' },
      requestOf({}, '', { method: 'HEAD' }),
      { status: 200, headers: {}, body: '' },
    ],
  ])('the handshake of %s gets the answer that its sender expects', async (_, settings, request, answer) => {
    const verifier = verifierOf(settings)
    expect(verifier.handshakeMethods).toContain(request.method)
    expect(verifier.isHandshakeHead(request)).toBe(true)
    expect(await verifier.handshake(request, before)).toMatchObject(answer)
  })

  test('a wrong or missing verify token is refused, and each request if none is configured; no challenge is sent back', async () => {
    const asks = get('?hub.mode=subscribe&hub.verify_token=NOPE&hub.challenge=1')
    const bare = get('?hub.mode=subscribe&hub.challenge=1')
    for (const scheme of ['meta', 'strava']) {
      const settings = { scheme, secret: '1', verifyToken: 'V' }
      expect(await ask(settings, asks)).toEqual({ status: 401, headers: {}, body: '' })
      expect(await ask(settings, bare)).toMatchObject({ status: 401, body: '' })
      expect(await ask({ scheme, secret: '1' }, asks)).toMatchObject({ status: 401, body: '' })
      // without hub.mode, a request is no handshake
      expect(await ask(settings, get('?hub.verify_token=V&hub.challenge=1'))).toBeUndefined()
    }
  })

  test('a challenge that a browser could run or that is too long is not sent back', async () => {
    for (const word of ['<script>alert(1)</script>', '"><b', 'a'.repeat(1025), 'a\r\nset-cookie: x', '']) {
      const query = `?challenge=${encodeURIComponent(word)}`
      expect(await ask({ scheme: 'dropbox', secret: 's' }, get(query))).toBeUndefined()
    }
    expect(
      await ask({ scheme: 'okta', secret: 's' }, get('', { 'x-okta-verification-challenge': '<b>' })),
    ).toBeUndefined()
    expect(await ask({ scheme: 'x-twitter', secret: 's' }, get('?crc_token=%7B%22a%22%3A1%7D'))).toBeUndefined()
  })

  test('no answer to an unknown client is a valid signature of a delivery of X', async () => {
    const settings = { scheme: 'x-twitter', secret: 's' }
    const verifier = verifierOf(settings)
    for (const word of ['forged', '1234', 'null', 'true', 'a'.repeat(128)]) {
      const answer = await ask(settings, get(`?crc_token=${word}`))
      const { response_token: signature } = JSON.parse(answer?.body ?? '')
      const forged = await verifier.verify(requestOf({ 'x-twitter-webhooks-signature': signature }, word))
      expect(forged).toEqual({ ok: false, fault: 'sender', reason: 'The body is not a JSON object.' })
    }
    const body = '{"for_user_id":"1"}'
    const signature = `sha256=${createHmac('sha256', 's').update(body).digest('base64')}`
    expect(await verifier.verify(requestOf({ 'x-twitter-webhooks-signature': signature }, body))).toEqual({ ok: true })
  })

  test('a scheme without handshakes answers no handshake', async () => {
    const verifier = verifierOf({ scheme: 'github', secret: 's' })
    expect(verifier.handshakeMethods).toEqual([])
    expect(verifier.isHandshakeHead(get('?challenge=abc'))).toBe(false)
    expect(await verifier.handshake(get('?challenge=abc'), before)).toBeUndefined()
  })
})

describe('signed handshakes by POST', () => {
  const zoom = createHmac('sha256', 's').update('qgg8vlvZRS6UYooatFL8Aw').digest('hex')
  const discord = { scheme: 'discord', publicKey: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a' }

  const cases: [string, VerifyInput, VerifyRequest, { status: number; headers: object; body: string }][] = [
    [
      'Slack',
      { scheme: 'slack', secret: 's' },
      requestOf({}, '{"token":"x","challenge":"3eZbrw1a","type":"url_verification"}'),
      { status: 200, headers: text, body: '3eZbrw1a' },
    ],
    [
      'Zoom',
      { scheme: 'zoom', secret: 's' },
      requestOf({}, '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}'),
      { status: 200, headers: json, body: `{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"${zoom}"}` },
    ],
    [
      'Twitch',
      { scheme: 'twitch', secret: 's' },
      requestOf(
        { 'twitch-eventsub-message-type': 'webhook_callback_verification' },
        '{"challenge":"pogchamp-kappa-360"}',
      ),
      { status: 200, headers: text, body: 'pogchamp-kappa-360' },
    ],
    ['Discord', discord, requestOf({}, '{"type":1}'), { status: 200, headers: json, body: '{"type":1}' }],
    ['Discord’s events', discord, requestOf({}, '{"type":0}'), { status: 204, headers: {}, body: '' }],
    [
      'Xero',
      { scheme: 'xero', secret: 's' },
      requestOf({}, '{"events":[],"entropy":"x"}'),
      { status: 200, headers: {}, body: '' },
    ],
    [
      'Asana’s heartbeat',
      { scheme: 'asana', secret: 's' },
      requestOf({}, '{"events":[]}'),
      { status: 200, headers: {}, body: '' },
    ],
    [
      'Intercom',
      { scheme: 'intercom', secret: 's' },
      requestOf({}, '{"topic":"ping"}'),
      { status: 200, headers: {}, body: '' },
    ],
    [
      'Google',
      { scheme: 'google-channel', secret: 's' },
      requestOf({ 'x-goog-resource-state': 'sync' }),
      { status: 200, headers: {}, body: '' },
    ],
    [
      'Front',
      { scheme: 'front', secret: 's' },
      requestOf({ 'x-front-challenge': 'c1' }),
      { status: 200, headers: text, body: 'c1' },
    ],
  ]

  test.each(cases)(
    'the handshake of %s gets its answer only after a valid proof',
    async (_, settings, request, answer) => {
      expect(await ask(settings, request, after)).toMatchObject(answer)
      expect(await ask(settings, request, before)).toBeUndefined()
    },
  )

  test.each([
    ['slack', '{"type":"event_callback","challenge":"x"}'],
    ['slack', '{"type":"url_verification","challenge":"<script>"}'],
    ['zoom', '{"event":"meeting.started","payload":{"plainToken":"x"}}'],
    ['twitch', '{"challenge":"x"}'],
    ['xero', '{"events":[{}]}'],
    ['intercom', '{"topic":"conversation.user.created"}'],
    ['google-channel', ''],
  ])('a request of %s with %s is a delivery and not a handshake', async (scheme, body) => {
    expect(await ask({ scheme, secret: 's' }, requestOf({}, body), after)).toBeUndefined()
  })
})

describe('unsigned handshakes by POST', () => {
  test('monday gets its challenge back as JSON, if the body has no other field', async () => {
    const settings = { scheme: 'monday', secret: 's' }
    const headers = { 'content-type': 'application/json' }
    expect(await ask(settings, requestOf(headers, '{"challenge":"tok-123"}'))).toMatchObject({
      status: 200,
      body: '{"challenge":"tok-123"}',
    })
    expect(await ask(settings, requestOf(headers, '{"challenge":"tok-123","event":{}}'))).toBeUndefined()
    expect(await ask(settings, requestOf(headers, '{"challenge":"<b>"}'))).toBeUndefined()
    expect(await ask(settings, requestOf(headers, '{"challenge":{"a":"<b>"}}'))).toBeUndefined()
  })

  test('Microsoft Graph gets its validation token back, decoded and as text', async () => {
    const url = `/hooks/x?validationToken=${encodeURIComponent(graphWord)}`
    const answer = await ask({ scheme: 'microsoft-graph', secret: 's' }, requestOf({}, '', { url }))
    expect(answer).toMatchObject({ status: 200, headers: text, body: graphWord })
    expect(verifierOf({ scheme: 'microsoft-graph', secret: 's' }).isHandshakeHead(requestOf({}))).toBe(false)
  })

  test('WooCommerce and Bitbucket may send a ping without a signature, and no other request', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    expect(await ask({ scheme: 'woocommerce', secret: 's' }, requestOf(form, 'webhook_id=12'))).toMatchObject({
      status: 200,
    })
    expect(await ask({ scheme: 'woocommerce', secret: 's' }, requestOf(form, 'webhook_id=12&x=1'))).toBeUndefined()
    const ping = { 'x-event-key': 'diagnostics:ping' }
    expect(await ask({ scheme: 'bitbucket-server', secret: 's' }, requestOf(ping, '{"test":true}'))).toMatchObject({
      status: 200,
    })
    const push = { 'x-event-key': 'repo:refs_changed' }
    expect(await ask({ scheme: 'bitbucket-server', secret: 's' }, requestOf(push, '{"test":true}'))).toBeUndefined()
  })

  test('the secret of Asana is accepted and sent back only while the operator allows a new secret', async () => {
    const secret = 'b537207f20cbfa02357cf448134da559'
    const request = requestOf({ 'x-hook-secret': secret }, '{}')
    expect(await ask({ scheme: 'asana' }, request, armed)).toMatchObject({
      status: 200,
      headers: { 'x-hook-secret': secret },
      handedSecret: secret,
    })
    expect(await ask({ scheme: 'asana' }, request, before)).toBeUndefined()
    expect(await ask({ scheme: 'asana' }, requestOf({ 'x-hook-secret': 'short' }, '{}'), armed)).toBeUndefined()
    expect(verifierOf({ scheme: 'asana' }).secretHeaders).toContain('x-hook-secret')
  })

  test('the secret of Notion is accepted only while the operator allows a new secret, and it is not sent back', async () => {
    const request = requestOf({}, '{"verification_token":"secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"}')
    expect(await ask({ scheme: 'notion' }, request, armed)).toMatchObject({
      status: 200,
      body: '',
      handedSecret: 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl',
    })
    expect(await ask({ scheme: 'notion' }, request, before)).toBeUndefined()
  })

  test('a secret from a handshake verifies later requests', async () => {
    let handed: readonly string[] = []
    const verifier = verifierOf({ scheme: 'asana' }, { handed: () => handed })
    const signature = createHmac('sha256', 'handed-over').update('{}').digest('hex')
    const request = requestOf({ 'x-hook-signature': signature }, '{}')
    expect(await verifier.verify(request)).toMatchObject({ ok: false })
    handed = ['handed-over']
    expect(await verifier.verify(request)).toEqual({ ok: true })
  })
})

describe('subscriptions of SNS', () => {
  const settings = { scheme: 'aws-sns', topicArn: 'arn:aws:sns:us-east-1:1:t' }
  const buildConfirmation = (url: string) =>
    requestOf({}, JSON.stringify({ Type: 'SubscriptionConfirmation', SubscribeURL: url }))
  const url = 'https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=t'

  test('a subscription is confirmed by a fetch of its URL, and a failed fetch asks SNS to repeat the request', async () => {
    const asked: string[] = []
    let works = true
    const verifier = verifierOf(settings, {
      fetch: async (address, rule) => {
        asked.push(address)
        expect(rule.maxAgeMs).toBe(0)
        return works ? { ok: true, body: '' } : { ok: false, fault: 'gateway', reason: 'no' }
      },
    })
    expect(await verifier.handshake(buildConfirmation(url), after)).toMatchObject({ status: 200 })
    works = false
    expect(await verifier.handshake(buildConfirmation(url), after)).toMatchObject({ status: 503 })
    expect(await verifier.handshake(buildConfirmation(url), before)).toBeUndefined()
    expect(asked).toEqual([url, url])
  })
})
