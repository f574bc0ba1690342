// JSON whose numbers stay as they were sent. A number that JavaScript would change is a `SentNumber`; ordinary texts cost a scan more than `JSON.parse`.
import { type JsonValue, type SentValue, tryParseJson } from './json.ts'
import { isNumber, marking, toHeldNumber, toSentNumber } from './sent-number.ts'

/** What a number of a text becomes. A number stays what `JSON.parse` made of it. */
type ToNumber = (text: string) => SentValue

/** The value of a JSON text with the numbers that were sent; undefined if the text is not JSON. */
export function tryParseSentJson(text: string): SentValue | undefined {
  const value = tryParseJson(text)
  if (value === undefined) return undefined
  try {
    return restoreNumbers(text, value, toSentNumber)
  } catch {
    // nested so deep that the stack ends
    return undefined
  }
}

/**
 * The value with the numbers that `toNumber` makes. `value`: what `JSON.parse` made of the text, which is returned unchanged if it has all
 * numbers already. The numbers are replaced in the text by strings that begin with the mark, and those in the value by numbers, because
 * Node 20 shows the text of a number nowhere.
 */
export function restoreNumbers(text: string, value: JsonValue, toNumber: ToNumber): SentValue {
  if (!hasOddNumber(value) && !otherWholeNumber.test(text)) return value
  const marked = markNumbers(text, toNumber)
  if (marked === undefined) return value
  const { mark } = marking
  // as: JSON.parse and `toNumber` make such values only
  return JSON.parse(marked, (_key, item: unknown) =>
    typeof item === 'string' && item.startsWith(mark) ? toNumber(item.slice(mark.length)) : item,
  ) as SentValue
}

/** The value for code; see `toHeldNumber`. */
export function toHeldValue(value: SentValue): JsonValue {
  if (isNumber(value)) return toHeldNumber(String(value))
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(toHeldValue)
  // fromEntries defines its keys: `__proto__` stays data
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toHeldValue(item)]))
}

/** The JSON of a value, with its numbers as they were sent. */
export function stringify(value: unknown, indent?: number): string {
  marking.isOn = true
  try {
    const text = JSON.stringify(value, undefined, indent)
    // undefined for a value that JSON does not have
    return text?.includes(marking.mark) ? text.replace(markedNumber, '$1') : text
  } finally {
    marking.isOn = false
  }
}

const markedNumber = new RegExp(`"${marking.mark}([^"]*)"`, 'g')

/** A number that is written like 10.0 or 1e3, and may have become a whole number. One in a string costs time only. */
const otherWholeNumber = /\d(?:\.\d+|[eE][+-]?\d+)(?:[,\]}\s]|$)/

/** Whether the value has a number that may have been written in several ways, besides those that `otherWholeNumber` finds. */
function hasOddNumber(value: JsonValue): boolean {
  if (typeof value === 'number') return !Number.isSafeInteger(value) || Object.is(value, -0)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasOddNumber)
  for (const key in value) {
    const item = value[key]
    if (item !== undefined && hasOddNumber(item)) return true
  }
  return false
}

const stringOrNumber = /"|-?\d[\d.eE+-]*/g

/** The text with a marked string in place of each number that `toNumber` changes; undefined if it changes none. `text`: valid JSON. */
function markNumbers(text: string, toNumber: ToNumber): string | undefined {
  const parts: string[] = []
  let from = 0
  stringOrNumber.lastIndex = 0
  for (let found = stringOrNumber.exec(text); found !== null; found = stringOrNumber.exec(text)) {
    const [token] = found
    if (token === '"') {
      stringOrNumber.lastIndex = findStringEnd(text, stringOrNumber.lastIndex)
    } else if (typeof toNumber(token) !== 'number') {
      parts.push(text.slice(from, found.index), `"${marking.mark}${token}"`)
      from = stringOrNumber.lastIndex
    }
  }
  return from === 0 ? undefined : parts.join('') + text.slice(from)
}

/** The index after the quote that ends a string. `at`: the index after the quote that begins it. */
function findStringEnd(text: string, at: number): number {
  for (let end = text.indexOf('"', at); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end + 1
  }
}
