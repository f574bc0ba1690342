// For each scheme with which `hookloom send` can sign, the verifier accepts a signed request and refuses a changed one.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/core/model/problem.ts'
import { type VerifyInput, VerifySettings } from '../../src/core/model/verify.ts'
import type { Scheme } from '../../src/model/scheme.ts'
import { signRequest as sign, stampPayload as stamp } from '../../src/gateway/proofs/verifiers/sign.ts'
import { createVerifier } from '../../src/gateway/proofs/verify.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const { schemes } = builtInSenders
const known = { senders: builtInSenders }
const signRequest = (settings: VerifySettings, given: Parameters<typeof sign>[1]) => sign(settings, given, known)
const stampPayload = (settings: VerifySettings, payload: Parameters<typeof stamp>[1], at: number) =>
  stamp(settings, payload, at, known)

const all: readonly Scheme[] = schemes
const refuseFetch = () => Promise.reject(new Error('nothing is fetched'))
const canSign = (scheme: Scheme): boolean =>
  ['hmac', 'token', 'basic', 'concat-hash'].includes(scheme.kind) ||
  (scheme.kind === 'jwt' && scheme.algorithm === 'HS256')
const made = all.filter(canSign)

const word = fc.stringMatching(/^[!-~]{1,40}$/)
/** The user of the scheme `basic`. It contains no colon: https://www.rfc-editor.org/rfc/rfc7617#section-2 */
const user = fc.stringMatching(/^[!-9;-~]{1,40}$/)

/** A secret in the form that the scheme requires. */
function createSecrets(scheme: Scheme): fc.Arbitrary<string> {
  if (scheme.kind === 'basic') return fc.tuple(user, word).map((parts) => parts.join(':'))
  if (scheme.kind !== 'hmac' || scheme.secretEncoding === undefined) return word
  const { secretEncoding, secretPrefix = '' } = scheme
  if (secretEncoding === 'utf8') return word.map((text) => secretPrefix + text)
  return fc
    .uint8Array({ minLength: 1, maxLength: 40 })
    .map((bytes) => secretPrefix + Buffer.from(bytes).toString(secretEncoding))
}

function buildSettings(scheme: Scheme, secret: string): VerifySettings {
  const named = scheme.kind === 'token' && scheme.header === undefined ? { header: 'x-named' } : {}
  return VerifySettings.parse({ scheme: scheme.id, secret, publicUrl: 'https://x.example/hooks/x', ...named })
}

/**
 * Whether a verifier with the settings `asked` accepts a request that was signed with the settings `signed`. `at`: the time of signing. `now`: the
 * time of the check. `sent`: the body that arrives.
 */
async function isAccepted(
  { signed, asked = signed }: { signed: VerifySettings; asked?: VerifySettings },
  { body, sent = body, at = 1_700_000_000_000, now = at }: { body: string; sent?: string; at?: number; now?: number },
): Promise<boolean> {
  const given = {
    method: 'POST',
    url: '/hooks/x?a=1',
    // Klaviyo signs its time as text
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'klaviyo-timestamp': 'Tue, 14 Nov 2023 22:13:20 GMT',
    },
  }
  const proof = signRequest(signed, { ...given, body: Buffer.from(body), now: at })
  const request = { ...given, headers: { ...given.headers, ...proof }, rawBody: Buffer.from(sent) }
  const verifier = createVerifier(asked, { fetch: refuseFetch, now: () => now, ...known })
  return verifier.isClaimed(request.headers) && (await verifier.verify(request)).ok
}

/** A body for the scheme: a form if the scheme signs forms, else JSON, with the time of signing if the scheme needs it. */
const renderBody = (settings: VerifySettings, text: string, at = 1_700_000_000_000): string =>
  ['mandrill', 'twilio'].includes(settings.scheme)
    ? new URLSearchParams({ text }).toString()
    : JSON.stringify(stampPayload(settings, { text }, at))

describe('signed requests', () => {
  test.each(made.map((scheme) => [scheme.id, scheme] as const))(
    'a request signed for %s is accepted',
    async (_, scheme) => {
      await fc.assert(
        fc.asyncProperty(createSecrets(scheme), fc.string({ maxLength: 60 }), async (secret, text) => {
          const settings = buildSettings(scheme, secret)
          expect(await isAccepted({ signed: settings }, { body: renderBody(settings, text) })).toBe(true)
        }),
        { numRuns: 20 },
      )
    },
  )

  test.each(made.map((scheme) => [scheme.id, scheme] as const))(
    'a request signed for %s with another secret is refused',
    async (_, scheme) => {
      await fc.assert(
        fc.asyncProperty(createSecrets(scheme), createSecrets(scheme), async (secret, other) => {
          // HMAC pads a short key with zero bytes, so secrets that differ only in zero bytes at the end are the same key
          fc.pre(secret.replace(/[A0=]+$/, '') !== other.replace(/[A0=]+$/, ''))
          const settings = buildSettings(scheme, secret)
          const body = renderBody(settings, 'x')
          expect(await isAccepted({ signed: settings, asked: buildSettings(scheme, other) }, { body })).toBe(false)
        }),
        { numRuns: 10 },
      )
    },
  )

  const overBody = made.filter(({ kind, id }) => !['token', 'basic'].includes(kind) && id !== 'monday')
  test.each(overBody.map((scheme) => [scheme.id, scheme] as const))(
    'a request signed for %s is refused with another body',
    async (_, scheme) => {
      const settings = buildSettings(scheme, scheme.kind === 'hmac' && scheme.secretEncoding ? 'abcdef01' : 'secret')
      const body = renderBody(settings, 'x')
      expect(await isAccepted({ signed: settings }, { body })).toBe(true)
      expect(await isAccepted({ signed: settings }, { body, sent: `${body}+` })).toBe(false)
    },
  )

  const timed = made.flatMap((scheme) =>
    scheme.kind === 'hmac' && scheme.toleranceSeconds !== undefined
      ? [[scheme.id, scheme, scheme.toleranceSeconds] as const]
      : [],
  )
  test.each(timed)('a request signed for %s is refused one second after its window', async (_, scheme, window) => {
    const settings = buildSettings(scheme, scheme.secretEncoding ? 'abcdef01' : 'secret')
    const at = 1_700_000_000_000
    const body = renderBody(settings, 'x', at)
    expect(await isAccepted({ signed: settings }, { body, at, now: at + window * 1_000 })).toBe(true)
    expect(await isAccepted({ signed: settings }, { body, at, now: at + (window + 1) * 1_000 })).toBe(false)
  })

  test('a request of generic-hmac whose signature covers a time and a further header is accepted, and is refused with another body', async () => {
    const settings = VerifySettings.parse({
      scheme: 'generic-hmac',
      secret: 'ab12',
      secretEncoding: 'hex',
      algorithm: 'sha512',
      encoding: 'base64url',
      header: 'X-Sum',
      prefix: 'v9=',
      timestamp: { header: 'X-Time', unit: 'ms' },
      template: '{method} {header:content-type} {timestamp}.{body}',
    } satisfies VerifyInput)
    expect(await isAccepted({ signed: settings }, { body: '{}' })).toBe(true)
    expect(await isAccepted({ signed: settings }, { body: '{}', sent: '[]' })).toBe(false)
  })

  test('a request keeps its id when it is signed, and gets an id if it has none', () => {
    const settings = VerifySettings.parse({ scheme: 'standard-webhooks', secret: 'abcd' })
    const given = { body: Buffer.from('{}'), now: 1_700_000_000_000, method: 'POST', url: '/' }
    const kept = signRequest(settings, { ...given, headers: { 'webhook-id': 'msg_own' } })
    expect(kept['webhook-id']).toBe('msg_own')
    expect(signRequest(settings, given)['webhook-id']).toMatch(/^msg_./)
  })

  test('a request of Grafana with chosen header names is accepted', async () => {
    const settings = VerifySettings.parse({
      scheme: 'grafana',
      secret: 'x',
      header: 'X-Sum',
      timestamp: { header: 'X-Time' },
    })
    expect(await isAccepted({ signed: settings }, { body: '{}' })).toBe(true)
    expect(await isAccepted({ signed: settings }, { body: '{}', sent: '{ }' })).toBe(false)
  })
})

test('a request cannot be signed for a scheme whose key only the sender has or whose proof is in the body, and the error says so', () => {
  // the code of a scheme may sign: the tests of its sender check that
  const others = all.filter((scheme) => !canSign(scheme) && !(scheme.kind === 'code' && scheme.code.sign !== undefined))
  expect(others.length).toBeGreaterThan(5)
  for (const { id } of others) {
    const sign = () =>
      signRequest(
        { scheme: id, secret: 'ab', publicKey: 'x' },
        { body: Buffer.from('{}'), now: 0, method: 'POST', url: '/' },
      )
    expect(sign).toThrow(Problem)
    expect(sign).toThrow(/cannot be signed here/)
  }
})

test('a payload gets the current time only if the scheme signs a time in the payload', () => {
  const linear = VerifySettings.parse({ scheme: 'linear', secret: 'x' })
  const github = VerifySettings.parse({ scheme: 'github', secret: 'x' })
  expect(stampPayload(linear, { a: 1, webhookTimestamp: 5 }, 99_000)).toEqual({ a: 1, webhookTimestamp: 99_000 })
  expect(stampPayload(github, { a: 1 }, 99_000)).toEqual({ a: 1 })
  expect(stampPayload(linear, [1], 99_000)).toEqual([1])
})
