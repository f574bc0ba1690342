import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import { SenderResponse } from '../../../../src/core/model/response.ts'
import { decideOn, toGeneration, toTestDelivery } from './decide.ts'

type Options = Parameters<typeof toGeneration>[1]

const toMapping = (response: MappingInput['response'], over: Partial<MappingInput> = {}): MappingInput => ({
  match: { path: 'in' },
  messageTemplate: 'Do it',
  response,
  ...over,
})
const decide = (mapping: MappingInput, payload: JsonValue, options?: Options) =>
  decideOn(toGeneration([mapping], options), toTestDelivery('in', payload))

async function renderBody(response: MappingInput['response'], payload: JsonValue): Promise<string | undefined> {
  const decision = await decide(toMapping(response), payload)
  if (decision.kind !== 'accept') throw new Error(`expected accept, got ${decision.kind}`)
  return decision.response?.body
}

const decideByCode = (result: unknown, over: Partial<MappingInput> = {}) =>
  decide(
    toMapping({ body: 'of the mapping' }, { transform: { module: 'x.ts' }, ...over }),
    { items: [1, 2], id: 7 },
    { transforms: { 'x.ts': () => result } },
  )

describe('the response of a mapping', () => {
  test('a response is rendered from the payload, with status 200 and plain text by default', async () => {
    expect(await decide(toMapping({ body: 'Got {{text}}' }), { text: '<b>' })).toMatchObject({
      response: { status: 200, contentType: 'text/plain', body: 'Got <b>' },
    })
    expect(await decide(toMapping(undefined), {})).toMatchObject({ kind: 'accept', response: undefined })
  })

  test('the values in a response are escaped, but not its template, so that a sender can add no element or field', async () => {
    const text = `</Message><Dial>+1</Dial>&"'\u0001`
    expect(await renderBody({ contentType: 'text/xml', body: '<R a="{{text}}"/>' }, { text })).toBe(
      '<R a="&lt;/Message&gt;&lt;Dial&gt;+1&lt;/Dial&gt;&amp;&quot;&apos;\ufffd"/>',
    )
    for (const contentType of ['application/json', 'application/problem+json']) {
      const json = await renderBody({ contentType, body: '{"text":"{{text}}"}' }, { text: 'a","admin":true,"\n\\' })
      expect(JSON.parse(json ?? '')).toEqual({ text: 'a","admin":true,"\n\\' })
    }
  })

  test('a NUL or half a surrogate pair in a response is replaced, because some stores cannot keep it', async () => {
    expect(await renderBody({ body: '{{a}}{{b}}{{c}}' }, { a: '\0', b: '\ud83d', c: '😀' })).toBe('\ufffd\ufffd😀')
    const json = { contentType: 'application/json', body: '{"a":"{{a}}"}' }
    expect(await renderBody(json, { a: 'x\ud83d' })).toBe('{"a":"x\ufffd"}')
  })

  test.each(['{"n":{{n}}}', '{"n":', ''])('the JSON template %j is invalid in the configuration', (body) => {
    expect(() => toGeneration([toMapping({ contentType: 'application/json', body })])).toThrow(
      'Mapping "mapping-1": response.body: The template must be JSON',
    )
  })

  test('a body that is too large for the answer is refused as the fault of the sender', async () => {
    const decideLong = (count: number) => decide(toMapping({ body: '{{text}}' }), { text: 'ä'.repeat(count) })
    expect(await decideLong(8_192)).toMatchObject({ kind: 'accept' })
    expect(await decideLong(8_193)).toMatchObject({ kind: 'refuse', problem: { code: 'payload-invalid' } })
  })

  test('a response is left out if the delivery becomes several actions', async () => {
    expect(await decideByCode([{}, {}])).toMatchObject({ kind: 'accept', actions: [{}, {}], response: undefined })
    expect(await decideByCode([{}])).toMatchObject({ response: { body: 'of the mapping' } })
  })
})

describe('the response of a transform', () => {
  test('the response of the mapping stays if the result of a transform has no response, even if it changes the kind of the action', async () => {
    for (const result of [{}, { kind: 'wake', text: 'x' }]) {
      expect(await decideByCode(result)).toMatchObject({ kind: 'accept', response: { body: 'of the mapping' } })
    }
  })

  test('the response of a transform replaces the whole response of the mapping, even if the kind changes', async () => {
    const response = { contentType: 'application/json', body: '{"a":1}' }
    for (const result of [{ response }, { kind: 'wake', text: 'x', response }]) {
      expect(await decideByCode(result)).toMatchObject({ kind: 'accept', response: { status: 200, ...response } })
    }
    expect(await decideByCode({ response: { status: 202 } })).toMatchObject({
      response: { status: 202, contentType: 'text/plain', body: '' },
    })
  })

  test('the response of a transform is not a field of the action', async () => {
    const decision = await decideByCode({ response: { body: 'x' } })
    expect(decision.kind === 'accept' && decision.actions[0]?.action).not.toHaveProperty('response')
  })

  test.each<[string, unknown, Partial<MappingInput>]>([
    ['one of several actions has it', [{}, { response: { body: 'x' } }], {}],
    ['the mapping has forEach', { response: { body: 'x' } }, { forEach: 'items', response: undefined }],
    ['the type is HTML', { response: { contentType: 'text/html', body: 'x' } }, {}],
    ['it has an unknown field', { response: { text: 'x' } }, {}],
  ])('a response from a transform parks the delivery if %s', async (_, result, over) => {
    expect(await decideByCode(result, over)).toMatchObject({
      kind: 'park',
      problem: { code: 'transform-result-invalid' },
    })
  })
})

test.each([
  { contentType: 'text/html' },
  { contentType: 'application/xhtml+xml' },
  { contentType: 'image/svg+xml' },
  { contentType: 'text/plain\r\nset-cookie: a=b' },
  { contentType: 'text/plain\n' },
  { contentType: 'text/plain; charset=utf-7' },
  { contentType: 'TEXT/HTML+json' },
  { status: 199 },
  { status: 204 },
  { status: 205 },
  { status: 302 },
  { status: 200.5 },
  { body: 'x'.repeat(16_385) },
  { headers: {} },
])('a response with %j is invalid', (given) => {
  expect(SenderResponse.safeParse({}).success).toBe(true)
  expect(SenderResponse.safeParse(given).success).toBe(false)
})
