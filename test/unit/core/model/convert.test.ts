import { describe, expect, test } from 'vitest'
import type { SentValue } from '../../../../src/base/json.ts'
import { openBody, readPayload } from '../../../../src/core/model/body.ts'
import { convertBody } from '../../../../src/core/model/convert.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import type { SentBody } from '../../../../src/core/model/syntax.ts'

const accepts = { forms: true, xml: true, plain: true }
const form = 'application/x-www-form-urlencoded'

function read(text: string | Buffer, contentType: string | undefined, isProved = false): SentValue | string {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
  const sent: SentBody = { bytes, contentType, isProved }
  try {
    const converted = convertBody(sent, accepts)
    const body = openBody({ ...sent, ...converted }, accepts)
    // what is stored is read the same way when it runs again
    if (converted !== undefined) expect(convertBody({ isProved: false, ...converted }, accepts)).toBeUndefined()
    return readPayload(body)
  } catch (error) {
    if (error instanceof Problem) return error.code
    throw error
  }
}

describe('a body in another charset', () => {
  test.each([
    ['{"a":"caf\xe9 \x80"}', 'application/json; charset=iso-8859-1', { a: 'café €' }],
    ['{"a":"\xc8"}', 'application/json; charset="KOI8-R"', { a: 'х' }],
    ['{"a":"\x83\x5c"}', 'application/json; charset=shift_jis', { a: 'ソ' }],
    ['caf\xe9', 'text/plain; charset=windows-1252', 'café'],
    ['<a>\xe9</a>', 'application/xml; charset=iso-8859-1', '<a>é</a>'],
    [
      '<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>',
      'text/xml',
      '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>',
    ],
    ['Event=caf%E9&b=\xe9', form, { Event: 'café', b: 'é' }],
    ['Event=%C3%A9&b=%E9', form, { Event: 'é', b: 'é' }],
    ['Event=%C3%A9', `${form}; charset=iso-8859-1`, { Event: 'Ã©' }],
    ['a=%C8&_charset_=koi8-r', form, { a: 'х', _charset_: 'koi8-r' }],
    ['__proto__=%E9&a+b=%E9', form, JSON.parse('{"__proto__":"é","a b":"é"}')],
    ['{"a":"caf\xe9"}', form, { a: 'café' }],
    ['{"a":"caf\xe9"}', 'application/json', 'body-invalid'],
    ['{"a":1}', 'application/json; charset=utf-7', 'media-type-unsupported'],
  ] as const)('%j of %s is read', (text, type, expected) => {
    expect(read(text, type)).toEqual(expected)
  })

  test('UTF-16 with a byte order mark is read, whatever is declared', () => {
    const little = Buffer.from('\ufeff{"a":"é"}', 'utf16le')
    for (const bytes of [little, Buffer.from(little).swap16()]) {
      expect(read(bytes, 'application/json')).toEqual({ a: 'é' })
      expect(read(bytes, undefined, true)).toEqual({ a: 'é' })
    }
  })

  test('a header changes no field of a proved body: it counts only for bytes that are not UTF-8, and only with a byte for each character', () => {
    const sent = '{"a":"\x83\\\\","b":"x"}'
    expect(read(sent, 'application/json; charset=shift_jis', true)).toBe('media-type-unsupported')
    expect(read(sent, 'application/json; charset=iso-8859-1', true)).toEqual({ a: 'ƒ\\', b: 'x' })
    expect(read('{"a":"\xc3\xa9"}', 'application/json; charset=iso-8859-1', true)).toEqual({ a: 'é' })
    expect(read('{"a":"x"}', 'application/json; charset=utf-16', true)).toEqual({ a: 'x' })
  })
})

describe('the parts of a multipart form', () => {
  const type = 'multipart/form-data; boundary=x'
  const part = (headers: string, value: string) =>
    `--x\r\nContent-Disposition: form-data; ${headers}\r\n\r\n${value}\r\n`
  const end = '--x--\r\n'

  test('each value is read in the charset that its part, the field charsets or the field _charset_ names for it', () => {
    const body =
      part('name="own"\r\nContent-Type: text/plain; charset=koi8-r', '\xc8') +
      part('name="charsets"', '{"listed":"iso-8859-2","to":"UTF-8"}') +
      part('name="listed"', '\xb3') +
      part('name="to"', '\xc3\xa9') +
      part('name="other"', '\xe9') +
      part('name="empty"', '')
    expect(read(body + end, type)).toMatchObject({ own: 'х', listed: 'ł', to: 'é', other: 'é', empty: '' })
    expect(read(part('name="a"', '\xc8') + part('name="_charset_"', 'koi8-r') + end, type)).toMatchObject({ a: 'х' })
    expect(read(part('name="a"', '\xe9') + end, `${type}; charset=iso-8859-1`)).toEqual({ a: 'é' })
  })

  test('JSON in a file named payload is the payload, and a small file of text keeps its text', () => {
    const file = part(
      'name="payload"; filename="p.json"\r\nContent-Type: application/octet-stream',
      '{"action":"opened"}',
    )
    expect(read(file + part('name="thumb"; filename="t.jpg"\r\nContent-Type: image/jpeg', '\xff') + end, type)).toEqual(
      {
        action: 'opened',
      },
    )
    const log = part('name="log"; filename="%22a%22.txt"\r\nContent-Type: text/plain', 'one')
    expect(read(log, type)).toBe('body-invalid')
    expect(read(log + part('name="t"; filename="t.jpg"\r\nContent-Type: image/jpeg', '\xff') + end, type)).toEqual({
      log: { name: '"a".txt', type: 'text/plain', size: 3, text: 'one' },
      t: { name: 't.jpg', type: 'image/jpeg', size: 1 },
    })
  })

  test('a line that only begins like the delimiter is text, and a part without a name is refused', () => {
    expect(read(part('name="a"', 'b\r\n--xy') + end, type)).toEqual({ a: 'b\r\n--xy' })
    expect(read(`--x\r\n\r\nvalue\r\n${end}`, type)).toBe('body-invalid')
  })
})

test('an empty body is null where it is accepted, and else refused with the key', () => {
  for (const text of ['', ' \r\n\t']) {
    for (const contentType of [undefined, 'application/json', form, 'text/plain']) {
      const sent = { bytes: Buffer.from(text), contentType, isProved: false }
      expect(readPayload(openBody(sent, { ...accepts, empty: true }))).toBeNull()
      expect(() => openBody(sent, accepts)).toThrow('"accept": ["empty"]')
    }
  }
})

describe('a multipart form of an attacker', () => {
  const type = 'multipart/form-data; boundary=x'
  const part = (headers: string, value: string) =>
    `--x\r\nContent-Disposition: form-data; ${headers}\r\n\r\n${value}\r\n`
  const end = '--x--\r\n'
  const many = 200_000

  test.each([
    ['no final delimiter', part('name="a"', '1')],
    ['no delimiter', 'a=1'],
    ['no blank line after the headers', `--x\r\nContent-Disposition: form-data; name="a"\r\n${end}`],
    ['a header without end', `--x\r\nContent-Disposition: form-data; name="${'a'.repeat(many)}`],
    ['thousands of headers, none of which names the part', `--x\r\n${'a: b\r\n'.repeat(many)}\r\n1\r\n${end}`],
    ['thousands of parameters without a name', part(`${'; a="'.repeat(many)}`, '1') + end],
    ['thousands of lines that begin like a delimiter', '\r\n--xy'.repeat(many)],
    ['more parts than a form may have', part('name="a"', '').repeat(5_000) + end],
    ['a second part in the first one', `--x\r\n--x\r\n${end}`],
  ])('is refused: %s', (_what, body) => {
    expect(read(body, type)).toBe('body-invalid')
  })

  test('names and file names are only text: prototypes, quotes in quotes, percent signs and paths', () => {
    const body =
      part('name="__proto__"', '{"polluted":1}') +
      part('name="constructor"', '1') +
      part('name="a\\"; filename=\\"b"', '2') +
      part('name="f"; filename="%2e%2e%2F%22\xc3\xa9.txt"\r\nContent-Type: text/plain', '3') +
      end
    const payload = read(body, type)
    expect(Object.entries(payload ?? {})).toEqual([
      ['__proto__', '{"polluted":1}'],
      ['constructor', '1'],
      ['a"; filename="b', '2'],
      ['f', { name: '%2e%2e%2F"é.txt', type: 'text/plain', size: 1, text: '3' }],
    ])
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  test('the boundary in a value without a line break of its own is a part of the value', () => {
    expect(read(part('name="a"', '1 --x-- and --x\n--x--\nlast') + end, type)).toEqual({
      a: '1 --x-- and --x\n--x--\nlast',
    })
  })

  test('a large header of a part and what follows the form change nothing', () => {
    const body = part(`name="a"\r\nX-Filler: ${'f'.repeat(many)}`, '1') + end + part('name="b"', '2')
    expect(read(body, type)).toEqual({ a: '1' })
  })
})
