// JSON with comments and trailing commas, read strictly: what a reader of the file would not see is an error.
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'

const words: Record<ReturnType<typeof printParseErrorCode>, string> = {
  InvalidSymbol: 'a word that is no JSON value (keys and strings need double quotes)',
  InvalidNumberFormat: 'a number that is not written as JSON',
  PropertyNameExpected: 'expected a key in double quotes',
  ValueExpected: 'expected a value',
  ColonExpected: 'expected ":"',
  CommaExpected: 'expected ","',
  CloseBraceExpected: 'expected "}"',
  CloseBracketExpected: 'expected "]"',
  EndOfFileExpected: 'expected the end of the file',
  InvalidCommentToken: 'a comment that is neither // nor /* */',
  UnexpectedEndOfComment: 'a comment that does not end',
  UnexpectedEndOfString: 'a string that does not end on its line',
  UnexpectedEndOfNumber: 'a number that does not end',
  InvalidUnicode: 'a \\u escape that is none',
  InvalidEscapeCharacter: 'an escape that JSON does not have',
  InvalidCharacter: 'a control character inside a string',
  '<unknown ParseErrorCode>': 'something that is no JSON',
}

/**
 * The value of the text, with plain own properties only. `problems` has the first syntax error
 * (`hookloom.jsonc:4:7 expected ","`), or a sentence for each key that stands twice; the value is then undefined.
 */
export function parseJsonc(text: string, file: string): { value: unknown; problems: string[] } {
  const source = text.replace(/^\uFEFF/, '')
  const errors: ParseError[] = []
  const root = parseTree(source, errors, { allowTrailingComma: true, allowEmptyContent: false })
  const [first] = errors
  if (first !== undefined || root === undefined) {
    // the parser stumbles on behind its first error: what it says there sends people to the wrong place
    const { line, column } = toPosition(source, first?.offset ?? 0)
    const word = first === undefined ? words.ValueExpected : words[printParseErrorCode(first.error)]
    return { value: undefined, problems: [`${file}:${line}:${column} ${word}`] }
  }
  const twice: string[] = []
  const value = toValue(root, (name, offset) => {
    const { line, column } = toPosition(source, offset)
    twice.push(`${file}:${line}:${column} "${name}" stands twice in this object`)
  })
  return twice.length === 0 ? { value, problems: [] } : { value: undefined, problems: twice }
}

function toValue(node: Node, reportTwice: (name: string, offset: number) => void): unknown {
  const children = node.children ?? []
  if (node.type === 'array') return children.map((child) => toValue(child, reportTwice))
  if (node.type !== 'object') return node.value
  const entries = new Map<string, unknown>()
  for (const property of children) {
    const [key, item] = property.children ?? []
    if (key === undefined || item === undefined) continue
    const name = String(key.value)
    if (entries.has(name)) reportTwice(name, key.offset)
    entries.set(name, toValue(item, reportTwice))
  }
  // fromEntries defines: a key `__proto__` becomes a property, and is then refused as unknown
  return Object.fromEntries(entries)
}

function toPosition(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split(/\r\n|\n|\r/)
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}
