// Finds out which of the learnt payloads of a module its fixtures have: the events, and the fields with the kinds of their values.
import { trimSlashes } from '../../base/text.ts'
import type { ModuleCoverageFields } from '../../model/api/shapes.ts'
import { streamShapes } from '../deliveries/shapes/stored.ts'
import type { CompiledMapping } from '../../core/mapping/compile.ts'
import type { Generation } from '../generation/generation.ts'
import { toHookLabel } from '../../core/mapping/hook.ts'
import { mayMatch } from '../../core/mapping/reads.ts'
import { createEventShape, type EventShape, mergeEventShape, readRequests } from '../shapes/event-shape.ts'
import { listPlaces } from '../shapes/places.ts'
import type { StoreReader } from '../../store/store.ts'
import type { FixtureFile } from './fixture-files.ts'
import { buildRequestShape } from './payload-shapes.ts'

type CoveredShape = ModuleCoverageFields['shapes'][number]

const maxMissing = 50

type ShapeParts = {
  readonly generation: Generation
  readonly fixtures: readonly FixtureFile[]
  readonly store: Pick<StoreReader, 'cursors'> | undefined
}

/** The learnt shapes of the mappings of a module, and which parts of them its fixtures cover. The shapes with the most requests come first. */
export async function listCoveredShapes(module: string, parts: ShapeParts): Promise<CoveredShape[]> {
  const { generation, store } = parts
  const own = generation.mappings.filter(({ mapping }) => mapping.transform?.module === module)
  const found: CoveredShape[] = []
  for (const name of new Set(own.map(({ match }) => trimSlashes(match.path ?? '')))) {
    const mappings = own.filter(({ match }) => trimSlashes(match.path ?? '') === name)
    const label = name === '' ? '*' : toHookLabel(generation.findHook(name), name)
    const ofFixtures = learnFixtures(name, parts)
    for await (const shape of store === undefined ? [] : streamShapes(store, label)) {
      if (isTaken(mappings, shape)) found.push(toCoveredShape(shape, ofFixtures))
    }
  }
  return found.toSorted((one, other) => other.requests - one.requests)
}

function isTaken(mappings: readonly CompiledMapping[], shape: EventShape): boolean {
  return mappings.some(({ mapping }) => mayMatch(mapping, shape))
}

type FixtureShape = { readonly shape: EventShape; count: number }

/** The payloads that the fixtures have, by source and event, as if all of them came to this hook. */
function learnFixtures(name: string, { generation, fixtures }: ShapeParts): ReadonlyMap<string, FixtureShape> {
  const found = new Map<string, FixtureShape>()
  for (const file of fixtures) {
    const shape = file.kind === 'fixture' ? readFixtureShape(generation, name, file) : undefined
    if (shape === undefined) continue
    const known = found.get(toName(shape)) ?? { shape: createEventShape(shape), count: 0 }
    found.set(toName(shape), known)
    mergeEventShape(known.shape, shape)
    known.count += 1
  }
  return found
}

function readFixtureShape(
  generation: Generation,
  name: string,
  { fixture }: FixtureFile & { readonly kind: 'fixture' },
) {
  try {
    return buildRequestShape(generation, name, fixture.request)
  } catch {
    // the mappings do not accept the body
    return undefined
  }
}

function toCoveredShape(learnt: EventShape, ofFixtures: ReadonlyMap<string, FixtureShape>): CoveredShape {
  const { hook, source, event, shape } = learnt
  const known = ofFixtures.get(toName(learnt))
  const seen = new Map(known === undefined ? [] : listPlaces(known.shape.shape).map(({ path, kinds }) => [path, kinds]))
  // the keys of a map are not fields, but data
  const fields = listPlaces(shape).filter(({ path }) => !path.includes('<any>'))
  const missing = fields.flatMap(({ path, kinds, count }) => {
    const open = kinds.filter((kind) => seen.get(path)?.includes(kind) !== true)
    return open.length === 0 ? [] : [{ path, kinds: open, count }]
  })
  return {
    hook,
    source: source || null,
    event: event || null,
    requests: readRequests(learnt).count,
    fixtures: known?.count ?? 0,
    fields: fields.length,
    covered: fields.length - missing.length,
    missing: missing.slice(0, maxMissing).map(({ path, kinds }) => ({ path, kinds })),
  }
}

function toName({ source, event }: EventShape): string {
  return JSON.stringify([source, event])
}
