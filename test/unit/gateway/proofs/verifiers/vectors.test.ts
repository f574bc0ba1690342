// Published signatures that no gateway can get, because they use another method or a secret that no configuration may have. Each one is checked at
// the time that it was made for.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isJsonObject } from '../../../../../src/base/json.ts'
import { VerifySettings } from '../../../../../src/core/model/verify.ts'
import { createPinnedFetch } from '../../../../../src/gateway/proofs/verifiers/pinned-fetch.ts'
import { createVerifier } from '../../../../../src/gateway/proofs/verify.ts'
import { isForGateway, missingVectors, readVectors, toVerify, createTransport } from '../../../../e2e/vectors.ts'
import { builtInSenders } from '../../../../../src/gateway/built-in.ts'

const { schemeNames } = builtInSenders

const corpus = process.env['HOOKLOOM_CORPUS']
const all = readVectors()?.vectors

describe.skipIf(all === undefined)(`published vectors (skipped when ${missingVectors})`, () => {
  const vectors = (all ?? []).filter((vector) => !isForGateway(vector))

  test.each(vectors.map((vector) => [`${vector.name} is ${vector.valid ? 'proven' : 'refused'}`, vector] as const))(
    'the verifier gives the published result: %s',
    async (_, vector) => {
      const now = (vector.now ?? 1_700_000_000) * 1000
      // the real guard, over a transport that serves the certificates and keys of the vector
      const fetch = createPinnedFetch({ now: () => 0, transport: createTransport([vector]) })
      const verifier = createVerifier(VerifySettings.parse(toVerify(vector)), {
        fetch,
        now: () => now,
        senders: builtInSenders,
      })
      const result = await verifier.verify({
        method: vector.method,
        url: `/hooks/x${vector.url?.match(/\?.*$/s)?.[0] ?? ''}`,
        headers: vector.headers,
        rawBody: Buffer.from(vector.body),
      })
      expect(result).toMatchObject({ ok: vector.valid })
      // a request that no verifier claims is not checked
      expect(verifier.isClaimed(vector.headers) || !vector.valid).toBe(true)
    },
  )
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
