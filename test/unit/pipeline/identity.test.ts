import { expect, test } from 'vitest'
import { Mapping } from '../../../src/model/mapping.ts'
import { toIdentity } from '../../../src/pipeline/identity.ts'

const secret = 'a-secret-of-one-sender-0123456789'

function made(verify: object, more: object = {}, id?: string) {
  const mapping = Mapping.parse({ match: { path: 'x' }, verify: { scheme: 'token', ...verify }, ...more })
  return toIdentity({ ...mapping, id: id ?? 'mapping-1', isUnnamed: id === undefined })
}

test('without an id, a proof has scheme and digest of each secret, and neither the secret nor the position', () => {
  const { proves } = made({ secrets: [secret, 'another-secret-0123456789'] })
  expect(proves).toEqual([expect.stringMatching(/^token:[\da-f]{24}$/), expect.stringMatching(/^token:[\da-f]{24}$/)])
  expect(made({ secret }).proves).toEqual([proves[0]])
})

test('another secret, header or scheme is another proof, and another message is the same', () => {
  const { proves } = made({ secret })
  for (const other of [{ secret: `${secret}!` }, { secret, header: 'x-else' }, { secret, scheme: 'github' }])
    expect(made(other).proves).not.toEqual(proves)
  expect(made({ secret }, { messageTemplate: 'new' }).proves).toEqual(proves)
})

test('a mapping with an id is known by it, and opens to what was stored before it had one', () => {
  const before = made({ secret })
  const named = made({ secret }, {}, 'own')
  expect([named.proves, named.handedAs, named.ring]).toEqual([['own'], 'own', 'own'])
  expect(before.proves.every((proof) => named.openedBy.has(proof))).toBe(true)
  expect(before.openedBy.has('own')).toBe(false)
})

test('the ring of a mapping stays with its conditions, and its handed secrets with its path and its scheme', () => {
  const push = made({}, { match: { path: 'x', event: 'push' } })
  const ping = made({}, { match: { path: 'x', event: 'ping' } })
  expect(push.ring).not.toBe(ping.ring)
  expect(push.handedAs).toBe(ping.handedAs)
  expect(made({}, { match: { path: 'y' } }).handedAs).not.toBe(push.handedAs)
})
