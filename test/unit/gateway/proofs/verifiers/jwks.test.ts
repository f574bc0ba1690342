import { generateKeyPairSync } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { createKeySet } from '../../../../../src/gateway/proofs/verifiers/jwks.ts'
import { createPinnedFetch, type Transport } from '../../../../../src/gateway/proofs/verifiers/pinned-fetch.ts'
import type { JwtScheme } from '../../../../../src/model/scheme.ts'

const hour = 3_600_000
const jwksUrl = 'https://issuer.example/keys'
const scheme: JwtScheme = {
  id: 'issuer',
  source: undefined,
  docs: '',
  confidence: 'verified',
  kind: 'jwt',
  header: 'authorization',
  bearer: true,
  algorithm: 'ES256',
  jwksUrl,
}

function createWorld() {
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
  const world = { now: 0, isDown: false, isSilent: false, fetches: 0 }
  const transport: Transport = async () => {
    world.fetches += 1
    if (world.isDown) throw new Error('ECONNREFUSED')
    if (world.isSilent) return new Promise(() => {})
    return { status: 200, body: JSON.stringify({ keys: [{ ...jwk, kid: 'known', alg: 'ES256', use: 'sig' }] }) }
  }
  const fetch = createPinnedFetch({ now: () => world.now, transport })
  return { world, findKey: createKeySet(scheme, { settings: { scheme: 'issuer' }, fetch }) }
}

test('while the issuer is down, a token with an unknown key is a fault of the gateway, and a token with a known key needs no fetch', async () => {
  const { world, findKey } = createWorld()
  expect(await findKey('known')).toMatchObject({ ok: true })
  world.isDown = true
  world.now = hour / 2
  expect(await findKey('unknown')).toMatchObject({ ok: false, fault: 'gateway' })
  expect(await findKey('known')).toMatchObject({ ok: true })
  expect(world.fetches).toBe(2)
})

test('a token with a known key does not wait for the fetch that a token with an unknown key has started', async () => {
  const { world, findKey } = createWorld()
  await findKey('known')
  world.isSilent = true
  world.now = hour / 2
  const waiting = findKey('unknown')
  await vi.waitUntil(() => world.fetches === 2, { timeout: 60_000 })
  expect(await Promise.race([findKey('known'), waiting])).toMatchObject({ ok: true })
})

test('tokens with unknown keys cause one fetch a minute while the issuer answers', async () => {
  const { world, findKey } = createWorld()
  for (const kid of ['known', 'a', 'b', 'c']) await findKey(kid)
  expect(world.fetches).toBe(1)
  world.now = 60_000
  for (const kid of ['a', 'b', 'c']) expect(await findKey(kid)).toMatchObject({ ok: false, fault: 'sender' })
  expect(world.fetches).toBe(2)
})

test('the keys of an issuer that is down are used for an hour after they were fetched', async () => {
  const { world, findKey } = createWorld()
  await findKey('known')
  world.isDown = true
  world.now = hour - 1
  expect(await findKey('known')).toMatchObject({ ok: true })
  world.now = hour
  expect(await findKey('known')).toMatchObject({ ok: false, fault: 'gateway' })
})
