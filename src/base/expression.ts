// Regular expressions that take linear time on any text: RE2, without look-around and back-references.
// A JavaScript regular expression can take exponential time on a text that a sender chose.
import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

/**
 * The time for a text grows with the size of the program. With four times `\pL{1000}`, a page of text takes seconds, in which the gateway does nothing else.
 * The longest expressions of real configurations have a hundred instructions.
 */
const maxInstructions = 250

/**
 * The engine takes at most one step for each instruction and character, and 2,000,000 steps take a third of a second, in which the gateway answers nobody.
 * `all`: for the texts of one list.
 */
export const maxSteps = { one: 500_000, all: 2_000_000 } as const
const maxChars = 10_000

/** `maxChars`: the longest text that it may be called with. `maxCharsOfAll`: the most characters of all texts of a list. */
export type Expression = {
  /** Whether the expression is found anywhere in a text. */
  test(text: string): boolean
  readonly instructions: number
  readonly maxChars: number
  readonly maxCharsOfAll: number
}

/** Throws an error with the reason if the expression does not parse or is too large. */
export function compileExpression(expression: string): Expression {
  // a large count takes long to compile too
  const counted = [...expression.matchAll(/\{\d*,?(\d+)\}/g)].reduce((sum, [, most]) => sum + Number(most), 0)
  if (counted > maxInstructions) throw buildTooLargeError(counted)
  const pattern = loadEngine().compile(expression)
  const instructions = pattern.programSize()
  if (instructions > maxInstructions) throw buildTooLargeError(instructions)
  return {
    test: (text) => pattern.test(text),
    instructions,
    maxChars: Math.min(maxChars, Math.floor(maxSteps.one / instructions)),
    maxCharsOfAll: Math.floor(maxSteps.all / instructions),
  }
}

function buildTooLargeError(size: number): Error {
  return new Error(
    `the expression is too large: it has ${size} or more instructions, and the limit is ${maxInstructions}. Use smaller counts in {…}, such as + for {1,1000}`,
  )
}

/** Why the expression does not parse; undefined if it does. https://github.com/google/re2/wiki/Syntax */
export function findExpressionError(expression: string): string | undefined {
  try {
    compileExpression(expression)
    return undefined
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).replace(/^error parsing regexp: /, '')
  }
}

// loaded when the first expression is compiled: most configurations have none
const loadEngine = (): typeof RE2JS => (createRequire(import.meta.url)('re2js') as { RE2JS: typeof RE2JS }).RE2JS
