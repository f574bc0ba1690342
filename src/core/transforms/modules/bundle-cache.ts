// Caches the bundle of each module. A module whose files did not change is not built again.
import { toErrorText } from '../../../base/exceptions.ts'
import { Problem } from '../../model/problem.ts'
import type { ProblemRecord } from '../../model/problem.ts'
import type { Transform } from '../../model/transform.ts'
import { createTrimmer, type Trimmer } from './barrels.ts'
import { buildModule, type Bundle } from './build.ts'
import type { BuildInput } from '../read.ts'
import { resolveModule, toModuleLabel } from '../root.ts'
import { createFileFacts, type FileFacts, isUnchanged } from './resolution-snapshot.ts'

/** `isNew`: the bundle was just built, so it is not the one that the last call returned. */
type Built = { readonly module: string; readonly bundle: Bundle; readonly isNew: boolean }

/** Unsaved texts of modules, by their names. */
export type Drafts = ReadonlyMap<string, string>

type Around = { readonly draft: string | undefined; readonly ask: FileFacts }

type BundleCache = {
  /**
   * Returns the bundle of each module, or the Problem of one that cannot be built. Only modules that changed are built. Rejects only with
   * `config-invalid`, for a module that `resolveModule` refuses. All other modules are forgotten. `drafts`: unsaved texts of modules, which are built
   * each time.
   */
  build(
    root: string,
    modules: readonly string[],
    drafts?: Drafts,
  ): Promise<(Built | { module: string; problem: Problem })[]>
  /** The number of builds so far. */
  builds(): number
  /** Every file of the newest bundles, with its state when it was read. */
  inputs(): readonly BuildInput[]
}

export function createBundleCache(): BundleCache {
  let known = new Map<string, Bundle>()
  let trimmers = new Map<string, { readonly root: string; readonly trimmer: Trimmer }>()
  let builds = 0

  async function buildOne(root: string, module: string, { draft, ask }: Around): Promise<Built> {
    const file = await resolveModule(root, module)
    if (draft !== undefined) return { module, bundle: await buildModule({ root, file }, { draft }), isNew: true }
    const before = known.get(module)
    if (before?.file === file && before.root === root && (await isUnchanged(before, ask))) {
      return { module, bundle: before, isNew: false }
    }
    builds += 1
    const learned = trimmers.get(module)
    const trimmer = learned?.root === root ? learned.trimmer : createTrimmer(root)
    trimmers.set(module, { root, trimmer })
    return { module, bundle: await buildModule({ root, file }, { trimmer }), isNew: true }
  }

  return {
    builds: () => builds,
    inputs: () => [...known.values()].flatMap(({ inputs }) => inputs),
    build: async (root, modules, drafts) => {
      const ask = createFileFacts()
      const built = await Promise.all(
        modules.map((module) =>
          buildOne(root, module, { draft: drafts?.get(module), ask }).catch((error: unknown) => ({
            module,
            problem: buildLoadProblem(module, error),
          })),
        ),
      )
      for (const one of built) if ('problem' in one && one.problem.code === 'config-invalid') throw one.problem
      trimmers = new Map([...trimmers].filter(([module]) => modules.includes(module)))
      known = new Map(
        built.flatMap((one) => ('bundle' in one && drafts?.has(one.module) !== true ? [[one.module, one.bundle]] : [])),
      )
      return built
    },
  }
}

/** One broken module must not keep the other modules from loading. */
export function buildLoadProblem(module: string, error: unknown): Problem {
  if (error instanceof Problem) return error
  const detail = `${toModuleLabel(module)} could not be loaded.`
  return new Problem('transform-load-failed', detail, { frame: toErrorText(error), cause: error })
}

/** A placeholder for a transform that cannot be used. Every call fails with the problem. */
export function buildStandIn(module: string, problem: ProblemRecord): Transform {
  return { module, hash: undefined, problem, run: () => Promise.resolve({ kind: 'failed', problem, log: [] }) }
}
