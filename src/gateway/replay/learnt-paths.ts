// The paths that the templates of a hook can read, according to the known requests. Editors complete them while an author types.
import { trimSlashes } from '../../base/text.ts'
import type { KnownPayloads } from '../config/schema.ts'
import { formatPath, formatPlaceholder, type PathStep } from '../../base/path-text.ts'
import type { LearntPaths } from '../../model/api/shapes.ts'
import { mayMatch } from '../../core/mapping/reads.ts'
import { type EventShape, readRequests } from '../shapes/event-shape.ts'
import { countSeen, type Kind, type Shape } from '../shapes/shape.ts'
import { type ShapeParts, streamHookShapes } from './payload-shapes.ts'

const maxPaths = 5_000

/** Collects the suggestions for an editor of the configuration, from all hooks that mappings name. The most frequent paths come first. */
export async function collectKnownPayloads(parts: ShapeParts): Promise<KnownPayloads> {
  const hooks = [...new Set(parts.generation.mappings.flatMap(({ match }) => trimSlashes(match.path ?? '') || []))]
  const places = new Map<string, Known>()
  const sources = new Set<string>()
  const events = new Set<string>()
  for (const hook of hooks) {
    for await (const shape of streamHookShapes({ ...parts, maxKept: 0 }, hook)) {
      sources.add(shape.source)
      events.add(shape.event)
      addPlaces(places, shape, formatPath)
    }
  }
  const toNames = (names: Iterable<string>) => [...new Set(names)].filter((name) => name !== '').toSorted()
  const found = [...places].toSorted(
    ([one, { count }], [other, { count: otherCount }]) => otherCount - count || (one < other ? -1 : 1),
  )
  return {
    paths: found.slice(0, maxSuggested).map(([path, { steps, kinds }]) => {
      return { path, placeholder: formatPlaceholder(steps), kinds: [...kinds].toSorted() }
    }),
    lists: toNames(found.flatMap(([path, { steps, kinds }]) => (kinds.has('array') && !steps.includes(0) ? path : []))),
    sources: toNames(sources),
    events: toNames(events),
  }
}

/** The maximum number of suggestions that an editor shows. */
const maxSuggested = 500

type Steps = readonly PathStep[]
type Known = { readonly steps: Steps; readonly kinds: Set<Kind>; count: number }

/** `mappingId`: only the requests that this mapping may get. If the mapping is unknown, all requests of the hook count. */
export async function listLearntPaths(
  parts: ShapeParts,
  { hook, mappingId }: { readonly hook: string; readonly mappingId: string | undefined },
): Promise<LearntPaths> {
  const mapping = parts.generation.mappings.find(({ id }) => id === mappingId)
  const places = new Map<string, Known>()
  let requests = 0
  for await (const shape of streamHookShapes({ ...parts, maxKept: 0 }, hook)) {
    if (mapping !== undefined && !mayMatch(mapping.mapping, shape)) continue
    requests += readRequests(shape).count
    addPlaces(places, shape, formatPlaceholder)
  }
  return { requests, paths: [...places].map(([path, { kinds, count }]) => ({ path, kinds: [...kinds], count })) }
}

/** Adds the places of a shape by their written paths. */
function addPlaces(known: Map<string, Known>, { shape }: EventShape, format: (steps: Steps) => string) {
  visit(shape, [], (steps, field) => {
    const path = format(steps)
    if (known.size >= maxPaths && !known.has(path)) return
    const found = known.get(path) ?? { steps, kinds: new Set(), count: 0 }
    known.set(path, found)
    for (const kind of field.kinds.keys()) found.kinds.add(kind)
    found.count += countSeen(field)
  })
}

/** Calls `take` for each place that a path can name, so not for the unknown keys of a map. All items of a list share the path of item 0. */
function visit({ fields, items }: Shape, steps: Steps, take: (steps: Steps, shape: Shape) => void): void {
  const below = (step: string | number, shape: Shape) => {
    const inner = [...steps, step]
    take(inner, shape)
    visit(shape, inner, take)
  }
  for (const [key, field] of fields) below(key, field)
  if (items !== undefined) below(0, items)
}
