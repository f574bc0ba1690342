import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { VerifyInput } from '../../../../../src/core/model/verify.ts'
import { signRequest } from '../../../../../src/gateway/proofs/verifiers/sign.ts'
import { createPinnedFetch } from '../../../../../src/gateway/proofs/verifiers/pinned-fetch.ts'
import { isProven, now, publicUrl, reasonOf, requestOf, verifierOf } from './stage.ts'
import { builtInSenders } from '../../../../../src/gateway/built-in.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 })
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const seconds = now / 1000

function encodePart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function tokenOf(claims: object, key: KeyObject | string, header: object): string {
  const text = `${encodePart(header)}.${encodePart(claims)}`
  if (typeof key === 'string') return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

function buildKeySet(...kids: string[]): string {
  const jwk = rsa.publicKey.export({ format: 'jwk' })
  return JSON.stringify({ keys: kids.map((kid) => ({ ...jwk, kid, alg: 'RS256', use: 'sig' })) })
}

describe('tokens of Google', () => {
  const settings: VerifyInput = { scheme: 'google-pubsub', audience: 'aud-1', email: 'push@project.iam.example' }
  const claims = {
    iss: 'https://accounts.google.com',
    aud: 'aud-1',
    email: 'push@project.iam.example',
    email_verified: true,
    iat: seconds,
    exp: seconds + 3600,
  }
  const header = { alg: 'RS256', kid: 'k1', typ: 'JWT' }

  function createWorld(body = buildKeySet('k1')) {
    const state = { body, status: 200, asked: [] as string[], now }
    const fetch = createPinnedFetch({
      now: () => state.now,
      transport: async (url) => {
        state.asked.push(url.href)
        return { status: state.status, body: state.body }
      },
    })
    const verifier = verifierOf(settings, { fetch, now: () => state.now })
    const sends = (token: string) => verifier.verify(requestOf({ authorization: `Bearer ${token}` }, '{}'))
    return { state, verifier, sends }
  }

  test('a valid token is accepted, and two requests fetch the keys of Google once', async () => {
    const { state, sends, verifier } = createWorld()
    expect(await sends(tokenOf(claims, rsa.privateKey, header))).toEqual({ ok: true })
    expect(await sends(tokenOf(claims, rsa.privateKey, header))).toEqual({ ok: true })
    expect(state.asked).toEqual(['https://www.googleapis.com/oauth2/v3/certs'])
    expect(verifier.secretHeaders).toEqual(['authorization'])
    expect(verifier.isClaimed({ authorization: 'Bearer hook-secret' })).toBe(false)
  })

  test.each([
    ['another audience', { aud: 'aud-2' }],
    ['no audience', { aud: undefined }],
    ['another account', { email: 'evil@project.iam.example' }],
    ['an unverified e-mail', { email_verified: false }],
    ['a text instead of true for email_verified', { email_verified: 'true' }],
    ['another issuer', { iss: 'https://accounts.evil.example' }],
    ['an expiry time 61 s ago', { exp: seconds - 61 }],
    ['no expiry time', { exp: undefined }],
    ['an expiry time in words', { exp: 'never' }],
    ['an issue time 61 s ahead', { iat: seconds + 61 }],
    ['a start time 61 s ahead', { nbf: seconds + 61 }],
  ])('a token with %s is refused', async (_, change) => {
    const token = tokenOf({ ...claims, ...change }, rsa.privateKey, header)
    expect(await createWorld().sends(token)).toMatchObject({ ok: false, fault: 'sender' })
  })

  test('a token is accepted if the clocks differ by a minute, or if it names several audiences', async () => {
    const { sends } = createWorld()
    const near = { ...claims, exp: seconds - 60, iat: seconds + 60, aud: ['x', 'aud-1'] }
    expect(await sends(tokenOf(near, rsa.privateKey, header))).toEqual({ ok: true })
  })

  test('a Google token cannot choose its algorithm', async () => {
    const { sends } = createWorld()
    const pem = rsa.publicKey.export({ format: 'pem', type: 'spki' }).toString()
    for (const token of [
      `${encodePart({ alg: 'none', kid: 'k1' })}.${encodePart(claims)}.`,
      tokenOf(claims, pem, { ...header, alg: 'HS256' }),
      tokenOf(claims, curve.privateKey, { ...header, alg: 'ES256' }),
      tokenOf(claims, stranger.privateKey, header),
      // correctly signed, but the header names another algorithm
      tokenOf(claims, rsa.privateKey, { ...header, alg: 'none' }),
      tokenOf(claims, rsa.privateKey, { ...header, alg: undefined }),
    ]) {
      expect(await sends(token)).toMatchObject({ ok: false, fault: 'sender' })
    }
  })

  test('a new key of Google is fetched, and unknown keys cause at most one fetch a minute', async () => {
    const { state, sends } = createWorld()
    const token = tokenOf(claims, rsa.privateKey, { ...header, kid: 'k2' })
    expect(await sends(token)).toMatchObject({ ok: false, fault: 'sender' })
    expect(await sends(token)).toMatchObject({ ok: false })
    expect(state.asked.length).toBe(1)
    state.body = buildKeySet('k1', 'k2')
    state.now += 60_000
    expect(await sends(token)).toEqual({ ok: true })
    expect(state.asked.length).toBe(2)
  })

  test('keys that cannot be fetched are a fault of the gateway, so that Google repeats the request', async () => {
    const { state, sends } = createWorld()
    state.status = 500
    expect(await sends(tokenOf(claims, rsa.privateKey, header))).toMatchObject({ ok: false, fault: 'gateway' })
  })

  test('a Google key of another kind or use is refused', async () => {
    const jwk = { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'k1' }
    for (const wrong of [{ use: 'enc' }, { alg: 'RS512' }, { kty: 'oct' }]) {
      const { sends } = createWorld(JSON.stringify({ keys: [{ ...jwk, ...wrong }] }))
      expect(await sends(tokenOf(claims, rsa.privateKey, header))).toMatchObject({ ok: false })
    }
  })

  test('a Google token for publicUrl is accepted if no audience is configured', async () => {
    const fetch = createPinnedFetch({
      now: () => now,
      transport: async () => ({ status: 200, body: buildKeySet('k1') }),
    })
    const { audience: _, ...rest } = settings
    const verifier = verifierOf({ ...rest, publicUrl }, { fetch })
    const token = tokenOf({ ...claims, aud: publicUrl }, rsa.privateKey, header)
    expect(await verifier.verify(requestOf({ authorization: `bearer ${token}` }))).toEqual({ ok: true })
  })
})

describe('tokens with a hash of the body', () => {
  const body = '{\n  "a": 1\n}'
  const sha256 = createHash('sha256').update(body).digest('hex')

  test('a token of Plaid proves one body for five minutes under the configured key', async () => {
    const jwk = { ...curve.publicKey.export({ format: 'jwk' }), kid: 'p1', alg: 'ES256' }
    const settings = { scheme: 'plaid', publicKey: JSON.stringify(jwk) }
    const sends = (age: number, sent = body, kid = 'p1') =>
      isProven(
        settings,
        requestOf(
          {
            'plaid-verification': tokenOf({ iat: seconds - age, request_body_sha256: sha256 }, curve.privateKey, {
              alg: 'ES256',
              kid,
            }),
          },
          sent,
        ),
      )
    expect(await sends(300)).toBe(true)
    expect(await sends(301)).toBe(false)
    expect(await sends(-61)).toBe(false)
    expect(await sends(0, '{"a":1}')).toBe(false)
    expect(await sends(0, body, 'p2')).toBe(false)
  })

  test('a token of Netlify proves one body with its issuer and its secret', async () => {
    const sends = (claims: object, key = 's', sent = body) =>
      isProven(
        { scheme: 'netlify', secrets: ['other', 's'] },
        requestOf({ 'x-webhook-signature': tokenOf(claims, key, { alg: 'HS256' }) }, sent),
      )
    expect(await sends({ iss: 'netlify', sha256 })).toBe(true)
    expect(await sends({ iss: 'netlify', sha256 }, 't')).toBe(false)
    expect(await sends({ iss: 'netlify', sha256 }, 's', `${body} `)).toBe(false)
    expect(await sends({ iss: 'netlify' })).toBe(false)
    expect(await sends({ sha256 })).toBe(false)
  })
})

describe('tokens with a hash of the body in base64', () => {
  const body = '{"id":"EV_1","event":"room_started"}'
  const hashOf = (text: string, encoding: 'base64' | 'base64url') => createHash('sha256').update(text).digest(encoding)

  test('a token of LiveKit proves one body until it expires', async () => {
    const sends = (claims: object, { key = 's', sent = body } = {}) =>
      isProven(
        { scheme: 'livekit', secret: 's' },
        requestOf({ authorization: tokenOf(claims, key, { alg: 'HS256' }) }, sent),
      )
    const claims = { iss: 'APIkey', nbf: seconds, exp: seconds + 300, sha256: hashOf(body, 'base64') }
    expect(await sends(claims)).toBe(true)
    expect(await sends(claims, { key: 't' })).toBe(false)
    expect(await sends(claims, { sent: `${body} ` })).toBe(false)
    expect(await sends({ ...claims, exp: seconds - 61 })).toBe(false)
    expect(await sends({ ...claims, exp: undefined })).toBe(false)
    expect(await sends({ ...claims, sha256: claims.sha256.toLowerCase() })).toBe(false)
    expect(await sends({ ...claims, sha256: createHash('sha256').update(body).digest('hex') })).toBe(false)
    expect(await sends({ ...claims, sha256: '' })).toBe(false)
  })

  test('a token of QStash is proven with and without padding of its hash, for its issuer and the configured URL', async () => {
    const sends = (change: object, settings: Partial<VerifyInput> = {}) => {
      const claims = { iss: 'Upstash', sub: publicUrl, exp: seconds + 300, body: hashOf(body, 'base64url'), ...change }
      const token = tokenOf(claims, 'next', { alg: 'HS256' })
      return isProven(
        { scheme: 'qstash', secrets: ['current', 'next'], ...settings },
        requestOf({ 'upstash-signature': token }, body),
      )
    }
    expect(await sends({})).toBe(true)
    expect(await sends({ body: `${hashOf(body, 'base64url')}=` })).toBe(true)
    expect(await sends({ body: hashOf('{}', 'base64url') })).toBe(false)
    expect(await sends({ iss: 'Other' })).toBe(false)
    expect(await sends({}, { publicUrl })).toBe(true)
    expect(await sends({ sub: 'https://other.example/hooks/inbound' }, { publicUrl })).toBe(false)
    expect(await sends({ sub: undefined }, { publicUrl })).toBe(false)
  })
})

test('a token of monday is proven until it expires, for the configured audience', async () => {
  const sends = (claims: object, settings: Partial<VerifyInput> = {}) =>
    isProven(
      { scheme: 'monday', secret: 's', ...settings },
      requestOf({ authorization: tokenOf(claims, 's', { alg: 'HS256', typ: 'JWT' }) }, '{}'),
    )
  expect(await sends({ exp: seconds + 10 })).toBe(true)
  expect(await sends({ exp: seconds - 61 })).toBe(false)
  expect(await sends({ exp: seconds, aud: publicUrl }, { audience: publicUrl })).toBe(true)
  expect(await sends({ exp: seconds, aud: 'https://other.example' }, { audience: publicUrl })).toBe(false)
  expect(await sends({ exp: seconds }, { secret: 't' })).toBe(false)
})

test('a token without an expiry time is valid for five minutes, or as long as the operator says', async () => {
  const sends = (age: number, toleranceSeconds?: number) =>
    isProven(
      { scheme: 'monday', secret: 's', ...(toleranceSeconds && { toleranceSeconds }) },
      requestOf({ authorization: tokenOf({ iat: seconds - age }, 's', { alg: 'HS256' }) }, '{}'),
    )
  expect([await sends(300), await sends(301)]).toEqual([true, false])
  expect([await sends(301, 900), await sends(901, 900)]).toEqual([true, false])
})

test('a token with neither an expiry time nor an issue time is refused, unless it has the hash of the body', async () => {
  const authorization = tokenOf({ aud: publicUrl }, 's', { alg: 'HS256' })
  const proven = await verifierOf({ scheme: 'monday', secret: 's' }).verify(requestOf({ authorization }, '{}'))
  expect(reasonOf(proven)).toMatch(/neither exp nor iat/)
  const claims = { iss: 'netlify', sha256: createHash('sha256').update('{}').digest('hex') }
  const signature = tokenOf(claims, 's', { alg: 'HS256' })
  expect(
    await isProven({ scheme: 'netlify', secret: 's' }, requestOf({ 'x-webhook-signature': signature }, '{}')),
  ).toBe(true)
})

test('a text that is not a valid token is refused', async () => {
  const verifier = verifierOf({ scheme: 'monday', secret: 's' })
  for (const authorization of [
    '',
    '..',
    'a.b',
    'a.b.c',
    `${encodePart([])}.${encodePart({})}.x`,
    `${encodePart({ alg: 'HS256' })}.bnVsbA.x`,
  ]) {
    expect(reasonOf(await verifier.verify(requestOf({ authorization })))).not.toBe('')
  }
})

describe('schemes token and basic', () => {
  test('the scheme token needs a header, and the scheme basic needs user:password', () => {
    expect(() => verifierOf({ scheme: 'token', secret: 's' })).toThrow(/needs verify\.header/)
    expect(() => verifierOf({ scheme: 'basic', secret: 's' })).toThrow(/user:password/)
  })

  test('a request can be signed for the schemes token and basic', () => {
    const given = { body: Buffer.from('{}'), now, method: 'POST', url: '/hooks/acme' }
    expect(signRequest({ scheme: 'token', secret: 's', header: 'x-t' }, given, { senders: builtInSenders })).toEqual({
      'x-t': 's',
    })
    expect(
      signRequest({ scheme: 'basic', secret: 'u:p', header: 'x-auth' }, given, { senders: builtInSenders }),
    ).toEqual({ 'x-auth': 'Basic dTpw' })
  })
})
