import { describe, expect, test } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import type { JsonValue } from '../../src/model/json.ts'
import { toDedupe } from '../../src/server/delivery.ts'
import { toTestDelivery } from './decide.ts'

function keyOf(payload: JsonValue, headers: Record<string, string>, proved?: { by: string; mapping: string }) {
  const delivery: Delivery = {
    ...toTestDelivery('in', payload, { headers }),
    verifiedBy: proved?.by,
    admitted: { token: proved === undefined, signedFor: proved === undefined ? [] : [proved.mapping] },
  }
  const found = toDedupe(delivery)
  return found && { key: found.key.key, isSenders: found.isSenders }
}

describe('how a delivery is recognised', () => {
  const github = { 'x-github-event': 'push', 'x-github-delivery': 'd-1' }

  test('by the Idempotency-Key of a caller, else by the sender’s id, else not at all', () => {
    expect(keyOf({}, {})).toBeUndefined()
    expect(keyOf({}, github)).toEqual({ key: 'github:d-1', isSenders: true })
    expect(keyOf({}, { ...github, 'idempotency-key': 'k' })).toEqual({ key: 'key:k', isSenders: false })
  })

  test('an id in a proved body goes before a header that nobody signed', () => {
    const event = { id: 'evt_1', type: 'invoice.paid' }
    const headers = { 'stripe-signature': 't=1,v1=00', 'idempotency-key': 'k' }
    const proved = { by: 'stripe', mapping: 'm' }
    expect(keyOf(event, headers, proved)).toEqual({ key: 'm stripe:evt_1', isSenders: true })
    expect(keyOf(event, headers)).toEqual({ key: 'key:k', isSenders: false })
  })

  test('the same id for two proved mappings of one path is two deliveries', () => {
    const update = { update_id: 100 }
    const of = (mapping: string) => keyOf(update, {}, { by: 'telegram', mapping })?.key
    expect(of('bot-a')).toBe('bot-a telegram:100')
    expect(of('bot-b')).not.toBe(of('bot-a'))
  })

  test.each(['', ' ', 'k'.repeat(257)])('a key of %j is refused', (key) => {
    expect(() => keyOf({}, { 'idempotency-key': key })).toThrow(/1 to 256 characters/)
  })
})
