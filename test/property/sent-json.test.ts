import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { stringify, tryParseSentJson } from '../../src/base/sent-json.ts'
import { findDigits, isHeld, toHeldNumber } from '../../src/base/sent-number.ts'
import { parseBodyForCode } from '../../src/core/model/body.ts'

const digits = fc.stringMatching(/^(0|[1-9]\d{0,30})$/)
const fraction = fc.stringMatching(/^\.\d{1,25}$/)
const power = fc.stringMatching(/^[eE][+-]?\d{1,3}$/)
const numberText = fc
  .tuple(fc.constantFrom('', '-'), digits, fc.option(fraction, { nil: '' }), fc.option(power, { nil: '' }))
  .map((parts) => parts.join(''))
/** Text that looks like numbers between the signs that surround numbers. */
const misleading = fc.constantFrom(
  '1.50',
  '[1.0,',
  ': 1e400}',
  '"',
  '\\',
  '\\"',
  ',12345678901234567890]',
  '\u2028',
  '💥',
)
const stringText = fc.oneof(fc.string({ unit: 'binary' }), misleading).map((text) => JSON.stringify(text))
const space = fc.constantFrom('', ' ', '\n', '\t ')

/** JSON texts without the same key twice in an object: `1.50` and `1.5` are other texts with the same value. */
const { jsonText } = fc.letrec<{ jsonText: string; list: string; fields: string }>((tie) => ({
  jsonText: fc.oneof(
    { maxDepth: 4 },
    numberText,
    stringText,
    fc.constantFrom('null', 'true'),
    tie('list'),
    tie('fields'),
  ),
  list: fc.array(tie('jsonText'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
  fields: fc
    .uniqueArray(
      fc.tuple(
        stringText.filter((key) => !/^"\d+"$/.test(key)),
        tie('jsonText'),
      ),
      {
        maxLength: 4,
        selector: ([key]) => key,
      },
    )
    .map((entries) => `{${entries.map(([key, value]) => `${key}:${value}`).join(',')}}`),
}))

describe('JSON that somebody sent', () => {
  test('every text is written again as it was sent, byte for byte', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        expect(stringify(tryParseSentJson(text))).toBe(text)
      }),
    )
  })

  test('white space around numbers hides no digits', () => {
    fc.assert(
      fc.property(numberText, space, space, (text, before, after) => {
        expect(
          stringify(tryParseSentJson(`${before}{"a":${before}${text}${after},"b":[${text}${after}]}${after}`)),
        ).toBe(`{"a":${text},"b":[${text}]}`)
      }),
    )
  })

  test('code gets a number, or the text of digits that a double does not hold', () => {
    fc.assert(
      fc.property(numberText, (text) => {
        const [value] = [parseBodyForCode(`[${text}]`, 'json')].flat()
        expect(value).toBe(toHeldNumber(text))
        expect(typeof value === 'number' ? isHeld(text) : value === text).toBe(true)
      }),
    )
  })

  test('every double that a program prints stays a number for code', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (drawn) => {
        // a program prints -0 as 0
        const value = drawn === 0 ? 0 : drawn
        const texts = [String(value), value.toPrecision(17), value.toExponential(16)].filter((text) =>
          /[.e]/.test(text),
        )
        for (const text of texts) expect(toHeldNumber(text)).toBe(value)
      }),
    )
  })

  test('two whole numbers that become the same double are different digits', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n }), (id) => {
        const found = [tryParseSentJson(`[${id},${id + 1n}]`)].flat().map(findDigits)
        expect(found).toEqual([String(id), String(id + 1n)])
      }),
    )
  })
})
