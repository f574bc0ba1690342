// Finds the place of the error in a text that is not JSON.

const blank = /[ \t\n\r]*/y
// `[ !#-[\]-\uffff]`: every UTF-16 unit that a JSON string may have unescaped
const scalar =
  /"[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[ !#-[\]-\uffff]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/**
 * The offset of the first token that JSON (RFC 8259) does not allow; the length of the text if it only ends early.
 * V8's messages cannot be used: they quote the body, and the most frequent one has no position.
 */
export function findJsonError(text: string): number {
  let at = 0
  // `item` is a value or `]`, `member` a name or `}`, `next` a comma, a closer, or the end
  let expected: 'value' | 'item' | 'name' | 'member' | 'colon' | 'next' = 'value'
  const closers: string[] = []
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    at += found?.length ?? 0
    return found
  }
  for (;;) {
    take(blank)
    const next = text[at]
    const closer = closers.at(-1)
    if (
      next === closer &&
      next !== undefined &&
      (expected === 'next' || expected === 'item' || expected === 'member')
    ) {
      closers.pop()
      expected = 'next'
      at++
    } else if (expected === 'next' && closer !== undefined && next === ',') {
      expected = closer === '}' ? 'name' : 'value'
      at++
    } else if (expected === 'colon' && next === ':') {
      expected = 'value'
      at++
    } else if ((expected === 'value' || expected === 'item') && (next === '[' || next === '{')) {
      closers.push(next === '[' ? ']' : '}')
      expected = next === '[' ? 'item' : 'member'
      at++
    } else if ((expected === 'value' || expected === 'item') && take(scalar) !== undefined) {
      expected = 'next'
    } else if ((expected === 'name' || expected === 'member') && next === '"' && take(scalar) !== undefined) {
      expected = 'colon'
    } else {
      return at
    }
  }
}
