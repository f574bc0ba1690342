// Warns of paths in templates and conditions that no known request has: a misspelt path renders empty, and nothing else shows it.
import { trimSlashes } from '../base/text.ts'
import { toErrorName } from '../base/exceptions.ts'
import { anyItem, type ConditionPath, formatPath, formatPlaceholder } from '../model/api/path.ts'
import type { Log } from '../model/log.ts'
import type { CompiledMapping } from '../pipeline/compile.ts'
import type { Generation } from '../pipeline/generation.ts'
import { findPlaceWarnings } from '../pipeline/place-warnings.ts'
import { listReads, type MappingRead, mayMatch } from '../pipeline/reads.ts'
import { type EventShape, readRequests } from '../shapes/event-shape.ts'
import { findPath } from '../shapes/places.ts'
import { type ShapeParts, streamHookShapes } from './payload-shapes.ts'

/**
 * The minimum number of requests for a warning about a path without a similar one. If there are fewer, they may lack an optional field by
 * chance.
 */
const minRequests = 20

export type PathWarning = { readonly mappingId: string; readonly text: string }

/** The warnings of all mappings that name their hook. */
export async function findPathWarnings(parts: ShapeParts): Promise<PathWarning[]> {
  const checks = parts.generation.mappings.flatMap((compiled) => {
    const hook = trimSlashes(compiled.match.path ?? '')
    return hook === '' ? [] : [createCheck(hook, compiled)]
  })
  for (const hook of new Set(checks.map((check) => check.hook))) {
    const own = checks.filter((check) => check.hook === hook)
    for await (const shape of streamHookShapes(parts, hook)) for (const check of own) addShape(check, shape)
  }
  return checks.flatMap(listWarnings)
}

/** The paths that a mapping reads, and whether a known request has them. `near`: a similar path that exists. */
type Check = {
  readonly hook: string
  readonly compiled: CompiledMapping
  readonly reads: readonly { readonly read: MappingRead; isFound: boolean; near: string | undefined }[]
  requests: number
}

function createCheck(hook: string, compiled: CompiledMapping): Check {
  const reads = listReads(compiled.mapping).map((read) => ({ read, isFound: false, near: undefined }))
  return { hook, compiled, reads, requests: 0 }
}

function addShape(check: Check, shape: EventShape): void {
  if (!mayMatch(check.compiled.mapping, shape) || !isEvidence(shape, check.compiled)) return
  check.requests += readRequests(shape).count
  for (const each of check.reads) {
    const { has, near } = findPath(shape.shape, each.read.path)
    each.isFound ||= has !== 'no'
    each.near ??= near && formatNear(near, each.read.field)
  }
}

/** Only conditions read any item of a list; a template reads the first one. */
function formatNear(near: ConditionPath, field: string): string {
  if (field.endsWith('.payload') || field === 'forEach') return formatPath(near)
  return formatPlaceholder(near.map((step) => (step === anyItem ? 0 : step)))
}

function listWarnings({ compiled, reads, requests }: Check): PathWarning[] {
  if (requests === 0) return []
  return reads.flatMap(({ read: { field, text }, isFound, near }) => {
    if (isFound || (near === undefined && requests < minRequests)) return []
    const next = near === undefined ? '' : ` Did you mean "${near}"?`
    return [
      { mappingId: compiled.id, text: `${field} reads "${text}", which is in 0 of ${requests} known requests.${next}` },
    ]
  })
}

/**
 * Whether the requests of this shape count for a mapping. Fixtures and bundled requests count only for the mappings of their sender: the name
 * of a hook alone does not show who sends to it.
 */
function isEvidence(shape: EventShape, { match, mapping, provenSender }: CompiledMapping): boolean {
  if (readRequests(shape).last > 0) return true
  return [match.source, mapping.verify?.scheme, provenSender?.source].includes(shape.source)
}

/** Returns a function that logs the warnings about a generation, without those of its last call. It never rejects. */
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
