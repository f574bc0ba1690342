// No header changes the payload of a proved request.
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { Mapping } from '../../../../src/core/model/mapping.ts'
import { readPayload } from '../../../../src/core/model/body.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import type { Hook } from '../../../../src/core/mapping/hook.ts'
import { buildDelivery, convertRequest } from '../../../../src/core/mapping/delivery.ts'
import { inflateBody } from '../../../../src/gateway/proofs/inflate.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

/** A hook whose deliveries are already proved: how a body is read does not depend on the scheme. */
function buildHook(accept: ('text' | 'xml')[]) {
  const mapping = Mapping.parse({ match: { path: 'in' }, ...(accept.length > 0 && { accept }) })
  const config = ConfigSchema.parse({ hooks: { token: 'hook-secret' } })
  return createGeneration({
    senders: builtInSenders,
    config,
    mappings: [{ ...mapping, id: 'own' }],
    transforms: new Map(),
  }).findHook('in')
}

const types = [
  'application/json',
  'application/vnd.api+json; charset=utf-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'multipart/form-data; boundary="a"',
  'text/plain',
  'text/csv; charset=utf-16',
  'application/xml',
  'image/png',
  '',
]
const headers = fc.dictionary(
  fc.constantFrom('content-type', 'content-encoding', 'x-github-event', 'ce-specversion', 'idempotency-key'),
  fc.oneof(fc.constantFrom(...types, 'gzip', 'br', 'deflate', 'identity'), fc.string({ maxLength: 20 })),
)
const body = fc.oneof(
  fc.json(),
  fc.string({ maxLength: 60 }),
  fc.dictionary(fc.string({ maxLength: 5 }), fc.string()).map((fields) => new URLSearchParams(fields).toString()),
  fc.constantFrom('--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n', '<a>1</a>', '{"x":"&a=1&"}'),
)

async function payloadOf(hook: Hook, text: string, given: Record<string, string>) {
  const head = {
    method: 'POST',
    url: '/hooks/in',
    path: 'in',
    headers: given,
    query: {},
    verifiedBy: 'somebody',
    admitted: { token: false, signedFor: ['own'] },
  }
  try {
    const contentEncoding = given['content-encoding']
    const raw = Buffer.from(new Uint8Array(Buffer.from(text)).buffer)
    const sent = { head, body: await inflateBody(raw, { contentEncoding, isProved: true, limit: 10_000 }) }
    const read = convertRequest(sent, hook)
    return readPayload(buildDelivery(read.head, read.body, { hook, id: 'd', receivedAt: 0 }).body)
  } catch (error) {
    if (error instanceof Problem) return error.code
    throw error
  }
}

test.each([[[]], [['text']], [['xml']], [['text', 'xml']]] as const)(
  'no header changes the payload of a proved body on a hook that accepts %j',
  async (accept) => {
    const hook = buildHook([...accept])
    await fc.assert(
      fc.asyncProperty(body, headers, async (text, given) => {
        const plain = await payloadOf(hook, text, {})
        // an encoding under which a proof cannot be checked is refused
        expect([plain, 'encoding-unsupported']).toContainEqual(await payloadOf(hook, text, given))
      }),
      { numRuns: 500 },
    )
  },
)

test('complete JSON in a proved body is read as JSON on every hook', () => {
  const hooks = [buildHook([]), buildHook(['text']), buildHook(['xml']), buildHook(['text', 'xml'])]
  const object = fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue()))
  return fc.assert(
    fc.asyncProperty(
      object,
      fc.constantFrom(...hooks),
      fc.constantFrom('', '\ufeff', ' \r\n\t'),
      async (value, hook, start) => {
        const text = JSON.stringify(value)
        expect(await payloadOf(hook, start + text, {})).toEqual(JSON.parse(text))
      },
    ),
  )
})
