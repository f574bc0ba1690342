import { compareNumbers, isNumber, SentNumber } from './sent-number.ts'

/** Any value that JSON can represent. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }
export type JsonObject = { [key: string]: JsonValue }

/** A value of a JSON text that somebody sent: a number that JavaScript would change is a `SentNumber`. */
export type SentValue = string | number | SentNumber | boolean | null | SentValue[] | { [key: string]: SentValue }
export type SentObject = { [key: string]: SentValue }

export function isJsonObject(value: SentValue | undefined): value is SentObject
export function isJsonObject(value: unknown): value is JsonObject
export function isJsonObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof SentNumber)
}

/** The value of a JSON text; undefined if the text is not JSON. For what somebody sent: `tryParseSentJson`, which keeps numbers. */
export function tryParseJson(text: string): JsonValue | undefined {
  try {
    // JSON.parse returns a JsonValue by definition
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}

/** The kind of a value, for messages that may not show the value itself. */
export function describeValueKind(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array'
  if (typeof value === 'string') return value.trim() === '' ? 'a blank string' : 'a string'
  if (value instanceof SentNumber) return 'a number'
  if (typeof value === 'object') return 'an object'
  return `a ${typeof value}`
}

/** Whether two values are the same JSON. The order of keys does not matter, and an undefined field counts as missing. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (isNumber(one) && isNumber(other)) return compareNumbers(one, other) === 0
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (one instanceof SentNumber || other instanceof SentNumber) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  // own properties only: `constructor` is not data
  const read = (from: object, key: string): unknown => (Object.hasOwn(from, key) ? Reflect.get(from, key) : undefined)
  return Object.keys({ ...one, ...other }).every((key) => isSameJson(read(one, key), read(other, key)))
}
