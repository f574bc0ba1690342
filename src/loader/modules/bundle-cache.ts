// BundleCache as bundles. One whose files are as they were is not built again.
import { Problem } from '../../model/problem.ts'
import type { ProblemRecord } from '../../model/problem.ts'
import type { Transform } from '../../model/transform.ts'
import { createTrimmer, type Trimmer } from './barrels.ts'
import { buildModule, type Bundle } from './build.ts'
import type { Input } from '../read.ts'
import { resolveModule, toModuleLabel } from '../root.ts'
import { isUnchanged } from './resolution-snapshot.ts'

/** `isNew`: it was built now, and not taken from the last time. */
export type Built = { readonly module: string; readonly bundle: Bundle; readonly isNew: boolean }

export type BundleCache = {
  /**
   * Builds what has changed, side by side. A module that cannot be built is its Problem; only `config-invalid` is thrown, for
   * a module that leads out of the root. What is not asked for any more is forgotten.
   */
  build(root: string, modules: readonly string[]): Promise<(Built | { module: string; problem: Problem })[]>
  /** Builds so far. */
  builds(): number
  /** Every file that the bundles of the last time were made of, as it was when it was read. */
  inputs(): readonly Input[]
}

export function createBundleCache(): BundleCache {
  let known = new Map<string, Bundle>()
  let trimmers = new Map<string, { readonly root: string; readonly trimmer: Trimmer }>()
  let builds = 0

  async function buildOne(root: string, module: string): Promise<Built> {
    const file = await resolveModule(root, module)
    const before = known.get(module)
    if (before?.file === file && before.root === root && (await isUnchanged(before))) {
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
    build: async (root, modules) => {
      const built = await Promise.all(
        modules.map((module) =>
          buildOne(root, module).catch((error: unknown) => ({ module, problem: toLoadProblem(module, error) })),
        ),
      )
      for (const one of built) if ('problem' in one && one.problem.code === 'config-invalid') throw one.problem
      trimmers = new Map([...trimmers].filter(([module]) => modules.includes(module)))
      known = new Map(built.flatMap((one) => ('bundle' in one ? [[one.module, one.bundle]] : [])))
      return built
    },
  }
}

/** No error of any module may keep the others from loading. */
export function toLoadProblem(module: string, error: unknown): Problem {
  if (error instanceof Problem) return error
  return new Problem('transform-load-failed', `${toModuleLabel(module)} could not be loaded.`, { cause: error })
}

/** Stands where a transform would: fails every delivery with the reason. */
export function toStandIn(module: string, problem: ProblemRecord): Transform {
  return { module, hash: undefined, problem, run: () => Promise.resolve({ kind: 'failed', problem, log: [] }) }
}
