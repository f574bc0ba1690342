// Paths into a payload. An attacker controls the payload: only own properties are read, and no function is called.
import type { JsonValue } from '../base/json.ts'
import { Problem } from '../model/problem.ts'

/** Names and array indexes, from the root down. A number is only an index of an array; -1 is an index that no array has. */
export type Path = readonly (string | number)[]

/** Makes the Problem for a fault at an index of the expression. */
export type PathFault = (index: number, expected: string) => Problem

const nowhere = -1
const unreadable = new Set(['__proto__', 'prototype', 'constructor'])
const name = /[^.[\]]+/y

/**
 * Parses `messages[0].subject`, `[0].event` or `items.0`. A name has any characters except `.`, `[` and `]`, and no spaces around it.
 * Throws `config-invalid` with the column, what was expected and what was found, or the Problem that `createFault` makes.
 */
export function parsePath(expression: string, createFault: PathFault = createPathFault(expression)): Path {
  const segments: (string | number)[] = []
  let at = 0
  do {
    if (expression[at] === '[') {
      const close = expression.indexOf(']', at)
      const index = expression.slice(at + 1, close)
      if (close < 0) throw createFault(at, 'a closing "]"')
      if (!/^-?\d+$/.test(index)) throw createFault(at + 1, 'the number of an array item (write .field for a field)')
      const number = Number(index)
      segments.push(number < 0 ? nowhere : number)
      at = close + 1
      continue
    }
    if (segments.length > 0) {
      if (expression[at] !== '.') throw createFault(at, 'a "." or a "["')
      at += 1
    }
    name.lastIndex = at
    const word = name.exec(expression)?.[0]
    if (word === undefined) throw createFault(at, 'the name of a field')
    if (word !== word.trim()) throw createFault(at, 'the name of a field without spaces around it')
    segments.push(unreadable.has(word) ? nowhere : word)
    at += word.length
  } while (at < expression.length)
  return segments
}

/** The value at a path, or undefined. Strings have no properties. Arrays have their items and `length`. */
export function readPath(value: JsonValue, path: Path): JsonValue | undefined {
  let current: JsonValue | undefined = value
  for (const segment of path) {
    if (typeof current !== 'object' || current === null) return undefined
    if (typeof segment === 'number') {
      if (!Array.isArray(current)) return undefined
      current = current[segment]
    } else {
      if (!Object.hasOwn(current, segment)) return undefined
      // an array is read like an object here: its own properties are its items, by number, and `length`
      current = (current as { [key: string]: JsonValue })[segment]
    }
  }
  return current
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
