// Proofs of senders over real HTTP: signed requests are accepted, and requests that differ by a character or a second are refused.
import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { VerifyRequest } from '../../src/core/model/verifier.ts'
import type { HmacScheme } from '../../src/model/scheme.ts'
import {
  hmacSchemes,
  publicUrl,
  requestOf,
  secretOf,
  settingsOf,
  signed,
  withBrokenSignature,
  withHeader,
} from '../unit/gateway/proofs/verifiers/stage.ts'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type SignedGateway, startSignedGateway } from './proving.ts'
import { isForGateway, missingVectors, readVectors, toVerify, createTransport, type Vector } from './vectors.ts'
import type { Reply } from './wire.ts'

function post(
  gateway: SignedGateway,
  target: string,
  { headers, rawBody }: Pick<VerifyRequest, 'headers' | 'rawBody'>,
) {
  return gateway.ask({ target, headers: Object.entries(headers), body: rawBody })
}

/** `vectors.test.ts` proves the other vectors. */
const vectors = readVectors()?.vectors.filter(isForGateway)

describe.skipIf(vectors === undefined)(`published vectors over HTTP (skipped when ${missingVectors})`, () => {
  const cases = vectors ?? []
  const paths = new Map<string, string>()
  const toPath = (vector: Vector): string => {
    const key = JSON.stringify(toVerify(vector))
    const known = paths.get(key) ?? `vectors/${paths.size}`
    paths.set(key, known)
    return known
  }
  let gateway: SignedGateway

  beforeAll(async () => {
    const mappings = cases.map((vector) => ({ match: { path: toPath(vector) }, verify: toVerify(vector) }))
    const own = new Map(mappings.map((mapping) => [mapping.match.path, mapping]))
    gateway = await startSignedGateway([...own.values()], undefined, { transport: createTransport(cases) })
  })

  function deliver(vector: Vector): Promise<Reply> {
    const signedAt = /^\d+$/.exec(vector.headers['x-twilio-email-event-webhook-timestamp'] ?? '')?.[0]
    gateway.time.now = (vector.now ?? Number(signedAt ?? 1_700_000_000)) * 1000
    const query = vector.url?.match(/\?.*$/s)?.[0] ?? ''
    return post(gateway, `/hooks/${toPath(vector)}${query}`, { ...vector, rawBody: Buffer.from(vector.body) })
  }

  // one vector signs "Hello, World!", which is not JSON
  const isJson = ({ headers, body }: Vector): boolean =>
    /^[[{]/.test(body) || /urlencoded/.test(headers['content-type'] ?? '')
  const proven = cases.filter(({ valid }) => valid)

  test.each(proven.filter(isJson).map((vector) => [vector.name, vector] as const))(
    'the published request %s is accepted',
    async (_, vector) => {
      expect([200, 204]).toContain((await deliver(vector)).status)
    },
  )

  test.each(proven.filter((vector) => !isJson(vector)).map((vector) => [vector.name, vector] as const))(
    'the published request %s is proven, and refused because its body is not JSON',
    async (_, vector) => {
      expect(readVerdict(await deliver(vector))).toBe('body-invalid')
    },
  )

  test.each(cases.filter(({ valid }) => !valid).map((vector) => [vector.name, vector] as const))(
    'the published request %s is refused and not stored',
    async (_, vector) => {
      const before = (await gateway.deliveries()).length
      const reply = await deliver(vector)
      expect(readVerdict(reply)).toBe('unauthorized')
      expect((await gateway.deliveries()).length).toBe(before)
    },
  )

  test('the published vectors have valid and invalid requests', () => {
    expect(proven.length).toBeGreaterThan(20)
    expect(cases.length - proven.length).toBeGreaterThan(100)
  })

  test('each refusal of a published request has a reason for the operator, without a secret, a signature or a payload', async () => {
    for (const vector of cases.filter(({ valid }) => !valid)) await deliver(vector)
    const { body } = await gateway.callAdmin('GET', '/api/refusals')
    const { refusals } = z
      .object({ refusals: z.array(z.object({ trace: z.array(z.object({ why: z.string().min(1) })) })) })
      .parse(JSON.parse(body))
    expect(refusals.length).toBeGreaterThan(100)
    expect(refusals.filter(({ trace }) => trace.length === 0)).toEqual([])
    const hidden = cases.flatMap(({ secret = '', headers, body: payload }) => [
      secret,
      payload,
      ...Object.entries(headers).flatMap(([name, value]) => (/sign|token|auth|secret/.test(name) ? value : '')),
    ])
    expect(hidden.filter((text) => text.length > 12 && body.includes(text))).toEqual([])
  })
})

describe('requests that these tests sign with a shared secret', () => {
  let gateway: SignedGateway
  let now: number
  const acme = {
    scheme: 'generic-hmac',
    secret: 'acme-secret-of-it',
    header: 'x-acme-signature',
    prefix: 'sha1=',
    algorithm: 'sha1',
  } as const

  beforeAll(async () => {
    const hubspot = { secret: 'hubspot-secret-of-it', publicUrl }
    gateway = await startSignedGateway([
      ...hmacSchemes.map((scheme) => ({ match: { path: scheme.id }, verify: settingsOf(scheme) })),
      { match: { path: 'hubspot-v1' }, verify: { scheme: 'hubspot-v1', ...hubspot } },
      { match: { path: 'hubspot-v2' }, verify: { scheme: 'hubspot-v2', ...hubspot } },
      { match: { path: 'acme' }, verify: acme },
    ])
    now = gateway.time.now
  })

  const isIn = async (path: string, request: VerifyRequest): Promise<boolean> => {
    const before = (await gateway.deliveries()).length
    const reply = await post(gateway, `/hooks/${path}`, request)
    if (reply.status === 200) return readDeliveryId(reply) !== ''
    expect(readVerdict(reply)).toBe('unauthorized')
    expect((await gateway.deliveries()).length).toBe(before)
    return false
  }

  test.each(hmacSchemes.map((scheme) => [scheme.id, scheme] as const))(
    'a request of %s is accepted, and refused with another character, space, header or secret',
    async (id, scheme) => {
      const request = signed(scheme, { at: now })
      expect(await isIn(id, request)).toBe(true)
      expect(await isIn(id, withBrokenSignature(request, scheme.header))).toBe(false)
      expect(await isIn(id, addSpace(request))).toBe(false)
      expect(await isIn(id, withHeader(request, scheme.header, undefined))).toBe(false)
      expect(await isIn(id, signed(scheme, { at: now, which: 'other' }))).toBe(false)
    },
  )

  const isTimed = (scheme: HmacScheme) => scheme.toleranceSeconds !== undefined
  test.each(hmacSchemes.filter(isTimed).map((scheme) => [scheme.id, scheme] as const))(
    'a request of %s is accepted up to the end of its tolerance, and not a second later',
    async (id, scheme) => {
      const tolerance = (scheme.toleranceSeconds ?? Number.NaN) * 1000
      // a time ahead of the clock is no repetition
      for (const [side, most] of [
        [-1, tolerance],
        [1, Math.min(tolerance, 300_000)],
      ] as const) {
        expect(await isIn(id, signed(scheme, { at: now + side * most }))).toBe(true)
        expect(await isIn(id, signed(scheme, { at: now + side * (most + 1000) }))).toBe(false)
      }
    },
  )

  test('more than sixty schemes are tested, and more than twenty of them sign a time', () => {
    expect(hmacSchemes.length).toBeGreaterThan(60)
    expect(hmacSchemes.filter(isTimed).length).toBeGreaterThan(20)
  })

  test.each([
    ['hubspot-v1', 'v1', ''],
    ['hubspot-v2', 'v2', `POST${publicUrl}`],
  ])('a request of %s is accepted, and refused with another body, secret or version', async (id, version, before) => {
    const body = '{"event":"x"}'
    const sign = (secret: string) => createHash('sha256').update(`${secret}${before}${body}`).digest('hex')
    const request = requestOf(
      { 'x-hubspot-signature': sign('hubspot-secret-of-it'), 'x-hubspot-signature-version': version },
      body,
    )
    expect(await isIn(id, request)).toBe(true)
    expect(await isIn(id, addSpace(request))).toBe(false)
    expect(await isIn(id, withHeader(request, 'x-hubspot-signature', sign('hubspot-secreT')))).toBe(false)
    expect(await isIn(id, withHeader(request, 'x-hubspot-signature-version', 'v9'))).toBe(false)
    expect(await isIn(id, withHeader(request, 'x-hubspot-signature', undefined))).toBe(false)
  })

  test('a request of generic-hmac is accepted as its mapping describes it', async () => {
    const row: HmacScheme = {
      id: 'acme',
      source: undefined,
      kind: 'hmac',
      header: acme.header,
      algorithm: acme.algorithm,
      syntax: { prefix: acme.prefix },
      docs: '',
      confidence: 'verified',
    }
    expect(await isIn('acme', signed(row))).toBe(false)
    const own = await startSignedGateway([{ match: { path: 'acme' }, verify: { ...acme, secret: secretOf(row) } }])
    expect((await post(own, '/hooks/acme', signed(row))).status).toBe(200)
    expect((await post(own, '/hooks/acme', addSpace(signed(row)))).status).toBe(401)
  })
})

function addSpace(request: VerifyRequest): VerifyRequest {
  return { ...request, rawBody: Buffer.concat([request.rawBody, Buffer.from(' ')]) }
}
