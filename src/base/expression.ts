// Regular expressions that take linear time on any text: RE2, without look-around and back-references.
// A JavaScript regular expression can take exponential time on a text that a sender chose.
import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

/**
 * The time for a text grows with the size of the program. With four times `\pL{1000}`, a page of text takes seconds, in which the gateway does nothing else.
 * The longest expressions of real configurations have a hundred instructions.
 */
const maxInstructions = 250

/** Returns a function that finds the expression anywhere in a text. Throws an error with the reason if the expression does not parse or is too large. */
export function compileExpression(expression: string): (text: string) => boolean {
  // a large count takes long to compile too
  const counted = [...expression.matchAll(/\{\d*,?(\d+)\}/g)].reduce((sum, [, most]) => sum + Number(most), 0)
  if (counted > maxInstructions) throw buildTooLargeError(counted)
  const pattern = loadEngine().compile(expression)
  if (pattern.programSize() > maxInstructions) throw buildTooLargeError(pattern.programSize())
  return (text) => pattern.test(text)
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
