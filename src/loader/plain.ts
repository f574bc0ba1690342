// What a transform returned, as plain JSON data: copied without running any code of it, and refused with path and reason.
import { types } from 'node:util'
import { toKindOf } from '../model/json.ts'
import type { JsonValue } from '../model/json.ts'

/** Bytes of a result as JSON. */
const resultBytes = 256 * 1024
const depth = 64

/** Thrown inside this file and for its callers: where in the result, and what was there. */
export class NotPlain extends Error {}

/** A copy of the value. Throws NotPlain with one sentence, free of values: `result.to is a function`. */
export function toPlainData(value: unknown): JsonValue {
  let bytes = 0
  const count = (more: number) => {
    bytes += more
    if (bytes > resultBytes) throw new NotPlain(`the result is over ${resultBytes / 1024} kB`)
  }
  const copyText = (text: string) => {
    // before it is measured: a text of 100 MB is not worth encoding
    count(text.length + 2)
    count(Buffer.byteLength(JSON.stringify(text)) - text.length - 2)
    return text
  }
  const copy = (at: unknown, path: readonly string[], above: readonly object[]): JsonValue => {
    const where = `result${path.join('')}`
    if (typeof at === 'string') return copyText(at)
    if (at === null || typeof at === 'boolean') {
      count(4)
      return at
    }
    if (typeof at === 'number') {
      if (!Number.isFinite(at)) throw new NotPlain(`${where} is a number that JSON does not have`)
      count(String(at).length)
      return at
    }
    if (typeof at !== 'object') throw new NotPlain(`${where} is ${toKindOf(at)}`)
    if (types.isProxy(at)) throw new NotPlain(`${where} is a proxy`)
    if (above.includes(at)) throw new NotPlain(`${where} contains itself`)
    if (above.length >= depth) throw new NotPlain(`the result is deeper than ${depth}`)
    if (!isPlain(at)) throw new NotPlain(`${where} is ${toClass(at)}`)
    const within = [...above, at]
    count(2)
    if (Array.isArray(at)) {
      // each element costs a byte: a sparse array of a billion holes ends here
      count(at.length)
      return Array.from({ length: at.length }, (_, index) =>
        copy(toOwn(at, String(index), where), [...path, `[${index}]`], within),
      )
    }
    const entries: [string, JsonValue][] = []
    for (const key of Object.keys(at)) {
      const step = toStep(key)
      const item = toOwn(at, key, where)
      if (item === undefined) continue
      copyText(key)
      count(2)
      entries.push([key, copy(item, [...path, step], within)])
    }
    // fromEntries defines its keys: `__proto__` stays data
    return Object.fromEntries(entries)
  }
  return copy(value, [], [])
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (Array.isArray(value)) return prototype === Array.prototype
  return prototype === Object.prototype || prototype === null
}

function toClass(value: object): string {
  const maker = toOwnValue(Object.getPrototypeOf(value), 'constructor')
  const name = toOwnValue(maker, 'name')
  return typeof name === 'string' && /^[A-Za-z_$][\w$]{0,39}$/.test(name)
    ? `an instance of ${name}`
    : 'an instance of a class'
}

/** An own value that no code stands behind, else undefined. */
function toOwnValue(source: unknown, key: string): unknown {
  const isReadable = (typeof source === 'object' && source !== null) || typeof source === 'function'
  return isReadable && !types.isProxy(source) ? Object.getOwnPropertyDescriptor(source, key)?.value : undefined
}

/** A property without running its getter: a getter is code, and may never end. */
function toOwn(source: object, key: string, where: string): unknown {
  const property = Object.getOwnPropertyDescriptor(source, key)
  if (property?.get !== undefined || property?.set !== undefined) {
    throw new NotPlain(`${where}${toStep(key)} is a getter`)
  }
  return property?.value
}

/** A key may come from the payload: only what reads like a name is told. */
function toStep(key: string): string {
  if (/^\d{1,6}$/.test(key)) return `[${key}]`
  return /^[A-Za-z_$][\w$]{0,39}$/.test(key) ? `.${key}` : '[…]'
}
