import { describe, expect, test } from 'vitest'
import { isSameJson, type SentValue, tryParseJson } from '../../../src/base/json.ts'
import { stringify, toHeldValue, tryParseSentJson } from '../../../src/base/sent-json.ts'
import { compareNumbers, isNumber, marking, SentNumber, toSentNumber } from '../../../src/base/sent-number.ts'
import { parseBody, parseBodyForCode } from '../../../src/core/model/body.ts'

const parse = (text: string): SentValue => parseBody(text, 'json')
const first = (text: string) => {
  const value = [parse(`[${text}]`)].flat()[0]
  if (!isNumber(value)) throw new Error('not a number')
  return value
}

describe('the numbers of a body', () => {
  test.each([
    '653247040368672769',
    '1.50',
    '10.0',
    '-0',
    '1E5',
    '1e+5',
    '1e400',
    '0.0000001',
    '1e-400',
    '0.10',
    '00'.slice(1),
  ])('%s keeps its digits', (text) => {
    expect(stringify(parse(text))).toBe(text)
    expect(String(first(text))).toBe(text)
  })

  test('an ordinary number is a number of JavaScript', () => {
    expect(parse('[1, 1.5, -20, 1e+21, 9007199254740991]')).toEqual([1, 1.5, -20, 1e21, 9007199254740991])
  })

  test('the last of two equal keys counts, and __proto__ is a key like any other', () => {
    expect(stringify(parse('{"a":1.50,"a":2.50}'))).toBe('{"a":2.50}')
    expect(stringify(parse('{"a":1.50,"a":2}'))).toBe('{"a":2}')
    const value = parse('{"__proto__":1.50,"b":{"__proto__":{"c":2.0}}}')
    expect(stringify(value)).toBe('{"__proto__":1.50,"b":{"__proto__":{"c":2.0}}}')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  test('the JSON in the field "payload" of a form keeps its digits', () => {
    const form = parseBody('payload=%7B%22id%22%3A653247040368672769%7D&other=1.50', 'form')
    expect(stringify(form)).toBe('{"id":653247040368672769}')
  })

  test('text that looks like the mark of another process is a text', () => {
    const forged = '00000000-0000-4000-8000-000000000000'
    expect(stringify(parse(`{"a":"${forged}1.50","b":1.50}`))).toBe(`{"a":"${forged}1.50","b":1.50}`)
    expect(parse(`["${forged}7", 1.50]`)).toEqual([`${forged}7`, expect.any(SentNumber)])
  })

  test('the mark is in no JSON that is written, and a plain JSON.stringify has the digits too', () => {
    const value = { id: toSentNumber('653247040368672769') }
    expect(stringify({ value, list: [value.id], text: '"' })).not.toContain(marking.mark)
    expect(JSON.stringify(value)).toBe('{"id":"653247040368672769"}')
    expect(`${value.id}`).toBe('653247040368672769')
  })

  test('hostile bodies are read to the end', () => {
    const long = 256 * 1024
    for (const text of [
      `[${'1'.repeat(long)}]`,
      `[1${'0'.repeat(long)}1]`,
      `[0.${'0'.repeat(long)}1]`,
      `[${'1.0,'.repeat(long / 4)}1]`,
      `["${'\\\\'.repeat(long / 2)}",1.50]`,
      `["${'\\"'.repeat(long / 2)}",1.50]`,
      `{"${'1.0,'.repeat(long / 4)}":1.50}`,
    ]) {
      expect(stringify(parse(text))).toBe(text)
      expect(toHeldValue(parse(text))).toEqual(parseBodyForCode(text, 'json'))
    }
  })

  test('a text that is nested too deep for the stack is no value', () => {
    const deep = `${'['.repeat(20_000)}1.50${']'.repeat(20_000)}`
    expect(tryParseJson(deep)).toBeDefined()
    expect(tryParseSentJson(deep)).toBeUndefined()
  })
})

describe('comparing numbers', () => {
  test.each<[string, number, number]>([
    ['1700000000000000001', 1700000000000000000, 1],
    ['1700000000000000000', 1700000000000000000, 0],
    ['1699999999999999999', 1700000000000000000, -1],
    ['1.50', 1.5, 0],
    ['1e400', Number.MAX_VALUE, 1],
    ['-1e400', -Number.MAX_VALUE, -1],
    ['1e-400', 0, 1],
    ['-0', 0, 0],
    ['0.1000000000000000000001', 0.1, 1],
    ['0.10000000000000001', 0.1, 0],
    ['-1700000000000000001', -1700000000000000000, -1],
  ])('%s and %d', (text, other, order) => {
    expect(Math.sign(compareNumbers(first(text), other)) + 0).toBe(order)
  })

  test('numbers of JSON are the same if they are equal', () => {
    expect(isSameJson(parse('{"a":[1.50]}'), { a: [1.5] })).toBe(true)
    expect(isSameJson(parse('653247040368672769'), parse('653247040368672768'))).toBe(false)
    expect(isSameJson(parse('1.50'), '1.50')).toBe(false)
    expect(isSameJson(parse('1.50'), {})).toBe(false)
  })
})

describe('numbers for code', () => {
  test.each<[string, number | string]>([
    ['1.50', 1.5],
    ['10.0', 10],
    ['1E5', 100_000],
    ['9007199254740991', 9007199254740991],
    ['9007199254740992', '9007199254740992'],
    ['1700000000000000000', '1700000000000000000'],
    ['-653247040368672769', '-653247040368672769'],
    ['0.10000000000000001', 0.1],
    ['850078703750833.2', Number('850078703750833.2')],
    ['3.141592653589793238', '3.141592653589793238'],
    ['1e22', 1e22],
    ['1e400', '1e400'],
    ['1e-400', '1e-400'],
    ['0.000', 0],
    [`1.5${'0'.repeat(200)}`, 1.5],
  ])('%s', (text, expected) => {
    expect(parseBodyForCode(text, 'json')).toBe(expected)
    expect(toHeldValue(parse(text))).toBe(expected)
  })
})
