// Writes the result of a transform as JSON without running any of its code. A result that is not plain data is refused with the path and
// the reason.
import { types } from 'node:util'
import { describeValueKind } from '../../../base/json.ts'

/** The limit of the JSON of a result, in bytes. */
const resultBytes = 256 * 1024
const depth = 64

// captured, because the transform may have replaced them
const { stringify } = JSON
const { isArray } = Array
const { getOwnPropertyDescriptor, getPrototypeOf, keys } = Object
const { byteLength } = Buffer
const { isProxy } = types
const isFiniteNumber = Number.isFinite

/** The message is the sentence of `toPlainJson`. */
export class NotPlainError extends Error {}

/** Throws NotPlainError with one sentence that contains no values, such as `result.to is a function`. */
export function toPlainJson(value: unknown): string {
  let bytes = 0
  const count = (more: number) => {
    bytes += more
    if (bytes > resultBytes) throw new NotPlainError(`the result is larger than ${resultBytes / 1024} kB`)
  }
  const writeText = (text: string): string => {
    // the length is checked before the text is encoded, because the text may have 100 MB
    count(text.length + 2)
    const json = stringify(text)
    count(byteLength(json) - text.length - 2)
    return json
  }
  const write = (at: unknown, within: Parent | undefined): string => {
    if (typeof at === 'string') return writeText(at)
    if (at === null || typeof at === 'boolean') {
      count(4)
      return `${at}`
    }
    if (typeof at === 'number') {
      if (!isFiniteNumber(at))
        throw new NotPlainError(`${describePlace(within)} is a number that JSON cannot represent`)
      const text = `${at}`
      count(text.length)
      return text
    }
    if (typeof at !== 'object') throw new NotPlainError(`${describePlace(within)} is ${describeValueKind(at)}`)
    if (isProxy(at)) throw new NotPlainError(`${describePlace(within)} is a proxy`)
    let level = 0
    for (let above = within; above !== undefined; above = above.above) {
      if (above.of === at) throw new NotPlainError(`${describePlace(within)} contains itself`)
      level += 1
    }
    if (level >= depth) throw new NotPlainError(`the result has more than ${depth} levels`)
    if (!isPlain(at)) throw new NotPlainError(`${describePlace(within)} is ${describeClass(at)}`)
    count(2)
    const parent: Parent = { of: at, key: '', above: within }
    return isArray(at) ? writeItems(at, parent) : writeEntries(at, parent)
  }
  const writeItems = (list: readonly unknown[], parent: Parent): string => {
    // each element counts as a byte, so that a sparse array of a billion holes is refused here
    count(list.length)
    let json = ''
    for (let index = 0; index < list.length; index += 1) {
      parent.key = `${index}`
      json += `${index === 0 ? '' : ','}${write(readOwnProperty(list, parent), parent)}`
    }
    return `[${json}]`
  }
  const writeEntries = (source: object, parent: Parent): string => {
    let json = ''
    const names = keys(source)
    for (let index = 0; index < names.length; index += 1) {
      parent.key = names[index] ?? ''
      const item = readOwnProperty(source, parent)
      if (item === undefined) continue
      const name = writeText(parent.key)
      count(2)
      json += `${json === '' ? '' : ','}${name}:${write(item, parent)}`
    }
    return `{${json}}`
  }
  return write(value, undefined)
}

/** A place in the result, and the key that is being written. */
type Parent = { readonly of: object; key: string; readonly above: Parent | undefined }

function describePlace(parent: Parent | undefined): string {
  return parent === undefined ? 'result' : `${describePlace(parent.above)}${describeStep(parent.key)}`
}

function isPlain(value: object): boolean {
  const prototype: unknown = getPrototypeOf(value)
  if (isArray(value)) return prototype === Array.prototype
  return prototype === Object.prototype || prototype === null
}

function describeClass(value: object): string {
  const maker = readOwnValue(getPrototypeOf(value), 'constructor')
  const name = readOwnValue(maker, 'name')
  return typeof name === 'string' && /^[A-Za-z_$][\w$]{0,39}$/.test(name)
    ? `an instance of ${name}`
    : 'an instance of a class'
}

/** The value of an own property; undefined if it has a getter. */
function readOwnValue(source: unknown, key: string): unknown {
  const isReadable = (typeof source === 'object' && source !== null) || typeof source === 'function'
  return isReadable && !isProxy(source) ? getOwnPropertyDescriptor(source, key)?.value : undefined
}

/** Reads a property without running a getter, because a getter is code and may never return. */
function readOwnProperty(source: object, parent: Parent): unknown {
  const property = getOwnPropertyDescriptor(source, parent.key)
  if (property?.get !== undefined || property?.set !== undefined)
    throw new NotPlainError(`${describePlace(parent)} is a getter`)
  return property?.value
}

/** A key may come from the payload, so only a key that looks like a name is shown. */
function describeStep(key: string): string {
  if (/^\d{1,6}$/.test(key)) return `[${key}]`
  return /^[A-Za-z_$][\w$]{0,39}$/.test(key) ? `.${key}` : '[…]'
}
