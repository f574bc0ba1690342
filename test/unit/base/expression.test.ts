import { describe, expect, test } from 'vitest'
import { compileExpression, findExpressionError, maxSteps } from '../../../src/base/expression.ts'

describe('expressions', () => {
  test.each([
    String.raw`\pL{1000}\pL{1000}\pL{1000}\pL{1000}`,
    String.raw`((\pL{10}){10}){10}`,
    String.raw`(?:a{0,1000})`,
    'a'.repeat(1_000),
  ])('an expression whose program is too large is refused, with the limit', (expression) => {
    expect(findExpressionError(expression)).toMatch(
      /^the expression is too large: it has \d+ or more instructions, and the limit is 250\./,
    )
  })

  test.each([
    String.raw`^(feat|fix)(\(.+\))?:`,
    String.raw`(?i)(deploy|release) [a-z]{3,60}-\d{1,20}`,
    String.raw`\pL{100}`,
  ])('the expression %s is accepted', (expression) => {
    expect(findExpressionError(expression)).toBeUndefined()
    expect(compileExpression(expression).test('')).toBe(false)
  })

  test.each([
    [String.raw`^refs/heads/release/`, 10_000],
    [String.raw`a[ab]{100}\bc`, 4_761],
    [String.raw`\pL{240}`, 2_066],
  ])(
    'a search for %s takes at most 500,000 steps in a text, and 2,000,000 in the texts of a list',
    (expression, chars) => {
      const { instructions, maxChars, maxCharsOfAll } = compileExpression(expression)
      expect(maxChars).toBe(chars)
      expect(instructions * maxChars).toBeLessThanOrEqual(maxSteps.one)
      expect(instructions * maxCharsOfAll).toBeLessThanOrEqual(maxSteps.all)
    },
  )
})
