import { toJsonBody } from '../../src/model/parse-body.ts'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../src/base/json.ts'
import { senders } from '../../src/pipeline/senders.ts'
import { detectSource, senderNamed, toCorrespondent, toDeliveryId, toEvent } from '../../src/pipeline/sources.ts'

type Headers = Record<string, string>

function sourceOf(headers: Headers): string | undefined {
  return detectSource(headers)?.source
}

function read(headers: Headers, payload: JsonValue = {}, name?: string) {
  const sender = name === undefined ? detectSource(headers) : senderNamed(name)
  if (sender === undefined) throw new Error('no sender')
  return {
    source: sender.source,
    event: toEvent(sender, { headers, body: toJsonBody(payload) }),
    deliveryId: toDeliveryId(sender, { headers, body: toJsonBody(payload) }),
  }
}

describe('the sender that headers give away', () => {
  test.each<[string, Headers]>([
    ['github', { 'x-github-event': 'push', 'x-github-delivery': 'g' }],
    ['gitlab', { 'x-gitlab-event': 'Push Hook', 'webhook-id': 'w', 'webhook-signature': 'v1,s' }],
    ['bitbucket', { 'x-event-key': 'repo:push', 'x-hook-uuid': 'h', 'x-request-uuid': 'r' }],
    ['bitbucket-server', { 'x-event-key': 'pr:opened', 'x-request-id': 'r' }],
    ['stripe', { 'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)' }],
    ['alertmanager', { 'user-agent': 'Alertmanager/0.27.0' }],
    ['lemonsqueezy', { 'x-signature': 's', 'x-event-name': 'order_created' }],
    ['discord', { 'x-signature-ed25519': 's', 'x-signature-timestamp': '1' }],
    ['svix', { 'svix-id': 'm', 'svix-signature': 'v1,s' }],
    ['standard-webhooks', { 'webhook-id': 'm', 'webhook-signature': 'v1,s' }],
    ['cloudevents', { 'ce-specversion': '1.0', 'ce-type': 't' }],
    ['cloudevents', { 'content-type': 'application/cloudevents+json; charset=utf-8' }],
  ])('is %s', (source, headers) => {
    expect(sourceOf(headers)).toBe(source)
  })

  test.each([
    ['forgejo', ['forgejo', 'gitea', 'gogs', 'github']],
    ['gitea', ['gitea', 'gogs', 'github']],
    ['gogs', ['gogs', 'github']],
    ['github', ['github']],
  ])('is %s where it also speaks the dialects %j, in any order', (source, dialects) => {
    const headers = dialects.map((dialect): [string, string] => [`x-${dialect}-event`, 'push'])
    expect(sourceOf(Object.fromEntries(headers))).toBe(source)
    expect(sourceOf(Object.fromEntries(headers.toReversed()))).toBe(source)
  })

  test.each<Headers>([
    {},
    { 'content-type': 'application/json', 'user-agent': 'node', accept: '*/*' },
    { 'user-agent': 'curl/8 (like GitHub-Hookshot/1)' },
    { 'user-agent': 'Paddleboat/1' },
    { 'x-signature': 's' },
    { 'x-hub-signature-256': 'sha256=00' },
    { 'svix-id': 'm' },
    { constructor: 'x', toString: 'x' },
  ])('is nobody for %j', (headers) => {
    expect(detectSource(headers)).toBeUndefined()
  })

  test('is found in headers without a prototype', () => {
    expect(sourceOf(Object.assign(Object.create(null), { 'x-slack-signature': 'v0=00' }))).toBe('slack')
  })

  test('every row is the one that its own marks lead to, and no name has two rows', () => {
    expect(new Set(senders.map(({ source }) => source)).size).toBe(senders.length)
    for (const { source, marks = [] } of senders) {
      expect(senderNamed(source)?.source).toBe(source)
      for (const { header, beside } of marks.filter(({ like }) => like === undefined)) {
        expect(header).toBe(header.toLowerCase())
        expect(sourceOf({ [header]: '1', ...(beside && { [beside]: '1' }) })).toBe(source)
      }
    }
  })
})

describe('a source known by its name', () => {
  test('has its row, and a name that objects inherit has none', () => {
    expect(senderNamed('gmail')?.source).toBe('gmail')
    expect(senderNamed('constructor')).toBeUndefined()
    expect(senderNamed('__proto__')).toBeUndefined()
    expect(senderNamed('')).toBeUndefined()
  })
})

describe('event and delivery id', () => {
  test.each<[Headers, JsonValue, { source: string; event: string | undefined; deliveryId: string | undefined }]>([
    [
      { 'x-github-event': 'pull_request', 'x-github-delivery': '72d3162e' },
      { action: 'opened', id: 9 },
      { source: 'github', event: 'pull_request', deliveryId: '72d3162e' },
    ],
    [
      { 'x-gitlab-event': 'Push Hook', 'idempotency-key': 'k1', 'x-gitlab-event-uuid': 'shared' },
      { object_kind: 'push' },
      { source: 'gitlab', event: 'Push Hook', deliveryId: 'k1' },
    ],
    [
      { 'x-gitlab-event': 'Push Hook', 'x-gitlab-event-uuid': 'shared by recursive hooks' },
      {},
      { source: 'gitlab', event: 'Push Hook', deliveryId: undefined },
    ],
    [
      { 'x-slack-signature': 's' },
      { type: 'event_callback', event_id: 'Ev1', event: { type: 'app_mention' } },
      { source: 'slack', event: 'app_mention', deliveryId: 'Ev1' },
    ],
    [
      { 'x-slack-signature': 's' },
      { type: 'url_verification', challenge: 'c' },
      { source: 'slack', event: 'url_verification', deliveryId: undefined },
    ],
    [
      { 'user-agent': 'Alertmanager/0.27.0' },
      { status: 'firing', groupKey: '{}:{alertname="A"}' },
      { source: 'alertmanager', event: 'firing', deliveryId: undefined },
    ],
    [
      { 'x-telegram-bot-api-secret-token': 't' },
      { update_id: 10_000, message: { text: 'hi' } },
      { source: 'telegram', event: 'message', deliveryId: '10000' },
    ],
    [
      { 'calendly-webhook-signature': 't=1,v1=s' },
      { event: 'invitee.created', payload: { uri: 'https://api.calendly.com/i/1' } },
      { source: 'calendly', event: 'invitee.created', deliveryId: 'invitee.created https://api.calendly.com/i/1' },
    ],
    [
      { 'calendly-webhook-signature': 't=1,v1=s' },
      { event: 'invitee.created', payload: {} },
      { source: 'calendly', event: 'invitee.created', deliveryId: undefined },
    ],
    [
      { 'elevenlabs-signature': 't=1,v0=s' },
      { type: 'post_call_audio', data: { conversation_id: 'c1' } },
      { source: 'elevenlabs', event: 'post_call_audio', deliveryId: 'post_call_audio c1' },
    ],
    [
      { 'plaid-verification': 'jwt' },
      { webhook_type: 'ITEM', webhook_code: 'ERROR' },
      { source: 'plaid', event: 'ITEM.ERROR', deliveryId: undefined },
    ],
    [
      { 'ce-specversion': '1.0', 'ce-type': 'order.made', 'ce-source': '/shop', 'ce-id': '7' },
      { id: 'of something else' },
      { source: 'cloudevents', event: 'order.made', deliveryId: '/shop 7' },
    ],
    [
      { 'x-twilio-email-event-webhook-signature': 's' },
      [{ event: 'open', sg_event_id: 'e1' }],
      { source: 'sendgrid', event: undefined, deliveryId: undefined },
    ],
  ])('of %j', (headers, payload, expected) => {
    expect(read(headers, payload)).toEqual(expected)
  })

  test('a header is believed before the body', () => {
    expect(read({ 'linear-event': 'Issue', 'linear-delivery': 'd' }, { type: 'Comment' }).event).toBe('Issue')
    expect(read({ 'linear-delivery': 'd' }, { type: 'Comment' }).event).toBe('Comment')
  })

  test.each<[string, JsonValue]>([
    ['an array', ['evt_1']],
    ['an object', { id: 'evt_1' }],
    ['null', null],
    ['a boolean', true],
    ['a blank string', '  '],
    ['a string over 256 characters', 'x'.repeat(257)],
  ])('%s is no delivery id', (_, id) => {
    expect(read({ 'stripe-signature': 's' }, { id }).deliveryId).toBeUndefined()
  })

  test('a string of 256 characters is one, and a number is its digits', () => {
    expect(read({ 'stripe-signature': 's' }, { id: 'x'.repeat(256) }).deliveryId).toHaveLength(256)
    expect(read({ 'stripe-signature': 's' }, { id: 12 }).deliveryId).toBe('12')
  })

  test('an empty header gives way to the next fact', () => {
    expect(read({ 'x-amz-sns-message-type': '' }, { Type: 'Notification', MessageId: 'm' })).toEqual({
      source: 'aws-sns',
      event: 'Notification',
      deliveryId: 'm',
    })
  })
})

describe('who wrote, and about what', () => {
  const gmail = senderNamed('gmail')
  if (gmail === undefined) throw new Error('no gmail')

  test('are read from the first mail', () => {
    const payload = { source: 'gmail', messages: [{ from: 'Ada <ada@example.com>', subject: 'Lunch' }] }
    expect(toCorrespondent(gmail, { body: toJsonBody(payload) })).toEqual({
      from: 'Ada <ada@example.com>',
      subject: 'Lunch',
    })
  })

  test('are left out where they are missing, blank or no text', () => {
    expect(toCorrespondent(gmail, { body: toJsonBody({ messages: [{ from: ' ', subject: 5 }] }) })).toEqual({})
    expect(toCorrespondent(gmail, { body: toJsonBody(null) })).toEqual({})
  })

  test('are not guessed for a sender whose payload does not say', () => {
    const github = senderNamed('github')
    expect(github && toCorrespondent(github, { body: toJsonBody({ messages: [{ from: 'Ada' }] }) })).toEqual({})
  })
})
