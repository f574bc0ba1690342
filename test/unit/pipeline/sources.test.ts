import { toJsonBody } from '../../../src/model/parse-body.ts'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../src/base/json.ts'
import { senders } from '../../../src/pipeline/senders.ts'
import {
  detectSource,
  findSender,
  readCorrespondent,
  readDeliveryId,
  readEvent,
} from '../../../src/pipeline/sources.ts'

type Headers = Record<string, string>

function sourceOf(headers: Headers): string | undefined {
  return detectSource(headers)?.source
}

function read(headers: Headers, payload: JsonValue = {}, name?: string) {
  const sender = name === undefined ? detectSource(headers) : findSender(name)
  if (sender === undefined) throw new Error('no sender')
  return {
    source: sender.source,
    event: readEvent(sender, { headers, body: toJsonBody(payload) }),
    deliveryId: readDeliveryId(sender, { headers, body: toJsonBody(payload) }),
  }
}

describe('the sender that headers give away', () => {
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
      expect(findSender(source)?.source).toBe(source)
      for (const { header, beside } of marks.filter(({ like }) => like === undefined)) {
        expect(header).toBe(header.toLowerCase())
        expect(sourceOf({ [header]: '1', ...(beside && { [beside]: '1' }) })).toBe(source)
      }
    }
  })
})

describe('a source known by its name', () => {
  test('has its row, and a name that objects inherit has none', () => {
    expect(findSender('gmail')?.source).toBe('gmail')
    expect(findSender('constructor')).toBeUndefined()
    expect(findSender('__proto__')).toBeUndefined()
    expect(findSender('')).toBeUndefined()
  })
})

describe('event and delivery id', () => {
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
  const gmail = findSender('gmail')
  if (gmail === undefined) throw new Error('no gmail')

  test('are read from the first mail', () => {
    const payload = { source: 'gmail', messages: [{ from: 'Ada <ada@example.com>', subject: 'Lunch' }] }
    expect(readCorrespondent(gmail, { body: toJsonBody(payload) })).toEqual({
      from: 'Ada <ada@example.com>',
      subject: 'Lunch',
    })
  })

  test('are left out where they are missing, blank or no text', () => {
    expect(readCorrespondent(gmail, { body: toJsonBody({ messages: [{ from: ' ', subject: 5 }] }) })).toEqual({})
    expect(readCorrespondent(gmail, { body: toJsonBody(null) })).toEqual({})
  })

  test('are not guessed for a sender whose payload does not say', () => {
    const github = findSender('github')
    expect(github && readCorrespondent(github, { body: toJsonBody({ messages: [{ from: 'Ada' }] }) })).toEqual({})
  })
})
