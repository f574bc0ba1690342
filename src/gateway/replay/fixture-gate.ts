// The test that a module must pass before it goes live: its own fixtures.
import { takeStart } from '../../base/text.ts'
import { dirname, join } from 'node:path'
import { within } from '../../base/time.ts'
import type { ProblemRecord } from '../../core/model/problem.ts'
import type { FixtureCounts, TestModule } from '../../core/reload/gate.ts'
import { toModuleLabel } from '../../core/transforms/root.ts'
import { readFixtures, toFixturesFolder } from './fixture-files.ts'
import { type GenerationParts, runFixture } from './fixtures.ts'

type FixtureGate = {
  readonly root: string
  /** The parts of a generation with the transforms that were just loaded. */
  readonly parts: GenerationParts
  /** Files that were saved. */
  readonly changed: readonly string[]
  /** Modules that had a problem before. */
  readonly suspects: ReadonlySet<string>
}

/** What is known at the first load. */
export const atStart = { changed: [], suspects: new Set<string>() } as const

/** The time limit for all fixtures together. Fixtures that do not end in time count as not run. */
const budgetMs = 2000

/** Tests new code, and other code whose fixtures were saved or that had a problem. */
export function createFixtureGate(input: FixtureGate): TestModule {
  const until = performance.now() + budgetMs
  return async (module, { isFresh }) =>
    isFresh || isSuspect(module, input) ? runFixtures(input, module, until) : undefined
}

function isSuspect(module: string, { root, changed, suspects }: FixtureGate): boolean {
  const folder = join(root, toFixturesFolder(module))
  return suspects.has(module) || changed.some((path) => path === folder || dirname(path) === folder)
}

async function runFixtures(
  { root, parts }: FixtureGate,
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
    detail: `${toModuleLabel(module)} fails its fixture ${first.name} at ${takeStart(field, 200)}${more}. ${fix}`,
    frame: failures
      .slice(0, 5)
      .map(({ name, diff, frame }) =>
        [name, ...diff.slice(0, 5).map((line) => `  ${line}`), ...(frame === undefined ? [] : [frame])].join('\n'),
      )
      .join('\n'),
  }
}
