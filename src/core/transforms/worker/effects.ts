// Blocks the functions of this thread that change something outside of it: the network, other processes and threads, and files. Code that
// only computes, or reads files by path, works as usual. This catches the mistakes of an author; it is no sandbox for hostile code.
import { createRequire, syncBuiltinESMExports } from 'node:module'

/** The functions of `fs` that only read. All others are blocked, so that a new function of Node is blocked too. */
const fileReaders = new Set(
  (
    'access close exists fstat glob lstat opendir read readdir readFile readlink readv realpath stat statfs openAsBlob ' +
    'createReadStream ReadStream FileReadStream Dir Dirent Stats'
  ).split(' '),
)

/** Modules of which each function is blocked, except the class `Resolver`: libraries create one while they load. Its methods are blocked below. */
const blockedModules = ['child_process', 'cluster', 'dns', 'dns/promises', 'inspector', 'inspector/promises']

/** The blocked functions of modules whose other exports are harmless. */
const blockedFunctions: Readonly<Record<string, readonly string[]>> = {
  module: ['enableCompileCache', 'flushCompileCache'],
  os: ['setPriority'],
  sqlite: ['DatabaseSync', 'backup'],
  v8: ['setFlagsFromString', 'setHeapSnapshotNearHeapLimit', 'takeCoverage', 'writeHeapSnapshot'],
  wasi: ['WASI'],
  worker_threads: ['BroadcastChannel', 'Worker'],
}

/**
 * Every connection of Node, including those of `fetch`, TLS and HTTP/2, is made by these methods. Classes such as `http.Agent` stay, because
 * libraries create them while they load.
 */
const blockedMethods: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  net: { Socket: ['connect'], Server: ['listen'] },
  dgram: { Socket: ['bind', 'connect', 'send', 'sendto', 'addMembership'] },
  dns: { Resolver: resolverMethods() },
  'dns/promises': { Resolver: resolverMethods() },
}

const processFunctions = ['_debugProcess', '_kill', '_linkedBinding', 'binding', 'dlopen', 'kill']

function resolverMethods(): string[] {
  const kinds = ['', '4', '6', 'Any', 'Caa', 'Cname', 'Mx', 'Naptr', 'Ns', 'Ptr', 'Soa', 'Srv', 'Tlsa', 'Txt']
  return [...kinds.map((kind) => `resolve${kind}`), 'reverse']
}

/** Call it before any code of an author is loaded. */
export function blockEffects(): void {
  const load = createRequire(import.meta.url)
  const find = (name: string): object | undefined => {
    try {
      return load(`node:${name}`) as object // as: the modules of Node are objects
    } catch {
      return undefined // only a newer version of Node has this module
    }
  }
  for (const [name, classes] of Object.entries(blockedMethods)) {
    const found = find(name)
    for (const [className, methods] of Object.entries(classes)) {
      const { prototype } = Reflect.get(found ?? {}, className) as { prototype: object } // as: these are classes
      for (const method of methods) if (method in prototype) block(prototype, method, `${name}.${className}.${method}`)
    }
  }
  for (const name of blockedModules) blockAll(find(name), name, (key) => key === 'Resolver')
  for (const [name, functions] of Object.entries(blockedFunctions))
    blockAll(find(name), name, (key) => !functions.includes(key))
  blockFiles(find('fs'), 'fs')
  blockFiles(find('fs/promises'), 'fs/promises')
  for (const name of processFunctions) block(process, name, `process.${name}`)
  if (typeof process.report === 'object') block(process.report, 'writeReport', 'process.report.writeReport')
  for (const name of ['fetch', 'WebSocket', 'EventSource', 'BroadcastChannel'])
    if (name in globalThis) block(globalThis, name, name)
  syncBuiltinESMExports()
}

function blockFiles(found: object | undefined, label: string): void {
  const isReader = (key: string) => fileReaders.has(key.replace(/Sync$/, ''))
  blockAll(found, label, (key) => isReader(key) || key === 'open' || key === 'openSync')
  for (const name of ['open', 'openSync', 'readFile', 'readFileSync']) {
    const call: unknown = Reflect.get(found ?? {}, name)
    if (found === undefined || typeof call !== 'function') continue
    // the handle of `fs/promises` has methods that change files, even if the file is open only for reading
    if (label === 'fs/promises' && name === 'open') block(found, name, `${label}.${name}`)
    else
      replace(
        found,
        name,
        buildReadOnly(call, `${label}.${name}`, name.startsWith('open') ? readFlags : readFlagOption),
      )
  }
}

/** The second argument of `open` is the flags or the callback. */
const readFlags = (given: unknown) => (typeof given === 'function' ? undefined : given)
/** The second argument of `readFile` may be options with a flag. The streams open their files with `open`. */
const readFlagOption = (given: unknown) =>
  typeof given === 'object' && given !== null ? Reflect.get(given, 'flag') : undefined

function buildReadOnly(
  open: object,
  label: string,
  read: (given: unknown) => unknown,
): (...given: unknown[]) => unknown {
  // as: the caller checked that it is a function
  const call = open as (...given: unknown[]) => unknown
  return (...given) => {
    if (!isReading(read(given[1]))) throw buildError(label)
    return call(...given)
  }
}

function isReading(flags: unknown): boolean {
  return flags === undefined || flags === null || flags === 0 || flags === 'r'
}

function blockAll(found: object | undefined, label: string, isLeft: (key: string) => boolean): void {
  for (const [key, value] of Object.entries(found ?? {}))
    if (found !== undefined && typeof value === 'function' && !isLeft(key)) block(found, key, `${label}.${key}`)
}

/** The replacement throws, even when it is called as a constructor. */
function block(owner: object, name: string, label: string): void {
  replace(owner, name, function blocked() {
    throw buildError(label)
  })
}

function replace(owner: object, name: string, value: unknown): void {
  Object.defineProperty(owner, name, { value, configurable: false, writable: false, enumerable: true })
}

function buildError(label: string): Error {
  return new Error(
    `${label} has an effect, and a shadow has none. Skip it when context.replay is true, as in a replay, or try the module with "hookloom run".`,
  )
}
