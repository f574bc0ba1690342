// Signatures that the senders published, and changed ones, each checked at its own time. They are next to the corpus.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isJsonObject } from '../../../../src/base/json.ts'
import { type VerifyInput, VerifySettings } from '../../../../src/model/verify.ts'
import type { PinnedFetch } from '../../../../src/model/verifier.ts'
import { createPinnedFetch } from '../../../../src/pipeline/verifiers/pinned-fetch.ts'
import { createVerifier, schemeNames } from '../../../../src/pipeline/verify.ts'

const Vector = z.object({
  name: z.string(),
  scheme: z.string(),
  secret: z.string().optional(),
  publicKey: z.string().optional(),
  url: z.string().optional(),
  timestampHeader: z.string().optional(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  method: z.string(),
  now: z.number().optional(),
  valid: z.boolean(),
  certs: z.record(z.string(), z.string()).optional(),
  jwks: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }).optional(),
})
type Vector = z.infer<typeof Vector>

const corpus = process.env['HOOKLOOM_CORPUS']
const file = corpus === undefined ? undefined : join(corpus, '..', 'reference', 'vectors.json')
const hasVectors = file !== undefined && existsSync(file)
const vectors = hasVectors ? readVectors(file) : []

function readVectors(path: string): Vector[] {
  return z.object({ vectors: z.array(Vector) }).parse(JSON.parse(readFileSync(path, 'utf8'))).vectors
}

/** The vectors have several names for what is one scheme here. */
const sameScheme: Record<string, string> = {
  'github-octokit': 'github',
  'slack-events': 'slack',
  'twilio-json': 'twilio',
  'grafana-ts': 'grafana',
}

function toSettings(vector: Vector): VerifySettings {
  const scheme = sameScheme[vector.scheme] ?? vector.scheme
  const settings: VerifyInput = { scheme }
  if (vector.jwks === undefined && vector.certs === undefined && vector.secret !== undefined) {
    settings.secret = vector.secret
  }
  if (vector.publicKey !== undefined) settings.publicKey = vector.publicKey
  if (vector.url !== undefined) settings.publicUrl = vector.url.replace(/\?.*$/s, '')
  if (vector.timestampHeader !== undefined) settings.timestamp = { header: vector.timestampHeader }
  // these vectors expect windows that are narrower than the default
  if (scheme === 'paddle') settings.toleranceSeconds = 5
  if (scheme === 'zoom') settings.toleranceSeconds = 300
  if (scheme === 'aws-sns') settings.topicArn = 'arn:aws:sns:us-west-2:123456789012:MyTopic'
  if (scheme === 'plaid') settings.jwksUrl = 'https://keys.example/plaid'
  if (scheme === 'google-pubsub') {
    settings.audience = 'https://example.com/hooks/gmail'
    settings.email = 'gae-gcp@appspot.gserviceaccount.com'
  }
  return VerifySettings.parse(settings)
}

/** The real guard, over a transport that serves the certificates and keys of the vector. */
function toFetch(vector: Vector): PinnedFetch {
  return createPinnedFetch({
    now: () => 0,
    transport: async (url) => {
      const body = vector.certs?.[url.href] ?? (vector.jwks && JSON.stringify(vector.jwks))
      return body === undefined ? { status: 404, body: '' } : { status: 200, body }
    },
  })
}

const reason = 'HOOKLOOM_CORPUS names no folder with ../reference/vectors.json'

describe.skipIf(!hasVectors)(`published vectors (skipped when ${reason})`, () => {
  test.each(vectors.map((vector) => [`${vector.name} is ${vector.valid ? 'proven' : 'refused'}`, vector] as const))(
    'the published request %s',
    async (_, vector) => {
      // a published example without a time is checked at the time that it was signed
      const signedAt = /^\d+$/.exec(vector.headers['x-twilio-email-event-webhook-timestamp'] ?? '')?.[0]
      const now = (vector.now ?? Number(signedAt ?? 1_700_000_000)) * 1000
      const verifier = createVerifier(toSettings(vector), { fetch: toFetch(vector), now: () => now })
      const url = `/hooks/x${vector.url?.match(/\?.*$/s)?.[0] ?? ''}`
      const result = await verifier.verify({
        method: vector.method,
        url,
        headers: vector.headers,
        rawBody: Buffer.from(vector.body),
      })
      expect(result).toMatchObject({ ok: vector.valid })
      // a request that no verifier claims is not checked
      expect(verifier.isClaimed(vector.headers) || !vector.valid).toBe(true)
    },
  )

  test('the vectors have valid and invalid requests', () => {
    expect(vectors.filter(({ valid }) => valid).length).toBeGreaterThan(50)
    expect(vectors.filter(({ valid }) => !valid).length).toBeGreaterThan(150)
  })
})

describe.skipIf(corpus === undefined)('senders of the corpus (skipped when HOOKLOOM_CORPUS is unset)', () => {
  test('every sender of the corpus has a scheme', () => {
    const list: unknown = JSON.parse(readFileSync(join(corpus ?? '', '..', 'reference', 'schemes.json'), 'utf8'))
    const ids = isJsonObject(list) && Array.isArray(list['schemes']) ? list['schemes'] : []
    expect(ids.length).toBeGreaterThan(80)
    const known = new Set(schemeNames)
    expect(
      ids.map((entry) => (isJsonObject(entry) ? entry['id'] : entry)).filter((id) => !known.has(String(id))),
    ).toEqual([])
  })
})
