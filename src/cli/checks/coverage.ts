// Which code of a module its fixtures run, and which code only kept requests run, or nothing.
import { newId } from '../../base/id.ts'
import { createGeneration } from '../../pipeline/generation.ts'
import { runAll } from '../../replay/replay.ts'
import type { KeptDelivery } from '../../store/records.ts'
import { createReached, type FileCoverage, type Reached, toFileCoverage } from '../../transforms/coverage.ts'
import type { CoveredCode } from '../../transforms/runtime.ts'
import type { Parts } from '../../replay/fixtures.ts'

/** Kept requests that run code that no fixture runs. `example`: the newest of them. */
type UncoveredGroup = {
  readonly source: string | null
  readonly event: string | null
  readonly count: number
  readonly example: string
}

export type ModuleCoverage = {
  readonly files: readonly FileCoverage[]
  /** Of the kept requests of the module. `covered`: those that run only code that fixtures run too. */
  readonly requests: { readonly total: number; readonly covered: number; readonly uncovered: readonly UncoveredGroup[] }
}

/** Collects what the threads of a bench report while its fixtures run. */
export type CoverageNotes = {
  note(covered: CoveredCode): void
  /**
   * Runs kept requests one after the other, and returns the coverage of a module whose fixtures have run; undefined if nothing ran.
   * `kept`: the newest first.
   */
  finish(module: string, parts: Parts, kept: readonly KeptDelivery[]): Promise<ModuleCoverage | undefined>
}

type Ran = { readonly code: CoveredCode; readonly reached: Reached }

export function createCoverageNotes(): CoverageNotes {
  const byFixtures = new Map<string, Ran>()
  let listener: ((covered: CoveredCode) => void) | undefined

  function note(covered: CoveredCode): void {
    if (listener !== undefined) return listener(covered)
    const known = byFixtures.get(covered.module)
    const ran = known ?? { code: covered, reached: createReached(covered.code) }
    ran.reached.add(covered.parts)
    byFixtures.set(covered.module, ran)
  }

  return {
    note,
    async finish(module, parts, kept) {
      const generation = createGeneration(parts)
      const found: { readonly one: KeptDelivery; readonly covered: CoveredCode }[] = []
      for (const one of kept) {
        listener = (covered) => {
          if (covered.module === module) found.push({ one, covered })
        }
        await runAll(generation, [one], { newId })
      }
      listener = undefined
      const code = byFixtures.get(module)?.code ?? found[0]?.covered
      if (code === undefined) return undefined
      const fixtures = byFixtures.get(module)?.reached ?? createReached(code.code)
      const keptReached = createReached(code.code)
      for (const { covered } of found) keptReached.add(covered.parts)
      const uncovered = found.filter(({ covered }) => !fixtures.hasAll(covered.parts)).map(({ one }) => one)
      return {
        files: toFileCoverage(code, { fixtures, kept: keptReached }),
        requests: { total: found.length, covered: found.length - uncovered.length, uncovered: group(uncovered) },
      }
    },
  }
}

function group(deliveries: readonly KeptDelivery[]): UncoveredGroup[] {
  const groups = new Map<string, UncoveredGroup>()
  for (const { source = null, event = null, deliveryId: example } of deliveries) {
    const key = JSON.stringify([source, event])
    const known = groups.get(key)
    groups.set(key, known === undefined ? { source, event, count: 1, example } : { ...known, count: known.count + 1 })
  }
  return [...groups.values()].toSorted((one, other) => other.count - one.count)
}
