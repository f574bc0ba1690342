import { describe, expect, test } from 'vitest'
import type { Admitted, Delivery } from '../../../src/model/delivery.ts'
import type { JsonValue } from '../../../src/base/json.ts'
import { Problem } from '../../../src/model/problem.ts'
import { createDeduplicator, readDedupe } from '../../../src/deliveries/duplicates.ts'
import { recogniseSender } from '../../../src/pipeline/sources.ts'
import { createMemoryStore } from '../../../src/store/sqlite/sqlite.ts'
import { keyed, newDelivery } from '../../contract/stage.ts'
import { toTestDelivery } from '../pipeline/decide.ts'

type Proved = { by: string; mapping: string; id?: string }

function toAdmitted({ by, mapping, id }: Proved): Admitted {
  return {
    token: false,
    signedFor: [mapping],
    signedId: id === undefined ? undefined : { signer: mapping, source: by, id },
  }
}

function findKey(payload: JsonValue, headers: Record<string, string>, proved?: Proved) {
  const delivery: Delivery = {
    ...toTestDelivery('in', payload, { headers }),
    sender: recogniseSender({ verifiedBy: proved?.by, headers }),
    verifiedBy: proved?.by,
    admitted: proved === undefined ? { token: true, signedFor: [] } : toAdmitted(proved),
  }
  const found = readDedupe(delivery)
  return found && { key: found.key.key, isDeliveryId: found.isDeliveryId }
}

describe('the dedupe key of a delivery', () => {
  const github = { 'x-github-event': 'push', 'x-github-delivery': 'd-1' }

  test('the dedupe key of a delivery is the Idempotency-Key, or else the id from the sender, or else there is none', () => {
    expect(findKey({}, {})).toBeUndefined()
    expect(findKey({}, github)).toEqual({ key: 'github:d-1', isDeliveryId: true })
    expect(findKey({}, { ...github, 'idempotency-key': 'k' })).toEqual({ key: 'key:k', isDeliveryId: false })
  })

  test('the id that a signature covers takes precedence over every other dedupe key', () => {
    const event = { id: 'evt_1', type: 'invoice.paid' }
    const headers = { 'stripe-signature': 't=1,v1=00', 'idempotency-key': 'k' }
    const proved = { by: 'stripe', mapping: 'm' }
    expect(findKey(event, headers, { ...proved, id: 'evt_1' })).toEqual({ key: 'm stripe:evt_1', isDeliveryId: true })
    expect(findKey(event, { ...headers, ...github }, { ...proved, id: 'evt_1' })?.key).toBe('m stripe:evt_1')
    expect(findKey(event, headers, proved)).toEqual({ key: 'm key:k', isDeliveryId: false })
    expect(findKey(event, headers)).toEqual({ key: 'key:k', isDeliveryId: false })
  })

  test('the same id under two signed mappings of one path means two deliveries', () => {
    const update = { update_id: 100 }
    for (const id of [undefined, '100']) {
      const findTelegramKey = (mapping: string) =>
        findKey(update, {}, { by: 'telegram', mapping, ...(id && { id }) })?.key
      expect(findTelegramKey('bot-a')).toBe('bot-a telegram:100')
      expect(findTelegramKey('bot-b')).not.toBe(findTelegramKey('bot-a'))
    }
  })

  test.each(['', ' ', 'k'.repeat(257)])('the Idempotency-Key %j is refused', (key) => {
    expect(() => findKey({}, { 'idempotency-key': key })).toThrow(/1 to 256 characters/)
  })
})

describe('deliveries with a dedupe key', () => {
  const dedupe = { key: { hook: 'github', key: 'k', bodyHash: 'hash-1' }, isDeliveryId: false }
  const never = () => new Promise<never>(() => {})

  test.each([
    ['refuses writes', () => Promise.reject(new Problem('store-unavailable', 'The disk is full.'))],
    ['does not return from a write', never],
  ])('a repetition gets the first answer while the store %s', async (_, first) => {
    const store = createMemoryStore({ clock: () => 1 })
    await store.append(newDelivery({ at: 1, ...keyed('k') }))
    const once = createDeduplicator(store, false)
    const otherBody = { ...dedupe, key: { ...dedupe.key, bodyHash: 'hash-2' } }
    expect(
      await once(otherBody, { onKnown: () => {}, onRepeat: () => {}, runFirst: first, rerunParked: never }),
    ).toEqual({
      status: 200,
      body: '{"ok":true}',
      headers: { 'idempotent-replay': 'true' },
    })
  })
})
