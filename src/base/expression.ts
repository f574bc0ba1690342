// Regular expressions that take linear time on any text: RE2, without look-around and back-references.
// A JavaScript regular expression can take exponential time on a text that a sender chose.
import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

/** Returns a function that finds the expression anywhere in a text. Throws an error with the reason if the expression does not parse. */
export function compileExpression(expression: string): (text: string) => boolean {
  const pattern = loadEngine().compile(expression)
  return (text) => pattern.test(text)
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
