/** Any value that JSON can represent. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }
export type JsonObject = { [key: string]: JsonValue }

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value of a JSON text; undefined if the text is not JSON. */
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
  if (typeof value === 'object') return 'an object'
  return `a ${typeof value}`
}

/** Whether two values are the same JSON. The order of keys does not matter, and an undefined field counts as missing. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  // own properties only: `constructor` is not data
  const read = (from: object, key: string): unknown => (Object.hasOwn(from, key) ? Reflect.get(from, key) : undefined)
  return Object.keys({ ...one, ...other }).every((key) => isSameJson(read(one, key), read(other, key)))
}
