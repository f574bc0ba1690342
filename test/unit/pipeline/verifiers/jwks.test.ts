import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeySet } from '../../../../src/pipeline/verifiers/jwks.ts'
import { createPinnedFetch, type Transport } from '../../../../src/pipeline/verifiers/pinned-fetch.ts'
import type { JwtScheme } from '../../../../src/pipeline/verifiers/scheme.ts'

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
  const world = { now: 0, isDown: false, fetches: 0 }
  const transport: Transport = async () => {
    world.fetches += 1
    if (world.isDown) throw new Error('ECONNREFUSED')
    return { status: 200, body: JSON.stringify({ keys: [{ ...jwk, kid: 'known', alg: 'ES256', use: 'sig' }] }) }
  }
  const now = () => world.now
  const fetch = createPinnedFetch({ now, transport })
  return { world, findKey: createKeySet(scheme, { settings: { scheme: 'issuer' }, fetch, now }) }
}

test('a token with an unknown key does not make the known keys unusable while the issuer is down', async () => {
  const { world, findKey } = createWorld()
  expect(await findKey('known')).toMatchObject({ ok: true })
  world.isDown = true
  world.now = hour / 2
  expect(await findKey('unknown')).toMatchObject({ ok: false, fault: 'gateway' })
  expect(await findKey('known')).toMatchObject({ ok: true })
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
