// What a row says about a message: a line with something of the request, or facts of its payload.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { toJsonBody } from '../../../../src/core/model/body.ts'
import { readEvent } from '../../../../src/core/mapping/sources.ts'
import { describeMessage } from '../../../../src/gateway/deliveries/about.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const toMessage = (payload: JsonValue) => JSON.stringify(payload, undefined, 2)

describe('what a message is about', () => {
  test('a line with something of the request is used, and lines that the template has for every request are passed over', () => {
    const template = 'New mail\nFrom: {{from}}\nSubject: {{subject}}'
    expect(describeMessage('New mail\nFrom: Ada\nSubject: Hello', { template })).toBe('From: Ada')
    expect(describeMessage('New mail\nFrom: Ada\nSubject: Hello')).toBe('New mail')
    expect(describeMessage('Restart the build', { template: 'Restart the build' })).toBe('Restart the build')
    expect(describeMessage(' \n')).toBe('')
  })

  test('of a payload in the message, the facts that senders have in common are used', () => {
    const issue = { action: 'opened', issue: { number: 7, title: 'Login fails', user: { login: 'ada' } } }
    expect(describeMessage(toMessage(issue), { event: 'issues' })).toBe('Issue #7 opened: Login fails')
    const order = { id: 1, name: '#1043', email: 'ada@example.com', total_price: '183.48', currency: 'EUR' }
    expect(describeMessage(toMessage(order), { event: 'orders/create' })).toBe('Order #1043 created, 183.48 EUR')
    const push = {
      ref: 'refs/heads/main',
      pusher: { name: 'ada' },
      head_commit: { message: 'Mend the door\n\nIt was shut' },
    }
    expect(describeMessage(toMessage(push), { event: 'push' })).toBe('Push to main by ada: Mend the door')
  })

  test('a text that could be read in many ways is read in one: it holds up no list', () => {
    for (const mark of ['_', '.', '_.', 'a_', ' ', '<', '-', 'A-']) {
      const title = `a${mark.repeat(400)}!`
      expect(describeMessage(toMessage({ title, number: 7 }))).toContain('7')
      expect(describeMessage(toMessage({ [title]: title, name: title }))).not.toBe(undefined)
    }
  })

  test('words before the payload stay, unless they are those of the template', () => {
    const payload = '{"title":"Login fails"}'
    expect(describeMessage(`Look at ${payload}`, { template: 'Look at {{payload}}' })).toBe('Login fails')
    expect(describeMessage(`For Ada: ${payload}`)).toBe('For Ada: Login fails')
    expect(describeMessage('Say {} to [1] of them')).toBe('Say {} to [1] of them')
  })

  test('a payload whose end is cut off is read as far as it goes', () => {
    const text = toMessage({ title: 'Login fails', body: 'x'.repeat(50_000), z: 'y' })
    expect(describeMessage(text)).toBe('Login fails')
    expect(describeMessage('{"title": "Login fails", "items": [{"a": "b')).toBe('Login fails')
    expect(describeMessage('{"title": "Login \\u00')).toMatch(/^Login /)
  })

  test('a whole number is no amount, because it may be a number of cents', () => {
    expect(describeMessage('{"type":"charge","amount":2000,"currency":"usd","description":"Two cups"}')).toBe(
      'Charge: Two cups',
    )
    expect(describeMessage('{"type":"charge","amount":20.50,"currency":"usd","description":"Two cups"}')).toBe(
      'Charge: Two cups, 20.50 USD',
    )
  })

  test('of a payload without a known name, short values are shown', () => {
    expect(describeMessage('{"room":"kitchen","temp":21,"pin":"1234","open":false,"more":1}')).toBe(
      'Room: kitchen, temp: 21, more: 1',
    )
  })

  test('secrets, ids and hashes are not shown', () => {
    const token = `ghp_${'a1'.repeat(18)}`
    const texts = [
      `{"title":"use ${token} now"}`,
      `{"text":"${token}"}`,
      `use ${token} now`,
      `{"name":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefgh"}`,
      `{"token":"s3cr3t-s3cr3t","password":"hunter2","title":"Login"}`,
    ]
    for (const text of texts) expect(describeMessage(text)).not.toMatch(/ghp_|eyJ|s3cr3t|hunter2/)
    for (const id of ['8a95126f-859a-4db9-b8f1-350e299e9ea0', 'f'.repeat(40), '2024-08-07T22:57:57Z', '12345678'])
      expect(describeMessage(`{"event":"thing.made","name":"${id}","room":"kitchen"}`)).not.toContain(id)
  })

  test('a hostile payload costs little and is cut', () => {
    const deep = `${'{"a":['.repeat(5_000)}1`
    const wide = toMessage(Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`k${at}`, { name: `n${at}` }])))
    for (const text of [
      deep,
      wide,
      '{"__proto__":{"title":"x"}}',
      '{"title":"\\ud800"}',
      `{"title":"${'é'.repeat(9_000)}"}`,
    ])
      expect(describeMessage(text).length).toBeLessThanOrEqual(201)
    expect(describeMessage('{"title":"one\\ntwo\\u0000"}')).toBe('One')
  })
})

const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''

describe.skipIf(corpus === '')('real payloads (skipped: HOOKLOOM_CORPUS names no folder)', () => {
  test('four of five payloads give more than the name of the event, in at most 140 characters', () => {
    const files = readdirSync(corpus, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'))
    const titles = files.toSorted().map((name) => {
      // as: the form of the corpus
      const read = JSON.parse(readFileSync(join(corpus, name), 'utf8')) as {
        source: string
        headers?: Record<string, string>
        body: JsonValue
      }
      const { source, headers = {}, body } = read
      const message = typeof body === 'string' ? body : toMessage(body)
      const sender = builtInSenders.recognise({ verifiedBy: source, headers })
      const event = sender && readEvent(sender, { headers, body: toJsonBody(body) })
      return { name, event: event ?? '', title: describeMessage(message, { event }) }
    })
    const isTelling = ({ title, event, name }: (typeof titles)[number]) => {
      const words = new Set(`${event} ${name}`.toLowerCase().split(/[^a-z]+/))
      return (
        !/^[{[<]/.test(title) &&
        title
          .toLowerCase()
          .split(/[^a-z\d#@.]+/)
          .some((word) => word.length > 1 && !words.has(word))
      )
    }
    const poor = titles.filter((each) => !isTelling(each))
    expect(poor.length).toBeLessThan(0.2 * titles.length)
    for (const { title } of titles) expect(title.length).toBeLessThanOrEqual(141)
  })
})
