// The one word of a reply that counts as its verdict.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { describeVerdict, matchVerdict, readLastLineVerdict } from '../../../src/model/verdict.ts'

const words = ['pass', 'fail', 'needs-work']

describe('matchVerdict', () => {
  test.each([
    ['pass', 'pass'],
    [' **PASS**. ', 'pass'],
    ['_fail_', 'fail'],
    ['Verdict: needs-work', 'needs-work'],
    ['> **Verdict:** `fail`', 'fail'],
  ])('the text %j gives the verdict %s', (text, word) => {
    expect(matchVerdict(text, words)).toBe(word)
  })

  test.each([
    ['not pass'],
    ['pass or fail'],
    ['passed'],
    ['needs work'],
    ['verdict'],
    [''],
    ['pass'.padEnd(201, '.')],
    [undefined],
    [true],
    [['pass']],
    [{ word: 'pass' }],
  ])('the text %j gives no verdict', (text) => {
    expect(matchVerdict(text, words)).toBeUndefined()
  })

  test('matchVerdict returns only a listed word, in the letter case of the list', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.constantFrom('PASS!', 'Verdict: Fail', '__proto__', 'constructor')),
        (text) => {
          const found = matchVerdict(text, words)
          expect(found === undefined || words.includes(found)).toBe(true)
        },
      ),
    )
  })
})

describe('readLastLineVerdict', () => {
  test('readLastLineVerdict reads only the last line that is not blank', () => {
    expect(readLastLineVerdict('fail\nIt is fine.\r\n\npass\n \n', words)).toBe('pass')
    expect(readLastLineVerdict('pass\nOr is it?', words)).toBeUndefined()
  })
})

test('a description of a verdict says how the verdict was read, and whether a second question was asked', () => {
  expect(describeVerdict({ word: 'pass', form: 'tool-call' })).toBe('pass, by tool call')
  expect(describeVerdict({ word: null, isRepaired: true })).toBe('none, after a second question')
})
