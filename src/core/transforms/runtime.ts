// Runs the transforms of a gateway: isolated, limited, and reloaded when their code changes. Only this folder knows how a module is loaded
// and where it runs.
import { createSerialQueue } from '../../base/serial.ts'
import { type Log, silentLog } from '../../base/log.ts'
import type { TransformRef } from '../model/mapping.ts'
import { Problem, toProblemRecord } from '../model/problem.ts'
import type { ProblemRecord } from '../model/problem.ts'
import { toTransformKey } from '../model/transform.ts'
import type { Transform } from '../model/transform.ts'
import { createBreakers } from './pool/breaker.ts'
import type { Bundle } from './modules/build.ts'
import { toFailedOutcome } from './worker/call.ts'
import type { BundlePost } from './worker/messages.ts'
import { createBundleCache, buildStandIn, type Drafts } from './modules/bundle-cache.ts'
import type { Task } from './pool/calls-in-flight.ts'
import type { Pool, PoolSettings } from './pool/pool.ts'
import { createPools, type SharedPool } from './pool/pools.ts'
import type { BuildInput } from './read.ts'
import { toModuleLabel } from './root.ts'

export type RuntimeOptions = {
  /** Milliseconds since the epoch, for the time limits of the breakers. */
  readonly clock: () => number
  readonly log: Log
  /**
   * If it is set, the threads measure which code each call runs, which makes them slower. `onCovered` is called before the call has its outcome.
   */
  readonly onCovered?: ((covered: CoveredCode) => void) | undefined
  /** Whether the modules are shadows: their threads have no effects, a low priority and no standby. */
  readonly isShadow?: boolean | undefined
  /**
   * Called with each module that may be called again: it was stopped and may be called fully or once as a trial, or its calls failed because no
   * thread started, and threads start again.
   */
  readonly onRetry?: ((module: string) => void) | undefined
}

/** `parts`: start and end of each part of the code that ran, as offsets. */
export type CoveredCode = Pick<Bundle, 'code' | 'map'> & { readonly module: string; readonly parts: readonly number[] }

export type TransformRuntime = {
  /**
   * Loads the modules that the refs name. The keys of the result are those of `toTransformKey`. A module whose files did not change since
   * the last load is not built again. A module that is missing, does not build or does not load becomes a placeholder, which fails every call
   * with the reason. Transforms of an earlier load keep working. Rejects only with `config-invalid`, for a ref that `resolveModule` refuses.
   * Nothing has to be released: threads keep the newest good code of each module that the newest refs name. A call of an older transform
   * sends its code to the thread again, and starts threads with its own settings if none run.
   * @param root a real path from `resolveTransformsRoot`
   * @param settings the limits and the `process.env` of these transforms
   * @param drafts unsaved texts of modules, in place of their files
   */
  load(wanted: {
    root: string
    refs: readonly TransformRef[]
    settings: PoolSettings
    drafts?: Drafts
  }): Promise<ReadonlyMap<string, Transform>>
  /** Keeps the threads of these transforms running, in addition to those of the newest load. Each call replaces the previous one. */
  serve(transforms: ReadonlyMap<string, Transform>): void
  /** Every file that the newest load read, with its state at that time. */
  inputs(): readonly BuildInput[]
  /**
   * Creates threads for calls whose results are only compared. They do not delay the calls of deliveries, and a call that ends its thread
   * does not count against its module. `onCovered`: as in `RuntimeOptions`, for these threads.
   */
  createReplayThreads(onCovered?: RuntimeOptions['onCovered']): ReplayThreads
  /** The state of the threads, for tests. */
  state(): ReturnType<Pool['state']> & { builds: number }
  /** Ends every thread. Calls in flight and later calls fail. */
  close(): Promise<void>
}

export type ReplayThreads = {
  /** Returns transforms with the same code and settings that run in these threads. */
  of(transforms: ReadonlyMap<string, Transform>): ReadonlyMap<string, Transform>
  close(): Promise<void>
}

/** A bundle that was tested with the settings of a pool. `exports`: its valid exports, with the fields that the schema of each names. */
type CheckedBundle = {
  readonly pool: SharedPool
  readonly bundle: Bundle
  readonly post: BundlePost
  readonly exports: Map<string | undefined, NonNullable<Transform['reads']>>
}
type Result =
  | { readonly tried: CheckedBundle; readonly problems: ReadonlyMap<string | undefined, ProblemRecord> }
  | ProblemRecord

export function createTransformRuntime(options: RuntimeOptions): TransformRuntime {
  const { clock, log, onRetry = () => {} } = options
  const breakers = createBreakers({ clock, onHalfOpen: onRetry, onRecovered: onRetry })
  const bundles = createBundleCache()
  const codes = new WeakMap<Transform, Pick<Task, 'bundle' | 'export'> & { readonly pool: SharedPool }>()
  let good = new Map<string, CheckedBundle>()
  let newest: SharedPool | undefined
  let served: readonly SharedPool[] = []
  let nextId = 1
  const inOrder = createSerialQueue()

  const { onCovered, isShadow = false } = options
  const pools = createPools({
    log,
    isShadow,
    hasStandby: !isShadow,
    onCovered:
      onCovered &&
      ((id, parts) => {
        const [module, checked] = findGood(id) ?? []
        if (module !== undefined && checked !== undefined) onCovered({ module, ...checked.bundle, parts })
      }),
    onStopped: (id) => {
      const module = findGood(id)?.[0]
      if (module !== undefined) breakers.recordEnd({ module, version: id }, { end: 'stopped', isTrial: false })
    },
    onStartedAgain: (ids) => {
      for (const id of ids) {
        const module = findGood(id)?.[0]
        if (module !== undefined) onRetry(module)
      }
    },
  })

  function findGood(id: number): [module: string, checked: CheckedBundle] | undefined {
    return [...good].find(([, { post }]) => post.id === id)
  }

  const load: TransformRuntime['load'] = async ({ root, refs, settings, drafts }) => {
    const shared = pools.share(settings)
    const pool = shared.acquire()
    newest?.release()
    newest = shared
    const wanted = groupRefs(refs)
    const built = await bundles.build(root, [...wanted.keys()], drafts)
    const results = await Promise.all(
      built.map(async (one): Promise<[string, Result]> => {
        if ('problem' in one) return [one.module, toProblemRecord(one.problem)]
        const result = await checkBundle(one, wanted.get(one.module) ?? [], shared)
        const version = good.get(one.module)?.post.id
        // a new version starts with a closed breaker, but this is the same code, saved again
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
    const ours = [...good.values()].filter((tried) => tried.pool.key === shared.key)
    await pool.keep(ours.map(({ post }) => post))
    return new Map(refs.map((ref) => [toTransformKey(ref), buildTransform(ref, byModule.get(ref.module))]))
  }

  async function checkBundle(
    { module, bundle }: { module: string; bundle: Bundle },
    exports: readonly (string | undefined)[],
    pool: SharedPool,
  ): Promise<Result> {
    const before = good.get(module)
    const isSame = before?.bundle.hash === bundle.hash && before.bundle.file === bundle.file
    const post = isSame ? before.post : { ...bundle, id: nextId++ }
    // in another environment, the module may not load: it is tried again
    const isTried = isSame && before.pool.key === pool.key
    const tried = isTried ? before : { pool, bundle, post, exports: new Map() }
    const open = exports.filter((name) => !tried.exports.has(name))
    const problems = new Map<string | undefined, ProblemRecord>()
    if (open.length === 0) return { tried, problems }
    const checked = await pool.acquire().check(tried.post, open)
    pool.release()
    if (checked.changed !== undefined) {
      log.warn({ module, changed: checked.changed }, `${toModuleLabel(module)} changes a global object while it loads`)
    }
    for (const [index, name] of open.entries()) {
      const problem = checked.problems[index]
      if (problem === undefined) tried.exports.set(name, checked.reads[index] ?? [])
      else problems.set(name, problem)
    }
    const [first] = problems.values()
    return tried.exports.size === 0 && first !== undefined ? first : { tried, problems }
  }

  function buildTransform(ref: TransformRef, result: Result | undefined): Transform {
    if (result === undefined) throw new Error(`${ref.module} was not asked for`)
    if (!('tried' in result)) return buildStandIn(ref.module, result)
    const problem = result.problems.get(ref.export)
    if (problem !== undefined) return buildStandIn(ref.module, problem)
    const { module } = ref
    const { pool, bundle, post } = result.tried
    const transform: Transform = {
      module,
      hash: bundle.hash,
      problem: undefined,
      reads: result.tried.exports.get(ref.export) ?? [],
      run: (call) =>
        new Promise((resolve) => {
          const code = { module, version: post.id }
          const admission = breakers.admit(code)
          if (admission instanceof Problem) return resolve(toFailedOutcome(admission))
          const isTrial = admission === 'trial'
          pool.acquire().submit({
            bundle: post,
            export: ref.export,
            call,
            finish: (outcome, end) => {
              if (end === 'stopped' || isTrial) breakers.recordEnd(code, { end, isTrial })
              pool.release()
              resolve(outcome)
            },
          })
        }),
    }
    codes.set(transform, { pool, bundle: post, export: ref.export })
    return transform
  }

  function createReplayThreads(onOwnCovered?: RuntimeOptions['onCovered']): ReplayThreads {
    const measured = new Map<number, Omit<CoveredCode, 'parts'>>()
    const own = createPools({
      log: silentLog,
      onStopped() {},
      onStartedAgain() {},
      onCovered:
        onOwnCovered &&
        ((id, parts) => {
          const code = measured.get(id)
          if (code !== undefined) onOwnCovered({ ...code, parts })
        }),
      // the pool is closed soon, and a second thread takes as long to start as the first
      hasStandby: false,
    })
    const withOwnThreads = (transform: Transform): Transform => {
      const code = codes.get(transform)
      if (code === undefined) return transform
      const { module, hash, problem } = transform
      measured.set(code.bundle.id, { module, code: code.bundle.code, map: code.bundle.map })
      const pool = own.share({ ...code.pool.settings, workers: 1 }).acquire()
      const run: Transform['run'] = (call) => new Promise((resolve) => pool.submit({ ...code, call, finish: resolve }))
      return { module, hash, problem, run }
    }
    return {
      of: (transforms) => new Map([...transforms].map(([key, transform]) => [key, withOwnThreads(transform)])),
      close: own.close,
    }
  }

  return {
    createReplayThreads,
    // each load is compared with the load before it
    load: (wanted) => inOrder(() => load(wanted)),
    serve: (transforms) => {
      const before = served
      served = [...transforms.values()].flatMap((transform) => codes.get(transform)?.pool ?? [])
      for (const pool of served) pool.acquire()
      for (const pool of before) pool.release()
    },
    inputs: bundles.inputs,
    state: () => ({ ...pools.state(), builds: bundles.builds() }),
    close: async () => {
      breakers.close()
      await pools.close()
    },
  }
}

/** The called exports of each module. */
function groupRefs(refs: readonly TransformRef[]): Map<string, (string | undefined)[]> {
  const wanted = new Map<string, (string | undefined)[]>()
  for (const { module, export: name } of refs) {
    const names = wanted.get(module) ?? []
    wanted.set(module, names.includes(name) ? names : [...names, name])
  }
  return wanted
}
