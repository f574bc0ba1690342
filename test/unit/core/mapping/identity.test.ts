import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { expect, test } from 'vitest'
import { Mapping } from '../../../../src/core/model/mapping.ts'
import { toIdentity } from '../../../../src/core/mapping/identity.ts'

const secret = 'a-secret-of-one-sender-0123456789'

function findIdentity(verify: object, more: object = {}, id?: string) {
  const mapping = Mapping.parse({ match: { path: 'x' }, verify: { scheme: 'token', ...verify }, ...more })
  return toIdentity({ ...mapping, id: id ?? 'mapping-1', isUnnamed: id === undefined })
}

test('a mapping without an id is identified by its scheme and a digest of each secret, not by the secret or the position', () => {
  const { proves } = findIdentity({ secrets: [secret, 'another-secret-0123456789'] })
  expect(proves).toEqual([expect.stringMatching(/^token:[\da-f]{24}$/), expect.stringMatching(/^token:[\da-f]{24}$/)])
  expect(findIdentity({ secret }).proves).toEqual([proves[0]])
})

test('another secret, header or scheme changes the identity of a mapping, and another message does not change it', () => {
  const { proves } = findIdentity({ secret })
  for (const other of [{ secret: `${secret}!` }, { secret, header: 'x-else' }, { secret, scheme: 'github' }])
    expect(findIdentity(other).proves).not.toEqual(proves)
  expect(findIdentity({ secret }, { messageTemplate: 'new' }).proves).toEqual(proves)
})

test('a mapping with an id is identified by the id, and still accepts the identities that it had without an id', () => {
  const before = findIdentity({ secret })
  const named = findIdentity({ secret }, {}, 'own')
  expect([named.proves, named.secretsName, named.ring]).toEqual([['own'], 'own', 'own'])
  expect(before.proves.every((proof) => named.isOpenedBy(proof))).toBe(true)
  expect(before.isOpenedBy('own')).toBe(false)
})

test('without an id, the ring of a mapping depends on all its conditions, and the name of its secrets on its path but not on its event', () => {
  const push = findIdentity({}, { match: { path: 'x', event: 'push' } })
  const ping = findIdentity({}, { match: { path: 'x', event: 'ping' } })
  expect(push.ring).not.toBe(ping.ring)
  expect(push.secretsName).toBe(ping.secretsName)
  expect(findIdentity({}, { match: { path: 'y' } }).secretsName).not.toBe(push.secretsName)
})

test('a digest of a signed mapping is computed when it is first needed, and only once', () => {
  const { pbkdf2Sync } = crypto
  let digests = 0
  crypto.pbkdf2Sync = (...input) => {
    digests += 1
    return pbkdf2Sync(...input)
  }
  syncBuiltinESMExports()
  try {
    const secrets = Array.from({ length: 50 }, (_, index) => `${secret}-of-many-${index}`)
    const [first] = secrets.map((each) => findIdentity({ scheme: 'github', secret: each }))
    expect(digests).toBe(0)
    expect([first?.signer, first?.isOpenedBy('mapping-2'), first?.isOpenedBy('token:0123')]).toEqual([
      first?.proves[0],
      false,
      false,
    ])
    expect(digests).toBe(1)
  } finally {
    crypto.pbkdf2Sync = pbkdf2Sync
    syncBuiltinESMExports()
  }
})
