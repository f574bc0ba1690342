// Warns of paths in templates and conditions that no known request has: a misspelt path renders empty, and nothing else shows it.
import { trimSlashes } from '../../base/text.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { anyItem, type ConditionPath, formatPath, formatPlaceholder } from '../../base/path-text.ts'
import type { Log } from '../../base/log.ts'
import type { CompiledMapping } from '../../core/mapping/compile.ts'
import { findReferenceIssues } from '../config/references.ts'
import type { Generation } from '../generation/generation.ts'
import { parseItemsPath } from '../../core/mapping/items.ts'
import { findPlaceWarnings } from './place-warnings.ts'
import { listReads, type MappingRead, mayMatch } from '../../core/mapping/reads.ts'
import { type EventShape, readRequests } from '../shapes/event-shape.ts'
import { findList, findPath } from '../shapes/places.ts'
import type { Kind, Shape } from '../shapes/shape.ts'
import { type ShapeParts, streamHookShapes } from './payload-shapes.ts'

/**
 * The minimum number of requests for a warning about a path without a similar one. If there are fewer, they may lack an optional field by
 * chance.
 */
const minRequests = 20

/** `path`: as it is written. `near`: a similar path that requests have. */
export type PathWarning = {
  readonly mappingId: string
  readonly path: string
  readonly near: string | undefined
  readonly text: string
}

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
    const near = findFault(shape.shape, each.read)
    each.isFound ||= near === undefined
    if (near !== undefined && near !== 'none') each.near ??= formatNear(near, each.read.field)
  }
}

/** Why the payloads have no value for a read: the path that was probably meant, or none. Undefined if they have it, or may have it. */
function findFault(root: Shape, { path, text, needs }: MappingRead): ConditionPath | 'none' | undefined {
  if (needs === 'list') {
    const found = parseItemsPath(text).paths.map((each) => findPath(root, each))
    const isFound = found.some((each) => each.has === 'unknown' || (each.has === 'yes' && each.kinds.has('array')))
    return isFound ? undefined : (findList(root) ?? 'none')
  }
  const found = findPath(root, path)
  if (found.has === 'no') return found.near ?? 'none'
  // no list equals a value
  return needs === 'scalar' && found.has === 'yes' && isList(found.kinds) ? [...path, anyItem] : undefined
}

function isList(kinds: ReadonlySet<Kind>): boolean {
  return kinds.has('array') && [...kinds].every((kind) => kind === 'array' || kind === 'null')
}

/** Only conditions read any item of a list; a template reads the first one. */
function formatNear(near: ConditionPath, field: string): string {
  if (field === 'forEach' && near.length === 0) return 'payload'
  if (field.endsWith('.payload') || field === 'forEach') return formatPath(near)
  return formatPlaceholder(near.map((step) => (step === anyItem ? 0 : step)))
}

function listWarnings({ compiled, reads, requests }: Check): PathWarning[] {
  if (requests === 0) return []
  return reads.flatMap(({ read: { field, text, needs }, isFound, near }) => {
    if (isFound || (near === undefined && requests < minRequests)) return []
    const next = near === undefined ? '' : ` Did you mean "${near}"?`
    const what = needs === 'list' ? ' a list' : near === `${text}[*]` ? ' a value, and not a list,' : ''
    const fault = `${field} reads "${text}", which is${what} in 0 of ${requests} known requests.`
    return [{ mappingId: compiled.id, path: text, near, text: fault + next }]
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
export function createWarner({ log, ...parts }: Omit<ShapeParts, 'generation'> & { readonly log: Log }) {
  let known: ReadonlySet<string> = new Set()
  const warn = async (generation: Generation): Promise<void> => {
    try {
      const warnings = [
        ...findPlaceWarnings(generation),
        ...(await findPathWarnings({ ...parts, generation, maxKept: 0 })),
      ]
      const lines = [
        ...findReferenceIssues(generation.config).map(({ text }) => text),
        ...warnings.map(({ mappingId, text }) => `mapping "${mappingId}": ${text}`),
      ]
      for (const line of lines) if (!known.has(line)) log.warn({}, line)
      known = new Set(lines)
    } catch (error) {
      log.debug({ thrown: toErrorName(error) }, 'the paths of the templates could not be compared with the requests')
    }
  }
  return warn
}
