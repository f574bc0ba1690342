// Shapes: what they learn from payloads, what they must never keep, and their limits.
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import {
  createEventShape,
  type EventShape,
  learnPayload,
  mergeEventShape,
  parseEventShape,
  renderEventShape,
} from '../../../../src/gateway/shapes/event-shape.ts'
import { listPlaces } from '../../../../src/gateway/shapes/places.ts'

function learnShape(payloads: readonly JsonValue[], at = 1): EventShape {
  const learnt = createEventShape({ hook: 'orders' })
  for (const payload of payloads) learnPayload(learnt, payload, at)
  return learnt
}

const pathsOf = (learnt: EventShape) => listPlaces(learnt.shape).map(({ path }) => path)

describe('a shape', () => {
  test('a shape has each field with its kinds and the number of its values', () => {
    const learnt = learnShape([{ id: 1, lines: [{ sku: 'a' }, {}] }, { id: null }])
    expect(listPlaces(learnt.shape)).toEqual([
      { path: 'id', kinds: ['number', 'null'], count: 2, of: 2 },
      { path: 'lines', kinds: ['array'], count: 1, of: 2 },
      { path: 'lines[]', kinds: ['object'], count: 2, of: 2 },
      { path: 'lines[].sku', kinds: ['string'], count: 1, of: 2 },
    ])
  })

  test('a shape is the same after it was stored, and two merged halves equal the shape of all requests', () => {
    const one = [
      { a: 1, status: 'paid' },
      { a: 'x', b: [1] },
    ]
    const other = [{ b: [null], status: 'paid', map: { 'no name': 1 } }]
    const merged = parseEventShape(renderEventShape(learnShape(one)))
    mergeEventShape(merged, parseEventShape(renderEventShape(learnShape(other))))
    expect(JSON.parse(renderEventShape(merged))).toEqual(JSON.parse(renderEventShape(learnShape([...one, ...other]))))
  })

  test('a shape keeps no value, and no key that may be secret or personal', () => {
    const secrets = [
      'ada@example.org',
      '4111111111111111',
      'U012AB3CD',
      'Ada Lovelace',
      '10.1.2.3',
      'sk_live_a1B2c3D4e5',
    ]
    const payloads = secrets.map((secret) => ({
      status: secret,
      type: `user:${secret}`,
      name: secret,
      [secret]: { note: secret },
      byUser: { [secret]: true },
      list: [secret, secret],
    }))
    const text = renderEventShape(learnShape(payloads))
    for (const secret of secrets) expect(text).not.toContain(secret)
    expect(text).toContain('status')
  })

  test('a shape lists the words of a status, and drops all of them once a value is not a word', () => {
    expect(renderEventShape(learnShape([{ status: 'paid' }, { status: 'open' }]))).toContain('paid')
    expect(renderEventShape(learnShape([{ status: 'paid' }, { status: '4 items are missing' }]))).not.toContain('paid')
    expect(renderEventShape(learnShape([{ login: 'paid' }]))).not.toContain('paid')
  })

  test('a shape drops the keys of an object if they differ from request to request', () => {
    const payloads = Array.from({ length: 40 }, (_, at) => {
      const word = String.fromCharCode(97 + (at % 26), 97 + Math.floor(at / 26))
      return { balances: { [`person${word}`]: at }, fixed: at }
    })
    const learnt = createEventShape({ hook: 'orders' })
    for (const payload of payloads) mergeEventShape(learnt, learnShape([payload]))
    expect(pathsOf(learnt)).toEqual(['balances', 'balances.<any>', 'fixed'])
  })

  test('a shape keeps the name of an event or a sender only if it looks like a name', () => {
    expect(createEventShape({ hook: 'x', source: 'github', event: 'Merge Request Hook' })).toMatchObject({
      source: 'github',
      event: 'Merge Request Hook',
    })
    expect(createEventShape({ hook: 'x', source: 'ada@example.org', event: 'evt_4821933' })).toMatchObject({
      source: '',
      event: '',
    })
    expect(createEventShape({ hook: 'x', event: 'a\u2028b */' })).toMatchObject({ event: '' })
    expect(createEventShape({ hook: 'x', event: 'Please call me at once today' })).toMatchObject({ event: '' })
    expect(createEventShape({ hook: 'x', event: 'Merge Request Hook Was Moved' }).event).not.toBe('')
  })
})

describe('the limits of a shape', () => {
  const limit = 300_000

  test('an object with 10,000 keys is one map in its shape', () => {
    const keys = Array.from({ length: 10_000 }, (_, at) => [`k${'abcdefghij'[at % 10]}${at}`, at] as const)
    const learnt = learnShape([Object.fromEntries(keys)])
    expect(pathsOf(learnt)).toEqual(['<any>'])
  })

  const large = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`k${'abcdefghij'[at % 10]}${at}`, at]))
  const usual = { action: 'opened', user: { login: 'ada' } }
  const usualPaths = ['action', 'user', 'user.login']

  test.each([
    ['after many others', [usual, usual, usual, usual, usual, usual, large, usual]],
    ['before all others', [large, usual, usual, usual, usual, usual]],
    ['after one other', [usual, large, usual, usual]],
    ['with the usual keys after the others', [usual, usual, usual, { ...large, ...usual }]],
    ['again and again', [usual, usual, ...Array.from({ length: 50 }, () => large), usual]],
  ])('one request with 10,000 keys does not hide the fields of the other requests: it comes %s', (_, payloads) => {
    expect(pathsOf(learnShape(payloads))).toEqual(expect.arrayContaining(usualPaths))
    const stored = createEventShape({ hook: 'orders' })
    for (const payload of payloads) mergeEventShape(stored, learnShape([payload]))
    expect(pathsOf(stored)).toEqual(expect.arrayContaining(usualPaths))
    const text = renderEventShape(stored)
    expect(text.length).toBeLessThan(5_000)
    expect(text).not.toContain('ka0')
  })

  test('many requests with 10,000 keys between two writes do not hide the stored fields', () => {
    const stored = learnShape(Array.from({ length: 10 }, () => usual))
    for (let write = 0; write < 5; write += 1)
      mergeEventShape(stored, learnShape([large, ...Array.from({ length: 100 }, () => large), usual]))
    expect(pathsOf(stored)).toEqual(expect.arrayContaining(usualPaths))
  })

  test('new keys in every request do not grow a shape without limit', () => {
    const learnt = createEventShape({ hook: 'x' })
    const letters = [...'abcdefghijklmnopqrstuvwxyz']
    for (const one of letters) {
      for (const two of letters) {
        const inner = Object.fromEntries(
          letters.map((three) => [`f${one}${two}${three}`.repeat(8), { status: `${one}${two}` }]),
        )
        learnPayload(learnt, { [`field_${one}${two}`]: { action: inner } }, 1)
      }
    }
    expect(pathsOf(learnt).length).toBeLessThan(2_500)
    expect(renderEventShape(learnt).length).toBeLessThan(limit)
  })

  test('a payload with a depth of 100 or with keys like __proto__ adds only a few paths to a shape, and changes no object', () => {
    let deep: JsonValue = 1
    for (let level = 0; level < 100; level += 1) deep = { deep }
    const hostile = JSON.parse(
      '{"__proto__": {"polluted": 1}, "constructor": 1, "\u202eabc": 1, "toString": 1}',
    ) as JsonValue
    const learnt = learnShape([deep, hostile])
    expect(pathsOf(learnt).filter((path) => !path.startsWith('deep'))).toEqual(['toString', '<any>', '<any>.polluted'])
    expect(pathsOf(learnt).length).toBeLessThan(30)
    expect({}).not.toHaveProperty('polluted')
  })

  test('the shape of a payload with a megabyte of items is small', () => {
    const items = Array.from({ length: 20_000 }, (_, at) => ({ a: { b: { c: { d: [at, { e: at }] } } } }))
    const learnt = learnShape([{ items, more: items }])
    expect(pathsOf(learnt)).toContain('items[].a.b.c.d[].e')
    expect(renderEventShape(learnt).length).toBeLessThan(limit)
  })
})
