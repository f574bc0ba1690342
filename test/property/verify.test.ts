import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { VerifySettings } from '../../src/core/model/verify.ts'
import type { VerifyRequest } from '../../src/core/model/verifier.ts'
import { findTimeFault, isDigest } from '../../src/gateway/proofs/verifiers/proof.ts'
import { createVerifier } from '../../src/gateway/proofs/verify.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const { schemes } = builtInSenders

const now = 1_700_000_000_000
const edwards = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const curve =
  'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=='

/** Settings with all keys that any scheme requires, in the form of this scheme. */
function buildSettings(scheme: (typeof schemes)[number]): VerifySettings {
  const keys: Record<string, string> = {
    'raw-hex': edwards,
    'raw-base64': Buffer.from(edwards, 'hex').toString('base64'),
    'spki-base64': curve,
  }
  return VerifySettings.parse({
    scheme: scheme.id,
    secret: scheme.kind === 'basic' ? 'user:pass' : 'ab'.repeat(16),
    publicUrl: 'https://x.example/hooks/x',
    header: 'x-named',
    webhookId: 'w',
    topicArn: 't',
    audience: 'a',
    email: 'e@x.example',
    verifyToken: 'v',
    jwksUrl: 'https://keys.example/',
    ...('keyForm' in scheme ? { publicKey: keys[scheme.keyForm] } : {}),
  })
}

const tools = { now: () => now, fetch: async () => ({ ok: false, fault: 'sender', reason: 'offline' }) as const }
const verifiers = schemes.map((scheme) => createVerifier(buildSettings(scheme), { ...tools, senders: builtInSenders }))

const headerNames = [
  ...new Set(
    schemes.flatMap((scheme) => [
      ...('header' in scheme && scheme.header !== undefined ? [scheme.header] : []),
      ...('idHeader' in scheme && scheme.idHeader !== undefined ? [scheme.idHeader] : []),
      ...('timestamp' in scheme && scheme.timestamp?.in === 'header' ? [scheme.timestamp.name] : []),
    ]),
  ),
  'x-named',
  'content-type',
]
const word = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.constantFrom(
    '',
    'sha256=',
    'v1,',
    'v1,AAAA',
    't=1700000000,v1=',
    'v0=',
    'Bearer a.b.c',
    'Basic ',
    '1700000000',
    '__proto__',
  ),
  fc.base64String({ maxLength: 60 }),
)
const body = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.json(),
  fc.constantFrom(
    '{"signature":null}',
    '{"notificationItems":[null]}',
    '{"value":[[]]}',
    '{"Type":"Notification"}',
    '{"subscription_id":{}}',
  ),
)
const request: fc.Arbitrary<VerifyRequest> = fc.record({
  method: fc.constantFrom('POST', 'GET', 'HEAD'),
  url: fc.string({ maxLength: 40 }).map((text) => `/hooks/x?${text}`),
  headers: fc.dictionary(fc.constantFrom(...headerNames), word),
  rawBody: body.map((text) => Buffer.from(text)),
})

describe('unsigned requests', () => {
  test('every scheme refuses any unsigned request without an exception', async () => {
    await fc.assert(
      fc.asyncProperty(request, fc.constantFrom(...verifiers), async (given, verifier) => {
        verifier.isClaimed(given.headers)
        verifier.isHandshakeHead(given)
        const verified = await verifier.verify(given)
        expect(verified).toMatchObject({ ok: false })
      }),
      { numRuns: 1500 },
    )
  })

  test('no handshake sends back a challenge that a browser could run', async () => {
    await fc.assert(
      fc.asyncProperty(request, fc.constantFrom(...verifiers), fc.boolean(), async (given, verifier, verified) => {
        const answer = await verifier.handshake(given, { verified, armed: true })
        expect(answer?.body ?? '').not.toMatch(/[<>&'\r\n]/)
      }),
      { numRuns: 1000 },
    )
  })
})

test('a signature proves the bytes and the secret that made it, and no others', () => {
  const secret = fc.string({ minLength: 1, maxLength: 40 }).filter((text) => text.trim() !== '')
  const bytes = fc.uint8Array({ maxLength: 300 })
  fc.assert(
    fc.property(secret, secret, bytes, bytes, (mine, other, sent, changed) => {
      const verifier = createVerifier(VerifySettings.parse({ scheme: 'github', secret: mine }), {
        ...tools,
        senders: builtInSenders,
      })
      const sign = (key: string) => `sha256=${createHmac('sha256', key).update(sent).digest('hex')}`
      const ask = (key: string, rawBody: Uint8Array) =>
        verifier.verify({ method: 'POST', url: '/', headers: { 'x-hub-signature-256': sign(key) }, rawBody })
      expect(ask(mine, sent)).toEqual({ ok: true })
      expect(ask(other, sent)).toMatchObject({ ok: mine === other })
      expect(ask(mine, changed)).toMatchObject({ ok: Buffer.compare(sent, changed) === 0 })
    }),
    { numRuns: 300 },
  )
})

test('only one base64 text matches a digest, although decoders read several texts as the same bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.base64String({ maxLength: 48 }), (digest, text) => {
      const own = Buffer.from(digest).toString('base64')
      expect(isDigest(own, own, 'base64')).toBe(true)
      expect(isDigest(text, own, 'base64')).toBe(text === own)
      expect(isDigest(`${own.slice(0, -1)}`, own, 'base64')).toBe(false)
    }),
  )
})

test('a timestamp is parsed only if the whole text is a timestamp', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 4_000_000_000 }),
      fc.string({ minLength: 1, maxLength: 3 }),
      (seconds, tail) => {
        const exact = { now: seconds * 1000, toleranceSeconds: 0 }
        expect(findTimeFault(String(seconds), { unit: 's', ...exact })).toBeUndefined()
        expect(findTimeFault(new Date(seconds * 1000).toISOString(), { unit: 'iso8601', ...exact })).toBeUndefined()
        if (/^\d+$/.test(tail)) return
        for (const unit of ['s', 'ms'] as const)
          expect(findTimeFault(`${seconds}${tail}`, { unit, now: 0, toleranceSeconds: undefined })).toMatch(/format/)
      },
    ),
  )
})
