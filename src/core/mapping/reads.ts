// Lists the paths that a mapping reads in the payload, without running it.
import type { ConditionPath } from '../../base/path-text.ts'
import type { Alternative, ConditionValue } from '../model/match.ts'
import type { NamedMapping } from './compile.ts'
import { compileComparison, isTests } from './condition.ts'
import { parseItemsPath } from './items.ts'
import { parseConditionPath } from '../model/path.ts'
import { listReadPaths, type ReadPath } from './template.ts'

/** `field`: the key of the mapping, such as `messageTemplate` or `match.payload`. */
export type MappingRead = Omit<ReadPath, 'path'> & {
  readonly field: string
  readonly path: ConditionPath
  /** What the value must be: for a condition that compares it, no list or object; for `forEach`, a list. Undefined: anything. */
  readonly needs?: 'scalar' | 'list' | undefined
}

/** Throws `config-invalid` if a template or a path does not parse. */
export function listReads(mapping: NamedMapping): MappingRead[] {
  const { messageTemplate, textTemplate, name, sessionKey, response, flow, forEach, match } = mapping
  const templates = {
    messageTemplate,
    textTemplate,
    name,
    sessionKey,
    'response.body': response?.body,
    'flow.key': flow?.key,
    'flow.rateLimit.key': flow?.rateLimit?.key,
  }
  return [
    ...Object.entries(templates).flatMap(([field, text = '']) =>
      listReadPaths(text).map((read) => ({ ...read, field })),
    ),
    ...[match, ...(match.any ?? [])].flatMap((conditions) => listConditions(conditions, 'match.payload')),
    ...listConditions(flow?.cancelOn ?? {}, 'flow.cancelOn.payload'),
    ...(forEach === undefined ? [] : [readList(forEach)]),
  ]
}

function readList(text: string): MappingRead {
  const [path = []] = parseItemsPath(text).paths
  return { field: 'forEach', text, path, hasDefault: false, needs: 'list' }
}

/** A missing value is expected (`hasDefault`) only by `"exists": false`. It also passes `not`, but then the condition no longer denies anything. */
function listConditions({ payload = {} }: Pick<Alternative, 'payload'>, field: string): MappingRead[] {
  return Object.entries(payload).map(([text, wanted]) => {
    const hasDefault = isTests(wanted) && wanted.exists === false
    return { field, text, path: parseConditionPath(text), hasDefault, needs: isPresence(wanted) ? undefined : 'scalar' }
  })
}

/** Whether a condition asks only whether there is a value. */
function isPresence(wanted: ConditionValue): boolean {
  return isTests(wanted) && Object.keys(wanted).every((test) => test === 'exists')
}

/** Whether requests of this sender and event may match. */
export function mayMatch(
  mapping: NamedMapping,
  { source, event }: { readonly source: string; readonly event: string },
) {
  const { match } = mapping
  if (match.source !== undefined && match.source !== source) return false
  return match.event === undefined || compileComparison(match.event).findMiss(event || undefined) === undefined
}
