// Decides which code goes live. The code of a module must load and pass its own tests; otherwise the last good version stays live.
import { buildStandIn } from '../transforms/modules/bundle-cache.ts'
import type { ProblemRecord } from '../model/problem.ts'
import type { Transform } from '../model/transform.ts'

/**
 * - `live`: the code is new and works. If no good version serves, it may also be code whose fixtures fail. `same`: this code
 *   already serves.
 * - `kept`: the new code does not work, and the last good version keeps serving. `broken`: there is no good version.
 * The last two have a `problem`. The first two have one if their fixtures fail.
 */
export type ModuleReport = {
  readonly module: string
  readonly kind: 'live' | 'same' | 'kept' | 'broken'
  readonly problem: ProblemRecord | undefined
  readonly fixtures: FixtureCounts
}
/** `notRun`: the number of fixtures that did not run before the time limit. */
export type FixtureCounts = { readonly passed: number; readonly failed: number; readonly notRun: number }

/** Tests a module, and says why it must not go live. Undefined: nothing was to be tested. */
export type TestModule = (
  module: string,
  given: { readonly isFresh: boolean },
) => Promise<{ readonly counts: FixtureCounts; readonly problem: ProblemRecord | undefined } | undefined>

type GateInput = {
  /** The transforms that were just loaded. */
  readonly loaded: ReadonlyMap<string, Transform>
  /** The transforms that serve; undefined at the start. */
  readonly serving: ReadonlyMap<string, Transform> | undefined
  readonly test: TestModule
}

const noFixtures: FixtureCounts = { passed: 0, failed: 0, notRun: 0 }

/** Builds the report on a module whose fixtures did not run. */
export function buildReport(module: string, kind: ModuleReport['kind'], problem?: ProblemRecord): ModuleReport {
  return { module, kind, problem, fixtures: noFixtures }
}

/** Keeps the last good version of a module whose new version is broken. */
export function chooseVersion<
  Defined extends
    | { readonly kind: 'sound'; readonly hash: string }
    | { readonly kind: 'broken'; readonly problem: ProblemRecord },
>(module: string, found: Defined, before: Defined | undefined): { taken: Defined; report: ModuleReport } {
  if (found.kind === 'sound') {
    const isSame = before?.kind === 'sound' && before.hash === found.hash
    return { taken: found, report: buildReport(module, isSame ? 'same' : 'live') }
  }
  if (before?.kind === 'sound') return { taken: before, report: buildReport(module, 'kept', found.problem) }
  return { taken: found, report: buildReport(module, 'broken', found.problem) }
}

/** The transforms of the next generation, and a report on each of its modules. Never rejects. */
export async function chooseTransforms({ loaded, serving, test }: GateInput): Promise<{
  transforms: ReadonlyMap<string, Transform>
  modules: readonly ModuleReport[]
}> {
  const transforms = new Map(loaded)
  const modules: ModuleReport[] = []
  for (const module of new Set([...loaded.values()].map((transform) => transform.module))) {
    const candidates = [...loaded].filter(([, transform]) => transform.module === module)
    const isFresh = !isServing(module, candidates, serving)
    const unloaded = candidates.find(([, transform]) => transform.problem !== undefined)?.[1].problem
    const tested = unloaded === undefined ? await test(module, { isFresh }) : undefined
    const problem = unloaded ?? tested?.problem
    const fixtures = tested?.counts ?? noFixtures
    const kept = candidates.flatMap(([key]) => findWorking(serving, key) ?? [])
    const isBest = kept.length === 0 && unloaded === undefined
    if (problem === undefined || !isFresh || isBest) {
      modules.push({ module, kind: isFresh ? 'live' : 'same', problem, fixtures })
      continue
    }
    // all exports of a module have the same version, because nobody has tested a mix of two versions
    for (const [key, candidate] of candidates) {
      transforms.set(
        key,
        findWorking(serving, key) ?? (candidate.problem === undefined ? buildStandIn(module, problem) : candidate),
      )
    }
    modules.push({ module, kind: kept.length > 0 ? 'kept' : 'broken', problem, fixtures })
  }
  return { transforms, modules }
}

/** Whether candidates have the same code as the serving transforms. */
function isServing(
  module: string,
  candidates: readonly (readonly [string, Transform])[],
  serving: ReadonlyMap<string, Transform> | undefined,
): boolean {
  const hashes = new Set([...(serving?.values() ?? [])].flatMap((it) => (it.module === module ? (it.hash ?? []) : [])))
  return candidates.every(([, { hash }]) => hash !== undefined && hashes.has(hash))
}

function findWorking(serving: ReadonlyMap<string, Transform> | undefined, key: string): Transform | undefined {
  const transform = serving?.get(key)
  return transform?.problem === undefined ? transform : undefined
}
