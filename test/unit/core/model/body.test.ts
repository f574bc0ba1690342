import { describe, expect, test } from 'vitest'
import { Problem } from '../../../../src/core/model/problem.ts'
import { convertBody } from '../../../../src/core/model/convert.ts'
import { openBody, readPayload } from '../../../../src/core/model/body.ts'
import type { Accepts } from '../../../../src/core/model/syntax.ts'

function parse(body: string | Uint8Array, contentType?: string, accepts: Partial<Accepts> = {}) {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const all = { forms: false, ...accepts }
  const sent = { bytes, contentType, isProved: false }
  return readPayload(openBody({ ...sent, ...convertBody(sent, all) }, all))
}

function refusal(...args: Parameters<typeof parse>): Problem {
  try {
    parse(...args)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('it was accepted')
}

const form = 'application/x-www-form-urlencoded'

describe('media types of bodies', () => {
  test.each([
    undefined,
    '',
    'application/json',
    'Application/JSON ; charset=UTF-8',
    'application/json;charset="utf-8"',
    'application/json; charset=utf8; version=2',
    'application/json; charset=us-ascii',
    'application/cloudevents+json',
    'application/vnd.github.v3+json; charset=utf-8',
  ])('the media type %s is JSON', (type) => {
    expect(parse('{"a":1}', type)).toEqual({ a: 1 })
  })

  test.each([
    'text/plain',
    'text/html',
    'application/xml',
    'application/jsonp',
    'application/json-seq',
    'application/+json+xml',
    '+json',
    'application/json, text/plain',
    'application/json; charset=utf-7',
    'application/json; charset=x-unknown',
    'application/json; charset=utf-8; charset=utf-7',
    'application/json; charset=',
  ])('the media type %s is refused with 415', (type) => {
    expect(refusal('{"a":1}', type).code).toBe('media-type-unsupported')
  })

  test.each([form, `${form}; charset=utf-8`, 'Multipart/Form-Data'])(
    'a body of complete JSON that is declared as %s is JSON, whether or not the hook accepts forms',
    (type) => {
      for (const forms of [true, false]) {
        expect(parse(' \r\n{"a":"x&payload=%7B%7D"}\n', type, { forms })).toEqual({ a: 'x&payload=%7B%7D' })
        expect(parse('[1]', type, { forms })).toEqual([1])
        expect(parse('"a=1"', type, { forms })).toBe('a=1')
      }
    },
  )

  test.each(['{"a":1', '[1', '"a', '[a]=1', '1', 'true', 'a={"b":1}', '{}{}'])(
    'a form whose text %j is no complete JSON object, array or string stays a form',
    (text) => {
      expect(Object.values(parse(text, form, { forms: true }) ?? {}).every((value) => typeof value === 'string')).toBe(
        true,
      )
    },
  )

  test('a hook without forms refuses a form with what to send, and broken JSON in a form type with its error', () => {
    expect(refusal('text=hello', form)).toMatchObject({
      code: 'media-type-unsupported',
      message:
        'The content type must be application/json: this hook takes no forms. Send the fields as one JSON object.',
    })
    expect(refusal('{"text":hello}', form).message).toBe('The body is not JSON: the error is at character 9.')
  })
})

describe('JSON bodies', () => {
  test.each(['{}', '[]', 'null', '0', '"text"', ' {"a" : [1, true]}\r\n'])(
    'the JSON text %j is accepted as a payload',
    (text) => {
      expect(parse(text)).toEqual(JSON.parse(text))
    },
  )

  test('a byte order mark is skipped in each body', () => {
    for (const _ of [1, 2]) expect(parse('\uFEFF{"a":"\u00fc"}')).toEqual({ a: '\u00fc' })
  })

  test('a key __proto__ in a body is data, and changes no object', () => {
    const value = parse('{"__proto__":{"admin":true},"constructor":1}')
    expect(Object.keys(value ?? {})).toEqual(['__proto__', 'constructor'])
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined()
  })

  test.each(['', ' \n', '\uFEFF'])('the error for the body %j says that it is empty', (text) => {
    expect(refusal(text).message).toBe('The body is empty: expected JSON.')
  })

  test.each([
    ['a lone byte', [0x22, 0xff, 0x22]],
    ['a cut sequence', [0x22, 0xe2, 0x82, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ])('a body whose bytes are not UTF-8 is refused: %s', (_, bytes) => {
    expect(refusal(Uint8Array.from(bytes)).message).toBe(
      'The body is not UTF-8. Send UTF-8, or name its charset in the Content-Type.',
    )
    // the decoder still works after an error
    expect(parse('"ü"')).toBe('ü')
  })

  test.each([
    ['{"a":1,}', 8],
    ['[1,]', 4],
    ['{a:1}', 2],
    ["{'a':1}", 2],
    ['{"a" 1}', 6],
    ['{"a":01}', 7],
    ['[1 2]', 4],
    ['{} {}', 4],
    ['[}', 2],
    ['{,}', 2],
    ['NaN', 1],
    ['["a\nb"]', 2],
    ['["\\x"]', 2],
    ['[1,2,tru]', 6],
    ['[\u00a01]', 2],
  ])('the body %j is refused, with the error at character %i', (text, at) => {
    expect(refusal(text).message).toBe(`The body is not JSON: the error is at character ${at}.`)
  })

  test.each(['{', '[1,', '{"a"', '{"a":', '[{"a":[1'])(
    'the error for the body %j says that it ends too early',
    (text) => {
      expect(refusal(text).message).toBe('The body is not JSON: it ends early.')
    },
  )

  test('the error for an invalid body quotes nothing of the body', () => {
    for (const text of ['canary', '{"canary":canary}', '["canary"', '{"a":"canary', 'canary at position 3']) {
      const { message, cause } = refusal(text)
      expect(`${message} ${String(cause)}`).not.toContain('canary')
    }
  })

  test('the error in a body of a million characters is found, without an overflow of the stack', () => {
    expect(refusal(`["${'\\n'.repeat(500_000)}" x]`).message).toContain(`character ${1_000_005}.`)
    expect(refusal(`${'[0,'.repeat(300_000)}x`).message).toContain(`character ${900_001}.`)
  })
})

describe('the depth of bodies', () => {
  const arrays = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  const objects = (levels: number) => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels)

  test('a body of 64 nested levels is accepted, and one of 65 is refused', () => {
    for (const nest of [arrays, objects]) {
      expect(parse(nest(64))).toBeTypeOf('object')
      expect(refusal(nest(65)).message).toBe('The body has more than 64 nested levels.')
    }
    expect(parse(`[1,{"a":${arrays(62)},"b":null}]`)).toBeTypeOf('object')
    expect(refusal(`[1,{"a":1,"b":${arrays(63)}}]`).code).toBe('body-invalid')
  })

  test('a body of 100,000 levels is refused like one of 65, closed or not', () => {
    expect(refusal(arrays(100_000)).message).toBe('The body has more than 64 nested levels.')
    expect(refusal('['.repeat(100_000)).code).toBe('body-invalid')
    expect(refusal('[{"":'.repeat(50_000)).code).toBe('body-invalid')
  })
})

describe('forms as bodies', () => {
  const parseForm = (body: string) => parse(body, form, { forms: true })

  test('a form becomes an object of strings, and the values of a repeated name become an array', () => {
    expect(parseForm('a=1&b=x+y%21&b=&c&b=%C3%BC')).toEqual({ a: '1', b: ['x y!', '', 'ü'], c: '' })
  })

  test('a form may have the names of inherited properties', () => {
    const value = parseForm('__proto__=1&constructor=2&toString=3&__proto__=4')
    expect(Object.entries(value ?? {})).toEqual([
      ['__proto__', ['1', '4']],
      ['constructor', '2'],
      ['toString', '3'],
    ])
  })

  test('JSON in the field payload of a form replaces the form', () => {
    expect(parseForm(`payload=${encodeURIComponent('{"action":"opened"}')}&x=1`)).toEqual({ action: 'opened' })
  })

  test.each(['payload=hello', 'payload=5&x=1', 'payload=%22text%22', 'payload=%7B', 'payload={}&payload={}'])(
    'a field payload without a JSON object or array stays an ordinary field: %s',
    (body) => {
      expect(parseForm(body)).toHaveProperty('payload')
    },
  )

  test('the JSON of a field payload obeys the limit of depth', () => {
    expect(refusal(`payload=${'['.repeat(65)}${']'.repeat(65)}`, form, { forms: true }).code).toBe('body-invalid')
  })

  test('an empty form, and one in an unknown charset, are refused', () => {
    expect(refusal('', form, { forms: true }).code).toBe('body-invalid')
    expect(refusal('a=1', `${form}; charset=utf-7`, { forms: true }).code).toBe('media-type-unsupported')
  })

  test('a form with a hundred thousand names is parsed', () => {
    const value = parseForm(Array.from({ length: 100_000 }, (_, index) => `k${index}`).join('&'))
    expect(Object.keys(value ?? {})).toHaveLength(100_000)
  })
})
