import { describe, expect, test } from 'vitest'
import type { Admitted, Delivery } from '../../../../src/core/model/delivery.ts'
import type { JsonValue } from '../../../../src/base/json.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { createDeduplicator, readDedupe } from '../../../../src/gateway/deliveries/duplicates.ts'
import { buildAdmittedHead } from '../../../../src/core/mapping/delivery.ts'
import { createAccess } from '../../../../src/gateway/http/access.ts'
import { createTokenSet, listConfigTokens } from '../../../../src/gateway/generation/tokens.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { keyed, newDelivery } from '../../../contract/stage.ts'
import { toTestDelivery } from '../../core/mapping/decide.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { recognise: recogniseSender } = builtInSenders

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

  test('an Idempotency-Key counts for its token alone, but a delivery id counts whichever token brings it', () => {
    const findScopedKey = (tokens: readonly string[], token: string, headers: Record<string, string>) => {
      const scoped = { ci: { token: 'token-of-ci', may: ['send:*'] }, app: { token: 'token-of-app', may: ['send:*'] } }
      const live = { tokens: createTokenSet(listConfigTokens(tokens, scoped)) }
      const access = createAccess({ clock: () => 0 })
      const tokenId = access.findTokenId(token, 'in', live)
      const head = {
        method: 'POST',
        url: '/hooks/in',
        path: 'in',
        headers,
        client: '203.0.113.7',
        token: 'valid' as const,
        tokenId,
        keyScope: access.findKeyScope(tokenId, live),
      }
      const { admitted } = buildAdmittedHead(head, new Set(), { signedFor: [], source: undefined })
      const sender = recogniseSender({ verifiedBy: undefined, headers })
      return readDedupe({ ...toTestDelivery('in', {}, { headers }), sender, admitted })?.key.key
    }
    const key = { 'idempotency-key': 'k' }
    const [ofHook, ofCi, ofApp] = ['hook-token', 'token-of-ci', 'token-of-app'].map((token) =>
      findScopedKey(['hook-token'], token, key),
    )
    expect(new Set([ofHook, ofCi, ofApp]).size).toBe(3)
    expect(findScopedKey(['hook-token'], 'token-of-ci', key)).toBe(ofCi)
    // the key that earlier versions stored
    expect(ofHook).toBe('key:k')
    // a sender that repeats a request after a rotation
    expect(findScopedKey(['new-token', 'hook-token'], 'new-token', key)).toBe(ofHook)
    for (const token of ['hook-token', 'token-of-ci'])
      expect(findScopedKey(['hook-token'], token, github)).toBe('github:d-1')
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
