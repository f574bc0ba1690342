// A bundle becomes a function. Evaluated from memory: nothing stays in a module cache, so that reloads do not add up.
import { relative, sep } from 'node:path'
import { createJiti } from 'jiti'
import type { TransformRef } from '../model/mapping.ts'
import { toKindOf } from '../model/json.ts'
import { Problem } from '../model/problem.ts'
import type { Bundle } from './build.ts'
import { createLocate } from './locate.ts'
import type { Locate } from './locate.ts'
import { toThrownReport } from './thrown.ts'
import { toModuleLabel } from './root.ts'

/** What a module exports, and the way back from its stacks to its source. */
export type Evaluated = { readonly label: string; readonly exports: object; readonly locate: Locate }

/** A transform whose parameters and result nobody has checked. */
export type UncheckedFunction = (input: unknown, context: unknown) => unknown

/**
 * Runs the bundle's top level once, to its end. Throws `transform-load-failed` with the source line when it throws, or when
 * it is not through in `timeoutMs`.
 */
export async function evaluateBundle(bundle: Bundle, timeoutMs: number): Promise<Evaluated> {
  const { file, code, map } = bundle
  const label = toModuleLabel(relative(bundle.root, file).split(sep).join('/'))
  const locate = createLocate({ file, map })
  // jiti is given code that is compiled already: left to itself it runs its own compiler over it, or requires the file
  const transform = ({ source }: { source: string }) => ({ code: source })
  const jiti = createJiti(file, { fsCache: false, moduleCache: false, interopDefault: false, transform })
  let timer: NodeJS.Timeout | undefined
  try {
    const late = new Promise<never>((_, reject) => {
      const problem = new Problem('transform-load-failed', `${label} was not loaded within ${timeoutMs} ms.`)
      timer = setTimeout(reject, timeoutMs, problem)
    })
    const evaluated = jiti.evalModule(code, {
      filename: file,
      ext: '.mjs',
      async: true,
      forceTranspile: true,
      cache: {},
    })
    return { label, exports: toExports(await Promise.race([evaluated, late])), locate }
  } catch (error) {
    if (error instanceof Problem) throw error
    const { what, at, frame } = toThrownReport(error, locate)
    throw new Problem('transform-load-failed', `${label} does not load: it threw ${what}${at}.`, {
      frame,
      cause: error,
    })
  } finally {
    clearTimeout(timer)
  }
}

/** What the bundle left behind: `{ loaded }`, in a wrapper because an export may be called `then`. */
function toExports(left: unknown): object {
  const loaded: unknown = typeof left === 'object' && left !== null && 'loaded' in left ? left.loaded : undefined
  return typeof loaded === 'object' && loaded !== null ? loaded : {}
}

/** The function that a mapping calls: its named export, else `default`, else `transform`. Throws `transform-load-failed`. */
export function pickExport({ label, exports, locate }: Evaluated, name: TransformRef['export']): UncheckedFunction {
  let found: unknown
  try {
    found = name === undefined ? toDefault(exports) : Reflect.get(exports, name)
  } catch (error) {
    const { what, at, frame } = toThrownReport(error, locate)
    throw new Problem('transform-load-failed', `${label} does not load: its export threw ${what}${at}.`, { frame })
  }
  // no type can say what a loaded function takes or gives; its input is made for it, its result is checked
  if (typeof found === 'function') return found as UncheckedFunction
  if (name !== undefined) {
    const names = Object.keys(exports).slice(0, 20).join(', ') || 'nothing'
    throw new Problem(
      'transform-load-failed',
      `${label} must export a function "${name}", found ${toKindOf(found)}. It exports: ${names}.`,
    )
  }
  throw new Problem(
    'transform-load-failed',
    `${label} must export a function, found ${toKindOf(found)}. Did you forget "export default"?`,
  )
}

function toDefault(exports: object): unknown {
  const found: unknown = Reflect.get(exports, 'default')
  if (typeof found === 'function') return found
  const named: unknown = Reflect.get(exports, 'transform')
  if (typeof named === 'function') return named
  // CommonJS made from ESM: module.exports = { default }
  const inner: unknown = typeof found === 'object' && found !== null ? Reflect.get(found, 'default') : undefined
  return typeof inner === 'function' ? inner : found
}
