// The evaluated bundles of a worker.
import { Problem, toProblem } from '../../model/problem.ts'
import type { Callable } from './call.ts'
import { evaluateBundle, pickExport } from '../modules/evaluate.ts'
import type { Evaluated } from '../modules/evaluate.ts'
import type { Intrinsics } from './intrinsics.ts'
import type { BundlePost } from './messages.ts'

/** `callables` has the functions by export. Each is added when it is first looked up. */
export type LoadedBundle = { readonly evaluated: Evaluated; readonly callables: Map<string | undefined, Callable> }

type LoadedBundles = {
  load(bundle: BundlePost, timeoutMs: number): void
  /** A promise while the bundle is evaluated; a Problem if it cannot be evaluated or was never loaded. */
  get(id: number): LoadedBundle | Problem | Promise<LoadedBundle | Problem>
  /** The global that the bundle changed while it loaded. A worker that serves is not replaced for it. */
  changedBy(id: number): string | undefined
  /** Removes a bundle. Returns the global that it had changed. */
  unload(id: number): string | undefined
}

export function createLoadedBundles(intrinsics: Intrinsics): LoadedBundles {
  const bundles = new Map<number, ReturnType<LoadedBundles['get']>>()
  const changes = new Map<number, string>()

  async function evaluate(bundle: BundlePost, timeoutMs: number): Promise<LoadedBundle | Problem> {
    try {
      const evaluated = await evaluateBundle(bundle, timeoutMs)
      const changed = intrinsics.changed()
      if (changed !== undefined) changes.set(bundle.id, changed)
      intrinsics.accept()
      return { evaluated, callables: new Map() }
    } catch (error) {
      return toProblem(error)
    }
  }

  /** Replaces the promise with its result, so that later calls do not wait. */
  async function replace(id: number, loading: Promise<LoadedBundle | Problem>): Promise<void> {
    const loaded = await loading
    if (bundles.get(id) === loading) bundles.set(id, loaded)
  }

  return {
    load: (bundle, timeoutMs) => {
      const loading = evaluate(bundle, timeoutMs)
      bundles.set(bundle.id, loading)
      void replace(bundle.id, loading)
    },
    get: (id) =>
      bundles.get(id) ?? new Problem('transform-load-failed', 'The module is not loaded in the thread that runs it.'),
    changedBy: (id) => changes.get(id),
    unload: (id) => {
      bundles.delete(id)
      return changes.get(id)
    },
  }
}

/** The function of an export, or the reason why there is none. */
export function findCallable(loaded: LoadedBundle | Problem, name: string | undefined): Callable | Problem {
  if (loaded instanceof Problem) return loaded
  const known = loaded.callables.get(name)
  if (known !== undefined) return known
  try {
    const { label, locate } = loaded.evaluated
    const callable = { label, locate, call: pickExport(loaded.evaluated, name) }
    loaded.callables.set(name, callable)
    return callable
  } catch (error) {
    return toProblem(error)
  }
}
