// Handshakes: each sender gets the answer that it expects, and no handshake creates a delivery or admits a request.
import { createHmac, sign } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { secretOf, signed } from '../unit/gateway/proofs/verifiers/stage.ts'
import { readVerdict } from './answers.ts'
import {
  buildExpectedAnswer,
  type HandshakeGateway,
  asJson,
  asText,
  discordKey,
  findRow,
  startHandshakeGateway,
  toShape,
} from './handshake-stage.ts'
import { startSignedGateway } from './proving.ts'
import { bearer, type Headers, json, type RequestParts } from './wire.ts'

const word = 'bc609b38-c81f-47fb-a275-1d9bd61a968b'
const buildHubQuery = (token: string) => `?hub.mode=subscribe&hub.verify_token=${token}&hub.challenge=1158201444`

let gateway: HandshakeGateway
beforeAll(async () => {
  gateway = await startHandshakeGateway()
})

describe('handshakes by GET or HEAD', () => {
  const crc = createHmac('sha256', 'consumer_secret_of_it').update('challenge_string').digest('base64')
  test.each<[string, RequestParts, { type: string; body: string }]>([
    ['Dropbox', { target: '/hooks/dropbox?challenge=abc123' }, { type: asText, body: 'abc123' }],
    ['Nylas', { target: `/hooks/nylas?challenge=${word}` }, { type: asText, body: word }],
    ['Meta', { target: `/hooks/meta${buildHubQuery('our-word')}` }, { type: asText, body: '1158201444' }],
    [
      'Strava',
      { target: `/hooks/strava${buildHubQuery('our-word')}` },
      { type: asJson, body: '{"hub.challenge":"1158201444"}' },
    ],
    [
      'X',
      { target: '/hooks/x-twitter?crc_token=challenge_string' },
      { type: asJson, body: JSON.stringify({ response_token: `sha256=${crc}` }) },
    ],
    [
      'Okta',
      { target: '/hooks/okta', headers: [['x-okta-verification-challenge', 'my verification challenge']] },
      { type: asJson, body: '{"verification":"my verification challenge"}' },
    ],
    ['Trello', { method: 'HEAD', target: '/hooks/trello' }, { type: asText, body: '' }],
    ['Intercom', { method: 'HEAD', target: '/hooks/intercom' }, { type: asText, body: '' }],
  ])('the handshake of %s is answered as its sender expects, and nothing is stored', async (_, parts, expected) => {
    expect(toShape(await gateway.sendHandshake({ method: 'GET', ...parts }))).toEqual(buildExpectedAnswer(expected))
  })

  test.each(['meta', 'strava'])('a wrong verify token in a handshake of %s counts as a failed proof', async (path) => {
    for (const token of ['NOPE', '', 'our-word2']) {
      const reply = await gateway.sendHandshake({ method: 'GET', target: `/hooks/${path}${buildHubQuery(token)}` })
      expect(readVerdict(reply)).toBe('unauthorized')
      expect(reply.body).not.toContain('1158201444')
    }
    expect(
      readVerdict(
        await gateway.sendHandshake({ method: 'GET', target: `/hooks/${path}?hub.mode=subscribe&hub.challenge=115` }),
      ),
    ).toBe('unauthorized')
  })

  const questions = `?challenge=abc123&crc_token=abc123&hub.mode=subscribe&hub.verify_token=our-word&hub.challenge=abc123`
  const oktaHeader: Headers = [['x-okta-verification-challenge', 'abc123']]
  test.each(['github', 'slack', 'plain', 'nobody', 'wake', 'agent', ''])(
    'a handshake on the hook "%s" is answered 405 with and without the hook token, and nothing is sent back',
    async (path) => {
      for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS']) {
        for (const headers of [oktaHeader, [...oktaHeader, ...bearer]]) {
          const reply = await gateway.sendHandshake({ method, target: `/hooks/${path}${questions}`, headers })
          expect([reply.status, reply.headers['allow'], reply.body.includes('abc123')]).toEqual([405, 'POST', false])
        }
      }
    },
  )

  test('a handshake is answered 404 outside the prefix of the hooks, and 400 with a token in the query', async () => {
    expect(readVerdict(await gateway.sendHandshake({ method: 'GET', target: `/dropbox${questions}` }))).toBe(
      'hook-unknown',
    )
    expect(
      readVerdict(await gateway.sendHandshake({ method: 'GET', target: '/hooks/dropbox?challenge=abc&token=x' })),
    ).toBe('token-in-query')
  })

  test('a request with the wrong method does not count as a handshake', async () => {
    for (const method of ['HEAD', 'PUT']) {
      expect((await gateway.sendHandshake({ method, target: '/hooks/dropbox?challenge=abc123' })).status).toBe(405)
    }
    expect((await gateway.sendHandshake({ method: 'GET', target: '/hooks/trello' })).status).toBe(405)
    expect(
      readVerdict(
        await gateway.sendHandshake({ target: '/hooks/dropbox?challenge=abc123', headers: json, body: '{}' }),
      ),
    ).toBe('unauthorized')
  })

  const attacks = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    'a\r\nset-cookie: x=1',
    'é',
    '{"a":1}',
  ]
  test.each([...attacks, 'a'.repeat(1025)].map((attack) => [attack.slice(0, 40), attack]))(
    'a challenge that a browser could run or that is too long is not sent back: %s',
    async (_, attack) => {
      const encoded = encodeURIComponent(attack)
      for (const target of [
        `/hooks/dropbox?challenge=${encoded}`,
        `/hooks/nylas?challenge=${encoded}`,
        `/hooks/x-twitter?crc_token=${encoded}`,
        `/hooks/meta${buildHubQuery('our-word').replace('1158201444', encoded)}`,
        `/hooks/strava${buildHubQuery('our-word').replace('1158201444', encoded)}`,
        `/hooks/strava${buildHubQuery(encoded)}`,
      ]) {
        const reply = await gateway.sendHandshake({ method: 'GET', target })
        expect(['unauthorized', 'method-not-allowed']).toContain(readVerdict(reply))
        expect(reply.body).not.toMatch(/script|onerror|set-cookie|aaaa/)
        expect(reply.headers['set-cookie']).toBeUndefined()
        expect(reply.headers['x-content-type-options']).toBe('nosniff')
      }
    },
  )

  test('the longest challenge that a sender may use is sent back', async () => {
    const longest = 'a'.repeat(1024)
    const reply = await gateway.sendHandshake({ method: 'GET', target: `/hooks/dropbox?challenge=${longest}` })
    expect(toShape(reply)).toEqual(buildExpectedAnswer({ body: longest }))
  })
})

describe('signed handshakes by POST', () => {
  const signAs = (id: string, body: string, headers: Headers = [], which: 'live' | 'other' = 'live'): RequestParts => {
    const request = signed(findRow(id), { at: gateway.time.now, body, which })
    return { target: `/hooks/${id}`, headers: [...Object.entries(request.headers), ...headers], body }
  }
  const signDiscord = (body: string, signedBody = body): RequestParts => {
    const at = String(gateway.time.now / 1000)
    const signature = sign(null, Buffer.from(at + signedBody), discordKey).toString('hex')
    const headers: Headers = [
      ['x-signature-timestamp', at],
      ['x-signature-ed25519', signature],
    ]
    return { target: '/hooks/discord', headers: [...json, ...headers], body }
  }
  const zoomWord = 'qgg8vlvZRS6UYooatFL8Aw'
  const zoomBody = `{"event":"endpoint.url_validation","payload":{"plainToken":"${zoomWord}"}}`
  const zoomHash = createHmac('sha256', secretOf(findRow('zoom')))
    .update(zoomWord)
    .digest('hex')
  const twitchType: Headers = [['twitch-eventsub-message-type', 'webhook_callback_verification']]
  const slackBody = '{"token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595","type":"url_verification"}'
  const toGoogle = (token: string): RequestParts => ({
    target: '/hooks/google-channel',
    headers: [
      ['x-goog-channel-token', token],
      ['x-goog-resource-state', 'sync'],
    ],
  })

  test.each<[string, () => RequestParts, () => RequestParts, { status?: number; type?: string; body: string }]>([
    [
      'Slack',
      () => signAs('slack', slackBody),
      () => signAs('slack', slackBody, [], 'other'),
      { body: '3eZbrw1aBm2rZgRNFdxV2595' },
    ],
    [
      'Slack’s check of the certificate',
      () => signAs('slack', 'ssl_check=1&token=x'),
      () => signAs('slack', 'ssl_check=1&token=x', [], 'other'),
      { body: '' },
    ],
    [
      'MCP Events',
      () => signAs('mcp-events', '{"type":"verification","challenge":"c-1"}'),
      () => signAs('mcp-events', '{"type":"verification","challenge":"c-1"}', [], 'other'),
      { status: 200, type: asJson, body: '{"challenge":"c-1"}' },
    ],
    [
      'Zoom',
      () => signAs('zoom', zoomBody),
      () => signAs('zoom', zoomBody, [], 'other'),
      { status: 200, type: asJson, body: `{"plainToken":"${zoomWord}","encryptedToken":"${zoomHash}"}` },
    ],
    [
      'Twitch',
      () => signAs('twitch', '{"challenge":"pogchamp-kappa-360noscope-vohiyo"}', twitchType),
      () => signAs('twitch', '{"challenge":"pogchamp-kappa-360noscope-vohiyo"}', twitchType, 'other'),
      { body: 'pogchamp-kappa-360noscope-vohiyo' },
    ],
    [
      'Front',
      () => signAs('front', '{"type":"sync"}', [['x-front-challenge', 'c1']]),
      () => signAs('front', '{"type":"sync"}', [['x-front-challenge', 'c1']], 'other'),
      { body: 'c1' },
    ],
    [
      'Intercom',
      () => signAs('intercom', '{"topic":"ping"}'),
      () => signAs('intercom', '{"topic":"ping"}', [], 'other'),
      { body: '' },
    ],
    [
      'Xero',
      () => signAs('xero', '{"events":[],"entropy":"x"}'),
      () => signAs('xero', '{"events":[],"entropy":"x"}', [], 'other'),
      { body: '' },
    ],
    [
      'Discord',
      () => signDiscord('{"type":1}'),
      () => signDiscord('{"type":1}', '{"type":1} '),
      { status: 200, type: asJson, body: '{"type":1}' },
    ],
    [
      'Discord’s events',
      () => signDiscord('{"type":0}'),
      () => signDiscord('{"type":0}', ''),
      { status: 204, body: '' },
    ],
    ['Google', () => toGoogle('chan_Token_of_the_room'), () => toGoogle('chan_Tokem_of_the_room'), { body: '' }],
  ])(
    'the handshake of %s is answered as its sender expects, and refused with an invalid proof',
    async (_, good, bad, expected) => {
      expect(toShape(await gateway.sendHandshake(good()))).toEqual(buildExpectedAnswer(expected))
      expect(readVerdict(await gateway.sendHandshake(bad()))).toBe('unauthorized')
    },
  )

  test('a signed request with a challenge that a browser could run is a delivery and not a handshake', async () => {
    const reply = await gateway.ask(
      signAs('slack', '{"type":"url_verification","challenge":"<script>alert(1)</script>"}'),
    )
    expect([readVerdict(reply), reply.body.includes('script')]).toEqual(['accepted', false])
  })

  test('a subscription of SNS with a certificate on another host is refused, and nothing is fetched', async () => {
    const message = {
      Type: 'SubscriptionConfirmation',
      MessageId: '1',
      Token: 't',
      Message: 'm',
      TopicArn: 'arn:aws:sns:us-west-2:1:t',
      Timestamp: new Date(gateway.time.now).toISOString(),
      SignatureVersion: '2',
      Signature: 'AAAA',
      SigningCertURL: 'https://attacker.example/a.pem',
      SubscribeURL: 'https://attacker.example/',
    }
    const headers: Headers = [
      ['content-type', 'text/plain; charset=UTF-8'],
      ['x-amz-sns-message-type', 'SubscriptionConfirmation'],
    ]
    const fetched: string[] = []
    const transport = async ({ href }: URL) => {
      fetched.push(href)
      return { status: 200, body: '' }
    }
    const verify = { scheme: 'aws-sns', topicArn: message.TopicArn }
    const own = await startSignedGateway([{ match: { path: 'aws-sns' }, verify }], gateway.time.now, { transport })
    const subscribe = (certificate: string) =>
      own.ask({ target: '/hooks/aws-sns', headers, body: JSON.stringify({ ...message, SigningCertURL: certificate }) })
    expect(readVerdict(await subscribe(message.SigningCertURL))).toBe('unauthorized')
    expect(fetched).toEqual([])
    const certificate = 'https://sns.us-west-2.amazonaws.com/SimpleNotificationService-1.pem'
    await subscribe(certificate)
    expect(fetched).toEqual([certificate])
  })
})
