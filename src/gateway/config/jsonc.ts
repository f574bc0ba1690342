// JSON with comments and trailing commas, parsed strictly: a duplicate key is an error.
import {
  createScanner,
  findNodeAtLocation,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser'
import { findDigits, toSentNumber } from '../../base/sent-number.ts'
import { cut } from '../../base/text.ts'

const words: Record<ReturnType<typeof printParseErrorCode>, string> = {
  InvalidSymbol: 'not a JSON value (keys and strings need double quotes)',
  InvalidNumberFormat: 'invalid number',
  PropertyNameExpected: 'expected a key in double quotes',
  ValueExpected: 'expected a value',
  ColonExpected: 'expected ":"',
  CommaExpected: 'expected ","',
  CloseBraceExpected: 'expected "}"',
  CloseBracketExpected: 'expected "]"',
  EndOfFileExpected: 'expected the end of the file',
  InvalidCommentToken: 'invalid comment: write // or /* */',
  UnexpectedEndOfComment: 'unterminated comment: expected "*/"',
  UnexpectedEndOfString: 'unterminated string',
  UnexpectedEndOfNumber: 'unterminated number',
  InvalidUnicode: 'invalid \\u escape',
  InvalidEscapeCharacter: 'invalid escape sequence',
  InvalidCharacter: 'control character in a string',
  '<unknown ParseErrorCode>': 'invalid JSON',
}

/**
 * The value of the text. Its objects have plain own properties only. `problems` has the first syntax error (`hookloom.jsonc:4:7 expected
 * ","`), or a sentence for each duplicate key, each key `__proto__` and each number that a double does not hold; then the value is undefined.
 */
export function parseJsonc(text: string, file: string): { value: unknown; problems: string[] } {
  const source = text.replace(/^\uFEFF/, '')
  const errors: ParseError[] = []
  const root = parseTree(source, errors, { allowTrailingComma: true, allowEmptyContent: false })
  const [first] = errors
  if (first !== undefined || root === undefined) {
    // errors after the first one are consequences of it and name the wrong place
    const { line, column } = toPosition(source, first?.offset ?? 0)
    const word = first === undefined ? words.ValueExpected : words[printParseErrorCode(first.error)]
    const wrong = describeBracketFault(source, first?.offset ?? 0) ?? word
    return { value: undefined, problems: [`${file}:${line}:${column} ${wrong}`] }
  }
  const problems: string[] = []
  const value = buildValue(root, source, (problem, offset) => {
    const { line, column } = toPosition(source, offset)
    problems.push(`${file}:${line}:${column} ${problem}`)
  })
  return problems.length === 0 ? { value, problems: [] } : { value: undefined, problems }
}

/**
 * The place of the key at a path, such as `hookloom.jsonc:4:7`. If the key does not exist: the place of the nearest key above it, or of
 * the whole object. The text must parse.
 */
export function locateKey(text: string, file: string, path: readonly (string | number)[]): string {
  const source = text.replace(/^\uFEFF/, '')
  const root = parseTree(source, [], { allowTrailingComma: true })
  if (root === undefined) return file
  for (let depth = path.length; depth >= 0; depth -= 1) {
    const node = findNodeAtLocation(root, path.slice(0, depth))
    if (node === undefined) continue
    // the node of a path is the value; its parent, the property, begins with the key
    const { line, column } = toPosition(source, node.parent?.type === 'property' ? node.parent.offset : node.offset)
    return `${file}:${line}:${column}`
  }
  return file
}

type Bracket = { readonly open: '{' | '['; readonly offset: number }
const closing = { '{': '}', '[': ']' } as const

/** Describes the error at `offset` if it is a missing or wrong closing bracket; undefined for another error. */
function describeBracketFault(source: string, offset: number): string | undefined {
  const scanner = createScanner(source, true)
  const opened: Bracket[] = []
  for (;;) {
    scanner.scan()
    const at = scanner.getTokenOffset()
    if (at >= source.length) return describeUnclosed(source, opened)
    // strings and comments are one token each
    const token = source.slice(at, at + scanner.getTokenLength())
    const isClosing = token === '}' || token === ']'
    if (at >= offset) return isClosing ? describeMismatch(source, opened, token) : undefined
    if (token === '{' || token === '[') opened.push({ open: token, offset: at })
    if (isClosing) opened.pop()
  }
}

function describeUnclosed(source: string, opened: readonly Bracket[]): string | undefined {
  const last = opened.at(-1)
  if (last === undefined) return undefined
  const { line } = toPosition(source, last.offset)
  return `unexpected end of the file: the "${last.open}" of line ${line} is not closed. Expected "${closing[last.open]}"`
}

function describeMismatch(source: string, opened: readonly Bracket[], found: string): string | undefined {
  const last = opened.at(-1)
  if (last === undefined || closing[last.open] === found) return undefined
  const { line } = toPosition(source, last.offset)
  return `expected "${closing[last.open]}" for the "${last.open}" of line ${line}, found "${found}"`
}

function buildValue(node: Node, source: string, report: (problem: string, offset: number) => void): unknown {
  const children = node.children ?? []
  if (node.type === 'array') return children.map((child) => buildValue(child, source, report))
  if (node.type === 'number') {
    const text = source.slice(node.offset, node.offset + node.length)
    const sent = toSentNumber(text)
    if (typeof sent !== 'number' && findDigits(sent) !== undefined) report(describeLongNumber(text), node.offset)
  }
  if (node.type !== 'object') return node.value
  const entries = new Map<string, unknown>()
  const offsets = new Map<string, number>()
  for (const property of children) {
    const [key, item] = property.children ?? []
    if (key === undefined || item === undefined) continue
    const name = String(key.value)
    const first = offsets.get(name)
    // a recipe that is pasted below the other sections has this mistake
    if (first !== undefined) {
      const { line } = toPosition(source, first)
      report(`duplicate key "${name}": line ${line} has it already. Move what is in this one there`, key.offset)
    }
    offsets.set(name, first ?? key.offset)
    // a schema drops this key of a record without an error
    if (name === '__proto__')
      report('no key can have the name "__proto__". Remove it, or choose another name', key.offset)
    entries.set(name, buildValue(item, source, report))
  }
  return Object.fromEntries(entries)
}

/** Otherwise a condition would compare another number. */
function describeLongNumber(text: string): string {
  const short = cut(text, 40)
  return `a double does not hold the number ${short}. In a condition, write its digits in quotes: "${short}"`
}

function toPosition(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split(/\r\n|\n|\r/)
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}
