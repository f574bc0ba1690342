// Detects changes of the globals that all transforms of a worker share. Such a change would affect the next delivery too, so the worker is
// replaced.

export type Intrinsics = {
  /** The first global that changed, such as `JSON.parse`; undefined if none did. Takes about a microsecond. */
  changed(): string | undefined
  /** Accepts the current globals as correct. */
  accept(): void
}

/**
 * The checked globals, written out in one function, because an engine reads a property by a constant name much faster. The names are taken
 * from the text of the function. Globals that Node creates when they are first read are left out.
 */
// oxlint-disable typescript/unbound-method, unicorn/no-thenable, promise/prefer-await-to-then -- they are read, not called
const readAll = (): unknown[] => [
  Array,
  Array.from,
  Array.isArray,
  Array.prototype.concat,
  Array.prototype.every,
  Array.prototype.filter,
  Array.prototype.find,
  Array.prototype.flatMap,
  Array.prototype.forEach,
  Array.prototype.includes,
  Array.prototype.indexOf,
  Array.prototype.join,
  Array.prototype.map,
  Array.prototype.pop,
  Array.prototype.push,
  Array.prototype.reduce,
  Array.prototype.shift,
  Array.prototype.slice,
  Array.prototype.some,
  Array.prototype.sort,
  Array.prototype.splice,
  Array.prototype[Symbol.iterator],
  ArrayBuffer,
  BigInt,
  Boolean,
  Buffer,
  Buffer.alloc,
  Buffer.from,
  Date,
  Date.now,
  Date.parse,
  Date.prototype.getTime,
  Date.prototype.toISOString,
  Date.prototype.toJSON,
  Error,
  Error.prepareStackTrace,
  Function,
  Function.prototype.apply,
  Function.prototype.bind,
  Function.prototype.call,
  Intl,
  JSON,
  JSON.parse,
  JSON.stringify,
  Map,
  Map.prototype.get,
  Map.prototype.has,
  Map.prototype.set,
  Math,
  Math.floor,
  Math.max,
  Math.min,
  Math.random,
  Math.round,
  Number,
  Number.isFinite,
  Number.isInteger,
  Number.prototype.toFixed,
  Number.prototype.toString,
  Object,
  Object.assign,
  Object.create,
  Object.defineProperty,
  Object.entries,
  Object.freeze,
  Object.fromEntries,
  Object.getOwnPropertyDescriptor,
  Object.getPrototypeOf,
  Object.hasOwn,
  Object.keys,
  Object.prototype.hasOwnProperty,
  Object.prototype.toString,
  Object.prototype.valueOf,
  Object.values,
  Promise,
  Promise.all,
  Promise.allSettled,
  Promise.prototype.catch,
  Promise.prototype.finally,
  Promise.prototype.then,
  Promise.race,
  Promise.reject,
  Promise.resolve,
  Proxy,
  Reflect,
  Reflect.get,
  Reflect.ownKeys,
  RegExp,
  RegExp.prototype.exec,
  RegExp.prototype.test,
  Set,
  Set.prototype.add,
  Set.prototype.has,
  String,
  String.prototype.endsWith,
  String.prototype.includes,
  String.prototype.indexOf,
  String.prototype.match,
  String.prototype.replace,
  String.prototype.replaceAll,
  String.prototype.slice,
  String.prototype.split,
  String.prototype.startsWith,
  String.prototype.toLowerCase,
  String.prototype.toUpperCase,
  String.prototype.trim,
  Symbol,
  TextDecoder,
  TextDecoder.prototype.decode,
  TextEncoder,
  TypeError,
  URL,
  URLSearchParams,
  Uint8Array,
  WeakMap,
  clearInterval,
  clearTimeout,
  console,
  console.error,
  console.info,
  console.log,
  console.warn,
  decodeURIComponent,
  encodeURIComponent,
  fetch,
  parseFloat,
  parseInt,
  process,
  process.exit,
  process.getBuiltinModule,
  process.nextTick,
  queueMicrotask,
  setImmediate,
  setInterval,
  setTimeout,
]
// oxlint-enable

// captured, because transforms could replace it
const { ownKeys } = Reflect

export function createIntrinsics(): Intrinsics {
  let values: unknown[] = []
  let size = 0
  let strays = 0
  const accept = () => {
    values = tryRead() ?? []
    size = ownKeys(Object.prototype).length
    strays = countInheritedKeys()
  }
  accept()
  return {
    accept,
    changed: () => {
      const now = tryRead()
      if (now === undefined) return 'a global'
      for (let index = 0; index < now.length; index++) if (now[index] !== values[index]) return findName(index)
      // a new property of a prototype is a change, because every object would inherit it
      if (ownKeys(Object.prototype).length !== size) return 'Object.prototype'
      return countInheritedKeys() === strays ? undefined : 'Array.prototype or Function.prototype'
    },
  }
}

/** The values of the checked globals; undefined if a global is gone, or was replaced by a getter that throws. */
function tryRead(): unknown[] | undefined {
  try {
    return readAll()
  } catch {
    return undefined
  }
}

function findName(index: number): string {
  const text = String(readAll)
  const names = text.slice(text.indexOf('[') + 1, text.lastIndexOf(']')).split(',')
  return names[index]?.trim() ?? 'a global'
}

const emptyList: unknown[] = []
const emptyFunction = () => {}

/** Counts the inherited keys that loops over an empty array and over a function find. There should be none. */
function countInheritedKeys(): number {
  let count = 0
  for (const _ in emptyList) count += 1
  for (const _ in emptyFunction) count += 1
  return count
}
