import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cut, cutFrom, takeEnd, takeStart, toWellFormed } from '../../../src/base/text.ts'

const half = '\ud83d'

describe('text that leaves', () => {
  test('half of a character becomes U+FFFD in every text of a message, and whole characters stay', () => {
    const body = { text: `a${half}`, blocks: [{ text: '😀' }, { text: half }], count: 1, none: null }
    expect(toWellFormed(body)).toEqual({
      text: 'a\ufffd',
      blocks: [{ text: '😀' }, { text: '\ufffd' }],
      count: 1,
      none: null,
    })
  })

  test('data without half characters is not copied', () => {
    const body = { text: '😀', list: ['a', { b: 'c' }] }
    expect(toWellFormed(body)).toBe(body)
  })

  test('every cut of a well-formed text is well-formed, and as long as it may be', () => {
    const text = fc.string({ unit: 'binary', maxLength: 40 })
    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 50 }), (whole, max) => {
        for (const part of [cut(whole, max), takeStart(whole, max), takeEnd(whole, max)]) {
          expect(part.isWellFormed()).toBe(true)
          expect(part.length).toBeLessThanOrEqual(max + 1)
        }
        expect(cutFrom(whole, Math.min(max, whole.length), 5).isWellFormed()).toBe(true)
        expect(takeStart(whole, max).length).toBeGreaterThanOrEqual(Math.min(max, whole.length) - 1)
      }),
    )
  })
})
