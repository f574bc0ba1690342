// Finds out which code of a module its fixtures run, which code only kept requests or nothing runs, and which of the learnt payloads its
// fixtures have.
import { newId } from '../../base/id.ts'
import type { CoverageFields, ModuleCoverageFields } from '../../model/api/shapes.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import { createGeneration } from '../generation/generation.ts'
import type { KeptDelivery } from '../../store/records.ts'
import type { StoreReader } from '../../store/store.ts'
import { createReachedOffsets, type ReachedOffsets, toFileCoverage } from '../../core/transforms/coverage.ts'
import { resolveTransformsRoot } from '../../core/transforms/root.ts'
import type { CoveredCode, TransformRuntime } from '../../core/transforms/runtime.ts'
import { listCoveredShapes } from './covered-shapes.ts'
import { type FixtureFile, readFixtures } from './fixture-files.ts'
import { type GenerationParts, runFixture } from './fixtures.ts'
import { streamKeptPages } from './kept.ts'
import { runAll } from './replay.ts'

/** The maximum number of kept requests of a module that run for its coverage, the newest first. */
const maxKept = 200
/** After this time, no further page of kept requests runs. */
const limitMs = 30_000

type CoverageParts = {
  readonly parts: GenerationParts
  readonly fixtures: readonly FixtureFile[]
  /** Undefined if there is no store yet. */
  readonly store: Pick<StoreReader, 'keptDeliveries' | 'cursors'> | undefined
}

/** Collects the reports of threads that measure coverage, while the fixtures run. */
export type CoverageNotes = {
  note(covered: CoveredCode): void
  /** Runs the kept requests of a module whose fixtures have run, and returns its coverage; undefined if none of its code ran. */
  finish(module: string, parts: CoverageParts): Promise<ModuleCoverageFields | undefined>
}

type Ran = { readonly code: CoveredCode; readonly reached: ReachedOffsets }

export function createCoverageNotes(): CoverageNotes {
  const byFixtures = new Map<string, Ran>()
  let listener: ((covered: CoveredCode) => void) | undefined

  function note(covered: CoveredCode): void {
    if (listener !== undefined) return listener(covered)
    const known = byFixtures.get(covered.module)
    const ran = known ?? { code: covered, reached: createReachedOffsets(covered.code) }
    ran.reached.add(covered.parts)
    byFixtures.set(covered.module, ran)
  }

  return {
    note,
    async finish(module, { parts, fixtures, store }) {
      const generation = createGeneration(parts)
      const found: { readonly one: CountedRequest; readonly covered: CoveredCode }[] = []
      for await (const one of streamKeptRequests(module, parts, store)) {
        // without the body, because the bodies of 200 requests may not fit into memory
        const { source, event, deliveryId } = one
        listener = (covered) => {
          if (covered.module === module) found.push({ one: { source, event, deliveryId }, covered })
        }
        await runAll(generation, [one], { newId })
      }
      listener = undefined
      const code = byFixtures.get(module)?.code ?? found[0]?.covered
      if (code === undefined) return undefined
      const reached = byFixtures.get(module)?.reached ?? createReachedOffsets(code.code)
      const keptReached = createReachedOffsets(code.code)
      for (const { covered } of found) keptReached.add(covered.parts)
      const uncovered = found.filter(({ covered }) => !reached.hasAll(covered.parts)).map(({ one }) => one)
      return {
        files: toFileCoverage(code, { fixtures: reached, kept: keptReached }),
        requests: { total: found.length, covered: found.length - uncovered.length, uncovered: group(uncovered) },
        shapes: await listCoveredShapes(module, { generation, fixtures, store }),
      }
    },
  }
}

/** Runs the fixtures and the kept requests of a module with the files on disk. Throws `usage-invalid` for an unknown module. */
export async function measureModule(
  module: string,
  { dir, edited, createThreads, store }: MeasuredParts,
): Promise<CoverageFields> {
  const { config, mappings, transforms, senders, verifiers } = edited()
  const own = [...transforms.values()].filter((transform) => transform.module === module)
  if (own.length === 0) throw new Problem('usage-invalid', 'module must be a module that a mapping names.')
  const problem = own.find((transform) => transform.problem !== undefined)?.problem
  if (problem !== undefined) return { module, coverage: null, problem: problem.detail }
  const notes = createCoverageNotes()
  const threads = createThreads(notes.note)
  try {
    const named = mappings.map(({ mapping }) => mapping)
    const parts: GenerationParts = { config, mappings: named, transforms: threads.of(transforms), senders, verifiers }
    const root = await resolveTransformsRoot(dir, config.hooks)
    const fixtures = await readFixtures(root, module)
    for (const fixture of fixtures) await runFixture(parts, module, fixture)
    return { module, coverage: (await notes.finish(module, { parts, fixtures, store })) ?? null, problem: null }
  } finally {
    await threads.close()
  }
}

type MeasuredParts = {
  /** The config directory. */
  readonly dir: string
  /** The files on disk. */
  readonly edited: () => Generation
  readonly createThreads: TransformRuntime['createReplayThreads']
  readonly store: NonNullable<CoverageParts['store']>
}

/** Reads the kept requests of a module, the newest first. */
async function* streamKeptRequests(
  module: string,
  { mappings }: GenerationParts,
  store: CoverageParts['store'],
): AsyncGenerator<KeptDelivery, void> {
  const ids = mappings.flatMap(({ id, transform }) => (transform?.module === module ? id : []))
  if (store === undefined || ids.length === 0) return
  const until = performance.now() + limitMs
  for await (const page of streamKeptPages(store, { mappings: ids, limit: maxKept })) {
    yield* page
    if (performance.now() >= until) return
  }
}

type CountedRequest = Pick<KeptDelivery, 'source' | 'event' | 'deliveryId'>

function group(deliveries: readonly CountedRequest[]): ModuleCoverageFields['requests']['uncovered'] {
  const groups = new Map<string, ModuleCoverageFields['requests']['uncovered'][number]>()
  for (const { source = null, event = null, deliveryId: example } of deliveries) {
    const key = JSON.stringify([source, event])
    const known = groups.get(key)
    groups.set(key, known === undefined ? { source, event, count: 1, example } : { ...known, count: known.count + 1 })
  }
  return [...groups.values()].toSorted((one, other) => other.count - one.count)
}
