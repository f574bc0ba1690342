// Paths into a payload, as templates, conditions, `forEach` and runners have them. An attacker controls the payload: only own properties are read, and
// no function is called. `formatPath` in `base/path-text.ts` is the inverse.
import type { JsonValue, SentValue } from '../../base/json.ts'
import { anyItem, type ConditionPath, type PathStep, unreadableNames } from '../../base/path-text.ts'
import { Problem } from './problem.ts'

/** Names and array indexes, from the root down. A number is only an index of an array; -1 is an index that no array has. */
export type Path = readonly PathStep[]

/** Makes the Problem for a fault at an index of the expression. */
export type PathFault = (index: number, expected: string) => Problem

const nowhere = -1
/** Whether no payload has a value at the path: it has a negative index, or a name that no path reads. */
export const isNowhere = (path: ConditionPath): boolean => path.includes(nowhere)
const name = /[^.[\]]+/y
const bracket = /\[(?:\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*|(-?\d+)|(\*))\]/sy

/**
 * Parses `messages[0].subject`, `[0].event`, `items.0`, `fields["System.Title"]` or `['a.b'].c`. A name outside quotes has any characters except
 * `.`, `[` and `]`, and no spaces around it. In quotes, the escapes are those of JSON, and `\'`. Throws `config-invalid` with the column, what was
 * expected and what was found, or the Problem that `createFault` makes.
 */
export function parsePath(expression: string, createFault: PathFault = createPathFault(expression)): Path {
  return parseSteps<never>(expression, createFault, (at) => {
    throw createFault(
      at,
      'the number of an array item, because only conditions have "[*]"; a transform can read all items',
    )
  })
}

/** Parses the path of a condition, which may have `[*]` for any item of a list: `issue.labels[*].name`. Throws as `parsePath` does. */
export function parseConditionPath(expression: string): ConditionPath {
  return parseSteps(expression, createPathFault(expression), () => anyItem)
}

function parseSteps<Any>(
  expression: string,
  createFault: PathFault,
  readAnyItem: (at: number) => Any,
): (PathStep | Any)[] {
  const steps: (PathStep | Any)[] = []
  let at = 0
  do {
    if (expression[at] === '[') {
      const [text = '', double, single, index, any] = matchAt(bracket, expression, at) ?? []
      if (text === '') throw createFault(...findBracketFault(expression, at))
      const quoted = double ?? single
      if (any !== undefined) steps.push(readAnyItem(at + 1))
      else if (quoted === undefined) steps.push(Number(index) < 0 ? nowhere : Number(index))
      else steps.push(toStep(unescapeKey(quoted, (escape) => createFault(at + text.indexOf(quoted) + escape, escapes))))
      at += text.length
      continue
    }
    if (steps.length > 0) {
      if (expression[at] !== '.') throw createFault(at, 'a "." or a "["')
      at += 1
    }
    const word = matchAt(name, expression, at)?.[0]
    if (word === undefined) throw createFault(at, 'the name of a field')
    if (word === '*')
      throw createFault(at, '[*] for any item of a list, which only conditions have, or ["*"] for a field of this name')
    if (word !== word.trim()) throw createFault(at, 'the name of a field without spaces around it')
    steps.push(toStep(word))
    at += word.length
  } while (at < expression.length)
  return steps
}

function toStep(key: string): PathStep {
  return unreadableNames.has(key) ? nowhere : key
}

function findBracketFault(expression: string, at: number): [number, string] {
  const inside = /^\s*(["']?)/.exec(expression.slice(at + 1))?.[1] ?? ''
  if (inside !== '') return [at, `a closing ${inside === '"' ? "'\"]'" : '"\']"'}`]
  if (!expression.includes(']', at)) return [at, 'a closing "]"']
  return [at + 1, 'the number of an array item, or a key in quotes (write .field for a field)']
}

const escapes = String.raw`one of \\ \" \' \/ \b \f \n \r \t \u0000`

function unescapeKey(text: string, createFault: (index: number) => Problem): string {
  return text.replace(/\\(u[\da-fA-F]{4}|[^])/g, (_, escape: string, index: number) => {
    if (escape === "'") return escape
    if (!/^(?:u.{4}|["\\/bfnrt])$/.test(escape)) throw createFault(index)
    return String(JSON.parse(`"\\${escape}"`))
  })
}

/** The match of a sticky pattern at an index. */
export function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

/** The value at a path, or undefined. Strings have no properties. Arrays have their items and `length`. */
export function readPath(value: JsonValue, path: Path): JsonValue | undefined
export function readPath(value: SentValue, path: Path): SentValue | undefined
export function readPath(value: SentValue, path: Path): SentValue | undefined {
  let current: SentValue | undefined = value
  for (const step of path) current = readStep(current, step)
  return current
}

/**
 * The values at the path of a condition: one value, undefined if it is missing. With `[*]`, one for each item of the list, and none if there is no
 * list.
 */
export function readValues(value: SentValue | undefined, path: ConditionPath): readonly (SentValue | undefined)[] {
  const found: (SentValue | undefined)[] = []
  const visit = (current: SentValue | undefined, at: number): void => {
    const step = path[at]
    if (step === undefined) found.push(current)
    else if (step !== anyItem) visit(readStep(current, step), at + 1)
    else if (Array.isArray(current)) for (const item of current) visit(item, at + 1)
  }
  visit(value, 0)
  return found
}

function readStep(value: SentValue | undefined, step: PathStep): SentValue | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (typeof step === 'number') return Array.isArray(value) ? value[step] : undefined
  // an array is read like an object here: its own properties are its items, by number, and `length`
  return Object.hasOwn(value, step) ? (value as { [key: string]: SentValue })[step] : undefined
}

/** The text at an index, for a message: a few characters, quoted. */
export function toExcerpt(text: string, index: number): string {
  if (index >= text.length) return 'the end'
  const rest = text.slice(index, index + 20)
  return JSON.stringify(index + 20 < text.length ? `${rest}…` : rest)
}

function createPathFault(expression: string): PathFault {
  return (index, expected) =>
    new Problem(
      'config-invalid',
      `The path ${JSON.stringify(expression)} is wrong at column ${index + 1}: ` +
        `expected ${expected}, found ${toExcerpt(expression, index)}.`,
    )
}
