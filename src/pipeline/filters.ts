// The two filters of templates. More logic than this belongs in a transform.
import { cut } from '../base/text.ts'
import type { Problem } from '../model/problem.ts'
import type { PathFault } from './path.ts'

export type Filter = (text: string) => string

const filterName = /\s*([^\s:|{}"']*)\s*/y
const spaces = /\s*/y
const digits = /\d+/y
const quoted = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/sy

/**
 * Reads `default: "n/a"` or `truncate: 500`, and the spaces around it. What does not parse is thrown as a fault at its index.
 * Linear: no pattern here can match one text in two ways.
 */
export function parseFilter(text: string, from: number, toFault: PathFault): { apply: Filter; end: number } {
  const [before = '', name = ''] = take(filterName, text, from) ?? []
  const nameAt = from + (before.length - before.trimStart().length)
  if (name !== 'default' && name !== 'truncate') throw toFault(nameAt, 'the filter default or truncate')
  const colon = from + before.length
  const example = name === 'default' ? '"n/a"' : '500'
  if (text[colon] !== ':') throw toFault(colon, `a ":" and an argument, as in ${name}: ${example}`)
  const at = skip(text, colon + 1)
  if (name === 'truncate') {
    const count = take(digits, text, at)?.[0]
    const limit = Number(count)
    if (count === undefined || limit < 1) throw toFault(at, `a whole number above 0, as in ${name}: ${example}`)
    return { apply: (value) => truncate(value, limit), end: skip(text, at + count.length) }
  }
  const found = take(quoted, text, at)
  if (found === undefined) throw toFault(at, `a text in quotes, as in ${name}: ${example}`)
  const fallback = toUnescaped(found[1] ?? found[2] ?? '', (index) =>
    toFault(at + 1 + index, String.raw`one of \\ \" \' \n \t`),
  )
  return { apply: (value) => (value === '' ? fallback : value), end: skip(text, at + found[0].length) }
}

function truncate(text: string, limit: number): string {
  // the ellipsis counts
  return text.length <= limit ? text : cut(text, limit - 1)
}

const escapes = new Map([
  ['n', '\n'],
  ['t', '\t'],
  ['\\', '\\'],
  ['"', '"'],
  ["'", "'"],
])

function toUnescaped(text: string, toFault: (index: number) => Problem): string {
  return text.replace(/\\([^])/g, (_, character: string, index: number) => {
    const meant = escapes.get(character)
    if (meant === undefined) throw toFault(index)
    return meant
  })
}

function take(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

function skip(text: string, at: number): number {
  return at + (take(spaces, text, at)?.[0].length ?? 0)
}
