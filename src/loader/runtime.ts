// Transforms as a gateway runs them: isolated, limited, and loaded anew where their code changed. Nothing outside this folder
// knows how a module is loaded or where it runs.
import type { Log } from '../model/log.ts'
import type { TransformRef } from '../model/mapping.ts'
import { Problem, toProblemRecord } from '../model/problem.ts'
import type { ProblemRecord } from '../model/problem.ts'
import { toTransformKey } from '../model/transform.ts'
import type { Transform } from '../model/transform.ts'
import { createBreakers } from './pool/breaker.ts'
import type { Bundle } from './modules/build.ts'
import { toFailed } from './worker/call.ts'
import type { BundlePost } from './worker/messages.ts'
import { createBundleCache, toStandIn } from './modules/bundle-cache.ts'
import { createPool, type Pool, type PoolLimits } from './pool/pool.ts'
import type { Input } from './read.ts'
import { toModuleLabel } from './root.ts'

export type RuntimeOptions = {
  /** Asked whenever they matter: they may change while the gateway runs. */
  readonly limits: () => PoolLimits
  /** What `process.env` of a transform holds; see `pickEnv`. Asked like the limits. */
  readonly env: () => Readonly<Record<string, string>>
  /** Milliseconds since the epoch; for the minutes of the breakers. */
  readonly clock: () => number
  readonly log: Log
}

export type TransformRuntime = {
  /**
   * What the refs name, under `toTransformKey`. A module whose files are as they were at the last load is neither built nor
   * evaluated again. A module that is missing, does not build or does not load becomes a stand-in that fails every delivery with
   * the reason; transforms of an earlier load go on working for as long as somebody has them. Rejects with `config-invalid` only,
   * for a ref that leads out of the root.
   * Nothing has to be released: threads hold the newest good code of each module that the newest refs name. An older
   * transform that is still called brings its code along again.
   * @param root a real path, as `resolveTransformsRoot` gives it
   */
  load(wanted: { root: string; refs: readonly TransformRef[] }): Promise<ReadonlyMap<string, Transform>>
  /** Every file that the newest load was made of, as it was when it was read. */
  inputs(): readonly Input[]
  /** The listener gets each module that may be called again, fully or once as a trial, after it was stopped. */
  onRetry(listener: (module: string) => void): void
  /** For tests, metrics and the bench. */
  state(): ReturnType<Pool['state']> & { builds: number }
  /** Ends every thread. Calls in flight, and later ones, fail. */
  close(): Promise<void>
}

/** A bundle that was tried: `exports` that it has, checked. */
type Tried = { readonly bundle: Bundle; readonly post: BundlePost; readonly exports: Set<string | undefined> }
type Result =
  | { readonly tried: Tried; readonly problems: ReadonlyMap<string | undefined, ProblemRecord> }
  | ProblemRecord

export function createTransformRuntime(options: RuntimeOptions): TransformRuntime {
  const { limits, env, clock, log } = options
  const retryListeners: ((module: string) => void)[] = []
  const tellRetry = (module: string) => retryListeners.forEach((listener) => listener(module))
  const breakers = createBreakers({ clock, onHalfOpen: tellRetry, onRecovered: tellRetry })
  const bundles = createBundleCache()
  let good = new Map<string, Tried>()
  let nextId = 1
  let loading: Promise<unknown> = Promise.resolve()

  const pool = createPool({
    limits,
    env,
    log,
    onStopped: (id) => {
      const module = [...good].find(([, { post }]) => post.id === id)?.[0]
      if (module !== undefined) breakers.ended({ module, version: id }, { stopped: true, isTrial: false })
    },
  })

  async function load(root: string, refs: readonly TransformRef[]): Promise<ReadonlyMap<string, Transform>> {
    // what a module finds in its environment may decide whether it loads
    if (pool.renew()) for (const { exports } of good.values()) exports.clear()
    const wanted = groupRefs(refs)
    const built = await bundles.build(root, [...wanted.keys()])
    const results = await Promise.all(
      built.map(async (one): Promise<[string, Result]> => {
        if ('problem' in one) return [one.module, toProblemRecord(one.problem)]
        const result = await tryBundle(one.module, one.bundle, wanted.get(one.module) ?? [])
        const version = good.get(one.module)?.post.id
        // a new version begins with a closed breaker; here the same code was saved again
        if (one.isNew && 'tried' in result && result.tried.post.id === version) breakers.reset({ ...one, version })
        return [one.module, result]
      }),
    )
    const byModule = new Map(results)
    good = new Map(
      [...wanted.keys()].flatMap((module) => {
        const result = byModule.get(module)
        const tried = result !== undefined && 'tried' in result ? result.tried : good.get(module)
        return tried === undefined ? [] : [[module, tried]]
      }),
    )
    await pool.keep([...good.values()].map(({ post }) => post))
    return new Map(refs.map((ref) => [toTransformKey(ref), toTransform(ref, byModule.get(ref.module))]))
  }

  async function tryBundle(module: string, bundle: Bundle, exports: readonly (string | undefined)[]): Promise<Result> {
    const before = good.get(module)
    const isSame = before?.bundle.hash === bundle.hash && before.bundle.file === bundle.file
    const tried = isSame
      ? before
      : { bundle, post: { ...bundle, id: nextId++ }, exports: new Set<string | undefined>() }
    const open = exports.filter((name) => !tried.exports.has(name))
    const problems = new Map<string | undefined, ProblemRecord>()
    if (open.length === 0) return { tried, problems }
    const checked = await pool.check(tried.post, open)
    if (checked.changed !== undefined) {
      log.warn({ module, changed: checked.changed }, `${toModuleLabel(module)} changes a global object while it loads`)
    }
    for (const [index, name] of open.entries()) {
      const problem = checked.problems[index]
      if (problem === undefined) tried.exports.add(name)
      else problems.set(name, problem)
    }
    const [first] = problems.values()
    return tried.exports.size === 0 && first !== undefined ? first : { tried, problems }
  }

  function toTransform(ref: TransformRef, result: Result | undefined): Transform {
    if (result === undefined) throw new Error(`${ref.module} was not asked for`)
    if (!('tried' in result)) return toStandIn(ref.module, result)
    const problem = result.problems.get(ref.export)
    if (problem !== undefined) return toStandIn(ref.module, problem)
    const { module } = ref
    const { bundle, post } = result.tried
    return {
      module,
      hash: bundle.hash,
      problem: undefined,
      run: (call) =>
        new Promise((resolve) => {
          const code = { module, version: post.id }
          const admission = breakers.admit(code)
          if (admission instanceof Problem) return resolve(toFailed(admission))
          const isTrial = admission === 'trial'
          pool.submit({
            bundle: post,
            export: ref.export,
            call,
            finish: (outcome, stopped) => {
              if (stopped || isTrial) breakers.ended(code, { stopped, isTrial })
              resolve(outcome)
            },
          })
        }),
    }
  }

  return {
    load: ({ root, refs }) => {
      // one after the other: what is good is judged against the load before
      const result = loading.then(() => load(root, refs))
      loading = result.catch(() => undefined)
      return result
    },
    inputs: bundles.inputs,
    onRetry: (listener) => void retryListeners.push(listener),
    state: () => ({ ...pool.state(), builds: bundles.builds() }),
    close: async () => {
      breakers.close()
      await pool.close()
    },
  }
}

/** Module → the exports of it that are called. */
function groupRefs(refs: readonly TransformRef[]): Map<string, (string | undefined)[]> {
  const wanted = new Map<string, (string | undefined)[]>()
  for (const { module, export: name } of refs) {
    const names = wanted.get(module) ?? []
    wanted.set(module, names.includes(name) ? names : [...names, name])
  }
  return wanted
}
