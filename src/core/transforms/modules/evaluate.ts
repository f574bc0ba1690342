// Turns a bundle into a function. It is evaluated from memory, outside of every module cache, so reloads do not leak memory.
import { basename, extname } from 'node:path'
import { Script } from 'node:vm'
import { createJiti } from 'jiti'
import type { TransformRef } from '../../model/mapping.ts'
import { describeValueKind } from '../../../base/json.ts'
import { attemptWithin } from '../../../base/time.ts'
import { Problem } from '../../model/problem.ts'
import type { Bundle } from './build.ts'
import { createLocate, type Locate } from './locate.ts'
import { toFileLabel } from '../root.ts'
import { buildThrownReport } from './thrown.ts'

/** The exports of a module, and a function that maps its stacks to its source. */
export type Evaluated = { readonly label: string; readonly exports: object; readonly locate: Locate }

/** A transform whose input and result are not checked. */
export type UncheckedFunction = (input: unknown, context: unknown) => unknown

/**
 * Runs the top level of the bundle once, and begins with it before it returns: the watchdog of a thread expects that. `installProvided` must have ended
 * in this thread. Rejects with `transform-load-failed` if the code throws, with the source line, or takes longer than `timeoutMs`.
 */
export async function evaluateBundle(
  bundle: Pick<Bundle, 'root' | 'file' | 'folder' | 'code' | 'map'>,
  timeoutMs: number,
): Promise<Evaluated> {
  const { file, code, map } = bundle
  const label = toFileLabel(bundle)
  const locate = createLocate({ file, map })
  // jiti gets compiled code; otherwise it would compile the code again, or require the file
  const transform = ({ source }: { source: string }) => ({ code: source })
  const jiti = createJiti(file, { fsCache: false, moduleCache: false, interopDefault: false, transform })
  const options = { filename: file, ext: '.mjs', async: true, forceTranspile: true, cache: {} }
  const ended = await attemptWithin(timeoutMs, () => {
    compile(code, file)
    return jiti.evalModule(code, options)
  })
  if (ended.kind === 'ended') return { label, exports: readExports(ended.value), locate }
  if (ended.kind === 'late') {
    throw new Problem('transform-load-failed', `${label} was not loaded within ${timeoutMs} ms.`)
  }
  const { what, at, frame } = buildThrownReport(ended.thrown, locate)
  throw new Problem('transform-load-failed', `${label} does not load: it threw ${what}${at}.`, { frame })
}

/**
 * Throws V8's syntax error for code that esbuild accepts, such as an invalid regular expression. jiti would try a native import of it,
 * which is never freed and has no line numbers.
 */
function compile(code: string, file: string): void {
  try {
    void new Script(`(async function (module, __filename, __dirname) { ${code}\n})`, { filename: file })
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // the place is above the message: `<file>:<line>`, the line, a caret below the column
    const [place = '', , caret = ''] = error.stack?.split('\n') ?? []
    error.stack = `${error.name}: ${error.message}\n    at ${place}:${caret.indexOf('^') + 1}`
    throw error
  }
}

/** Reads the exports from the result of the bundle, which wraps them as `{ loaded }` because an export may have the name `then`. */
function readExports(result: unknown): object {
  const loaded: unknown =
    typeof result === 'object' && result !== null && 'loaded' in result ? result.loaded : undefined
  return typeof loaded === 'object' && loaded !== null ? loaded : {}
}

/**
 * The function that a mapping calls: the export that it names, or `default`, or `transform`, or the export with the name of the file.
 * Throws `transform-load-failed` if it is not a function.
 */
export function pickExport({ label, exports, locate }: Evaluated, name: TransformRef['export']): UncheckedFunction {
  let found: unknown
  try {
    found = name === undefined ? findDefault(exports, label) : readOwn(exports, name)
  } catch (error) {
    const { what, at, frame } = buildThrownReport(error, locate)
    throw new Problem('transform-load-failed', `${label} does not load: its export threw ${what}${at}.`, { frame })
  }
  // as: the types of loaded code are unknown; the input is built for it, and the result is checked
  if (typeof found === 'function') return found as UncheckedFunction
  if (name !== undefined) {
    const names = Object.keys(exports).slice(0, 20).join(', ') || 'nothing'
    throw new Problem(
      'transform-load-failed',
      `${label} must export a function "${name}", found ${describeValueKind(found)}. It exports: ${names}.`,
    )
  }
  throw new Problem(
    'transform-load-failed',
    `${label} must export a function, found ${describeValueKind(found)}. Did you forget "export default"?`,
  )
}

/** The default export of a module that defines something, or of CommonJS compiled from ESM. A getter may throw. */
export function pickDefault({ exports }: Evaluated): unknown {
  const found = readOwn(exports, 'default')
  if (typeof found !== 'object' || found === null) return found
  return readOwn(found, 'default') ?? found
}

function findDefault(exports: object, label: string): unknown {
  const found = readOwn(exports, 'default')
  if (typeof found === 'function') return found
  const named = readOwn(exports, 'transform')
  if (typeof named === 'function') return named
  const ofFile = readOwn(exports, toExportName(label))
  if (typeof ofFile === 'function') return ofFile
  if (typeof found !== 'object' || found === null) return found
  // CommonJS compiled from ESM: module.exports = { default }
  const inner = readOwn(found, 'default')
  if (typeof inner === 'function') return inner
  // a file without exports counts as CommonJS, whose exports are an empty object
  return Object.keys(found).length === 0 ? undefined : found
}

/** `transforms/pull-request.ts` → `pullRequest` */
function toExportName(label: string): string {
  const name = basename(label, extname(label))
  return name.replace(/[^\p{ID_Continue}$]+(.)?|_+(.)/gu, (_, one = '', other = '') => `${one}${other}`.toUpperCase())
}

/** Own properties only: `toString` is not a transform. */
function readOwn(exports: object, name: string): unknown {
  return Object.hasOwn(exports, name) ? Reflect.get(exports, name) : undefined
}
