// Warns of paths in templates and conditions that no known request has: a misspelt path renders empty, and nothing else shows it.
import { trimSlashes } from '../base/text.ts'
import { toErrorName } from '../base/exceptions.ts'
import type { Log } from '../model/log.ts'
import type { CompiledMapping } from '../pipeline/compile.ts'
import type { Generation } from '../pipeline/generation.ts'
import { findPlaceWarnings } from '../pipeline/place-warnings.ts'
import { listReads, mayMatch } from '../pipeline/reads.ts'
import { type NamedShape, readRequests } from '../shapes/event-shape.ts'
import { findPath } from '../shapes/places.ts'
import { collectShapes, type ShapeParts } from './payload-shapes.ts'

/** The fewest requests for a warning about a path without a similar one. Fewer requests may lack an optional field by chance. */
const fewestRequests = 20

export type PathWarning = { readonly mappingId: string; readonly text: string }

/** The warnings of all mappings with a hook of their own. */
export async function findPathWarnings(parts: ShapeParts): Promise<PathWarning[]> {
  const byHook = new Map<string, NamedShape[]>()
  const warnings: PathWarning[] = []
  for (const compiled of parts.generation.mappings) {
    const hook = trimSlashes(compiled.match.path ?? '')
    if (hook === '') continue
    const shapes = byHook.get(hook) ?? (await collectShapes(parts, hook))
    byHook.set(hook, shapes)
    warnings.push(...checkMapping(compiled, shapes))
  }
  return warnings
}

function checkMapping(compiled: CompiledMapping, shapes: readonly NamedShape[]): PathWarning[] {
  const { id: mappingId, mapping } = compiled
  const taken = shapes.filter((shape) => mayMatch(mapping, shape) && isEvidence(shape, compiled))
  const requests = taken.reduce((sum, shape) => sum + readRequests(shape).count, 0)
  if (requests === 0) return []
  return listReads(mapping).flatMap(({ field, text, path }) => {
    const found = taken.map(({ shape }) => findPath(shape, path))
    if (found.some(({ has }) => has !== 'no')) return []
    const near = found.find((each) => each.near !== undefined)?.near
    if (near === undefined && requests < fewestRequests) return []
    const next = near === undefined ? '' : ` Did you mean "${near}"?`
    return [{ mappingId, text: `${field} reads "${text}", which is in 0 of ${requests} known requests.${next}` }]
  })
}

/** Bundled requests of a sender show only the requests for mappings of this sender: the name of a hook alone does not show who sends to it. */
function isEvidence(shape: NamedShape, { match, mapping, provenSender }: CompiledMapping): boolean {
  if (readRequests(shape).last > 0) return true
  return [match.source, mapping.verify?.scheme, provenSender?.source].includes(shape.source)
}

/** Logs the warnings of mappings that it has not logged yet. Never rejects. */
export function createMappingWarner({ log, ...parts }: Omit<ShapeParts, 'generation'> & { readonly log: Log }) {
  let known: ReadonlySet<string> = new Set()
  const warn = async (generation: Generation): Promise<void> => {
    try {
      const warnings = [
        ...findPlaceWarnings(generation),
        ...(await findPathWarnings({ ...parts, generation, maxKept: 0 })),
      ]
      const lines = warnings.map(({ mappingId, text }) => `mapping "${mappingId}": ${text}`)
      for (const line of lines) if (!known.has(line)) log.warn({}, line)
      known = new Set(lines)
    } catch (error) {
      log.debug({ thrown: toErrorName(error) }, 'the paths of the templates could not be compared with the requests')
    }
  }
  return warn
}
