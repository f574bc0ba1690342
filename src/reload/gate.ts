// Decides which code goes live. The code of a module must load and pass its own fixtures; otherwise the last good version stays live.
import { within } from '../base/time.ts'
import { dirname, join } from 'node:path'
import { type GenerationParts, runFixture } from '../replay/fixtures.ts'
import { readFixtures, toFixturesFolder } from '../replay/fixture-files.ts'
import { buildStandIn } from '../transforms/modules/bundle-cache.ts'
import { toModuleLabel } from '../transforms/root.ts'
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

type GateInput = {
  readonly root: string
  /** The transforms that were just loaded. */
  readonly parts: GenerationParts
  /** The transforms that serve; undefined at the start. */
  readonly serving: ReadonlyMap<string, Transform> | undefined
  /** Files that were saved. */
  readonly changed: readonly string[]
  /** Modules that had a problem before. */
  readonly suspects: ReadonlySet<string>
}

/** The input of the first load. */
export const atStart = { serving: undefined, changed: [], suspects: new Set<string>() } as const

/** The time limit for all fixtures together. Fixtures that do not end in time count as not run. */
const budgetMs = 2000

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
export async function chooseTransforms(input: GateInput): Promise<{
  transforms: ReadonlyMap<string, Transform>
  modules: readonly ModuleReport[]
}> {
  const { parts, serving } = input
  const until = performance.now() + budgetMs
  const transforms = new Map(parts.transforms)
  const modules: ModuleReport[] = []
  for (const module of new Set([...parts.transforms.values()].map((transform) => transform.module))) {
    const candidates = [...parts.transforms].filter(([, transform]) => transform.module === module)
    const isFresh = !isServing(module, candidates, serving)
    const unloaded = candidates.find(([, transform]) => transform.problem !== undefined)?.[1].problem
    const isTested = unloaded === undefined && (isFresh || isSuspect(module, input))
    const tested = isTested ? await runFixtures(input, module, until) : undefined
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

function isSuspect(module: string, { root, changed, suspects }: GateInput): boolean {
  const folder = join(root, toFixturesFolder(module))
  return suspects.has(module) || changed.some((path) => path === folder || dirname(path) === folder)
}

function findWorking(serving: ReadonlyMap<string, Transform> | undefined, key: string): Transform | undefined {
  const transform = serving?.get(key)
  return transform?.problem === undefined ? transform : undefined
}

async function runFixtures(
  { root, parts }: GateInput,
  module: string,
  until: number,
): Promise<{ counts: FixtureCounts; problem: ProblemRecord | undefined }> {
  const files = await readFixtures(root, module)
  const failures: Failure[] = []
  let passed = 0
  for (const file of files) {
    const leftMs = until - performance.now()
    const outcome = leftMs <= 0 ? undefined : await within(leftMs, runFixture(parts, module, file))
    if (outcome === undefined) break
    if (outcome.ok) passed += 1
    else failures.push({ name: file.name, diff: outcome.diff, frame: outcome.problem?.frame })
  }
  const counts = { passed, failed: failures.length, notRun: files.length - passed - failures.length }
  return { counts, problem: buildFixtureProblem(module, failures) }
}

/** `frame`: the place where the code throws. */
type Failure = { readonly name: string; readonly diff: readonly string[]; readonly frame: string | undefined }

/** The problem of fixtures that fail. `detail` names only the field; `frame`, which only the operator sees, has the values. */
function buildFixtureProblem(module: string, failures: readonly Failure[]): ProblemRecord | undefined {
  const [first] = failures
  if (first === undefined) return undefined
  const field = first.diff[0]?.split(': expected')[0] ?? ''
  const more = failures.length === 1 ? '' : `, and ${failures.length - 1} more`
  const fix = 'Fix the code, or update the fixture with "hookloom test -u".'
  return {
    code: 'transform-load-failed',
    detail: `${toModuleLabel(module)} fails its fixture ${first.name} at ${field.slice(0, 200)}${more}. ${fix}`,
    frame: failures
      .slice(0, 5)
      .map(({ name, diff, frame }) =>
        [name, ...diff.slice(0, 5).map((line) => `  ${line}`), ...(frame === undefined ? [] : [frame])].join('\n'),
      )
      .join('\n'),
  }
}
