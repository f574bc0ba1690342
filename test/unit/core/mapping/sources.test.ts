import { toJsonBody } from '../../../../src/core/model/body.ts'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { buildDelivery } from '../../../../src/core/mapping/delivery.ts'
import { readDedupe } from '../../../../src/gateway/deliveries/duplicates.ts'
import { readAuthorAndSubject, readDeliveryId, readEvent } from '../../../../src/core/mapping/sources.ts'

import { decideOn, toGeneration, toTestDelivery } from './decide.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { rows: senders, find: findSender, recognise: recogniseSender } = builtInSenders

type Headers = Record<string, string>

function findSource(headers: Headers): string | undefined {
  return recogniseSender({ headers })?.facts.name
}

function read(headers: Headers, payload: JsonValue = {}, name?: string) {
  const sender = recogniseSender({ headers, namedSource: name })
  if (sender === undefined) throw new Error('no sender')
  return {
    source: sender.facts.name,
    event: readEvent(sender, { headers, body: toJsonBody(payload) }),
    deliveryId: readDeliveryId(sender, { headers, body: toJsonBody(payload) }),
  }
}

describe('recognition of senders', () => {
  test.each([
    ['forgejo', ['forgejo', 'gitea', 'gogs', 'github']],
    ['gitea', ['gitea', 'gogs', 'github']],
    ['gogs', ['gogs', 'github']],
    ['github', ['github']],
  ])('the headers show %s if they have the marks of %j, in any order', (source, dialects) => {
    const headers = dialects.map((dialect): [string, string] => [`x-${dialect}-event`, 'push'])
    expect(findSource(Object.fromEntries(headers))).toBe(source)
    expect(findSource(Object.fromEntries(headers.toReversed()))).toBe(source)
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
  ])('the headers %j show no sender', (headers) => {
    expect(recogniseSender({ headers })).toBeUndefined()
  })

  test.each(['x-hookdeck-signature', 'x-convoy-signature'])(
    'the sender of a request that %s passes on is its original sender',
    (relay) => {
      expect(findSource({ [relay]: '00', 'x-github-event': 'push' })).toBe('github')
      expect(findSource({ 'webhook-id': 'm', 'webhook-signature': 'v1,s', [relay]: '00' })).toBe('standard-webhooks')
      expect(findSource({ [relay]: '00' })).toBe(relay.split('-')[1])
    },
  )

  test('a sender is recognised in headers that have no prototype', () => {
    expect(findSource(Object.assign(Object.create(null), { 'x-slack-signature': 'v0=00' }))).toBe('slack')
  })

  test('a header that shows a sender with any value identifies the row of this sender, and no name has two rows', () => {
    expect(new Set(senders.map(({ name }) => name)).size).toBe(senders.length)
    for (const { name: source, marks = [] } of senders) {
      expect(findSender(source)?.name).toBe(source)
      for (const { header, beside } of marks.filter(({ like }) => like === undefined)) {
        expect(header).toBe(header.toLowerCase())
        expect(findSource({ [header]: '1', ...(beside && { [beside]: '1' }) })).toBe(source)
      }
    }
  })
})

describe('the order of evidence for the sender', () => {
  const headers = { 'x-github-event': 'push', 'x-github-delivery': 'd-1' }

  test('a proof of the sender takes precedence over the headers, and the headers over the payload', () => {
    const inputs = [{ verifiedBy: 'stripe' }, { verifiedBy: 'own-scheme' }, { namedSource: 'gmail' }]
    const found = inputs.map((input) => recogniseSender({ ...input, headers }))
    expect(found.map((sender) => [sender?.facts.name, sender?.shownBy])).toEqual([
      ['stripe', 'proof'],
      ['github', 'headers'],
      ['github', 'headers'],
    ])
  })

  test('a sender that only the payload names gives the delivery neither an event nor an id', () => {
    const body = toJsonBody({ id: 'evt_1', type: 'invoice.paid' })
    const named = recogniseSender({ headers: {}, namedSource: 'stripe' })
    const proved = recogniseSender({ headers: {}, verifiedBy: 'stripe' })
    if (named === undefined || proved === undefined) throw new Error('no sender')
    expect([
      named.shownBy,
      readEvent(named, { headers: {}, body }),
      readDeliveryId(named, { headers: {}, body }),
    ]).toEqual(['payload', undefined, undefined])
    expect([readEvent(proved, { headers: {}, body }), readDeliveryId(proved, { headers: {}, body })]).toEqual([
      'invoice.paid',
      'evt_1',
    ])
  })

  test('the headers of a delivery are searched for marks once, when it is built', async () => {
    let searches = 0
    const counted = new Proxy<Headers>(
      { ...headers, 'content-type': 'application/json' },
      {
        ownKeys(all) {
          searches += 1
          return Reflect.ownKeys(all)
        },
      },
    )
    const generation = toGeneration([{ match: { path: 'in', source: 'github', event: 'push' } }])
    const hook = generation.findHook('in')
    const head = { ...toTestDelivery('in', {}), headers: counted }
    const delivery = buildDelivery(head, Buffer.from('{}'), { hook, id: 'd', receivedAt: 0 })
    expect(readDedupe(delivery)?.key.key).toBe('github:d-1')
    expect(await decideOn(generation, delivery)).toMatchObject({ actions: [{ origin: { source: 'github' } }] })
    expect(searches).toBe(1)
  })
})

describe('rows of senders by name', () => {
  test('a known name of a sender has a row, and the name of an inherited property has no row', () => {
    expect(findSender('gmail')?.name).toBe('gmail')
    expect(findSender('constructor')).toBeUndefined()
    expect(findSender('__proto__')).toBeUndefined()
    expect(findSender('')).toBeUndefined()
  })
})

describe('events and delivery ids', () => {
  test('an event in a header takes precedence over one in the body, which is read if the header is missing', () => {
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
  ])('%s is not a delivery id', (_, id) => {
    expect(read({ 'stripe-signature': 's' }, { id }).deliveryId).toBeUndefined()
  })

  test('a string of 256 characters is a delivery id, and so are the digits of a number', () => {
    expect(read({ 'stripe-signature': 's' }, { id: 'x'.repeat(256) }).deliveryId).toHaveLength(256)
    expect(read({ 'stripe-signature': 's' }, { id: 12 }).deliveryId).toBe('12')
  })

  test('an empty header is ignored, and the next place of the event or the id is read', () => {
    expect(read({ 'x-amz-sns-message-type': '' }, { Type: 'Notification', MessageId: 'm' })).toEqual({
      source: 'aws-sns',
      event: 'Notification',
      deliveryId: 'm',
    })
  })
})

describe('authors and subjects', () => {
  const gmail = recogniseSender({ headers: {}, namedSource: 'gmail' })
  if (gmail === undefined) throw new Error('no gmail')

  test('the author and the subject of a delivery of mails are read from the first mail', () => {
    const payload = { source: 'gmail', messages: [{ from: 'Ada <ada@example.com>', subject: 'Lunch' }] }
    expect(readAuthorAndSubject(gmail, { body: toJsonBody(payload) })).toEqual({
      from: 'Ada <ada@example.com>',
      subject: 'Lunch',
    })
  })

  test('an author or a subject is left out if it is missing, blank or not a string', () => {
    expect(readAuthorAndSubject(gmail, { body: toJsonBody({ messages: [{ from: ' ', subject: 5 }] }) })).toEqual({})
    expect(readAuthorAndSubject(gmail, { body: toJsonBody(null) })).toEqual({})
  })

  test('no author is read for a sender whose row in the table has no path to an author', () => {
    const github = recogniseSender({ headers: { 'x-github-event': 'push' } })
    expect(github && readAuthorAndSubject(github, { body: toJsonBody({ messages: [{ from: 'Ada' }] }) })).toEqual({})
  })
})
