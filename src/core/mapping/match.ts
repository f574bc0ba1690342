// Chooses the mapping for a delivery: the first one in the order of the configuration whose conditions are all true.
import { groupBy } from '../../base/group.ts'
import type { SentValue } from '../../base/json.ts'
import type { ConditionPath } from '../../base/path-text.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Mapping } from '../model/mapping.ts'
import type { Alternative, Match, ConditionValue } from '../model/match.ts'
import { normalizeHookName } from '../model/mapping-rules.ts'
import { readPayload } from '../model/body.ts'
import { Problem, type TraceEntry } from '../model/problem.ts'
import { compileComparison, quote } from './condition.ts'
import { isNowhere, parseConditionPath, readValues } from '../model/path.ts'

/** The fields of a delivery that are one word. A condition compares the word. */
const words = ['source', 'event'] as const
type Word = (typeof words)[number]

/** The fields of a delivery that conditions read. */
export type MatchInput = Pick<Delivery, Word | 'path' | 'headers' | 'body'>

/** The mappings that a hook name can reach, in order. Empty: no hook has this name. */
export type HookMappings<T> = {
  readonly mappings: readonly T[]
  /**
   * The mapping that takes a delivery, and the mappings that were tried until then. `findDenial`: why the request may not use a mapping;
   * undefined if it may. Without it, every mapping is open.
   */
  readonly find: (
    delivery: MatchInput,
    findDenial?: (mapping: T) => string | undefined,
  ) => { mapping: T | undefined; trace: readonly TraceEntry[] }
}

export type Router<T> = {
  /** Returns the same object for the same path, and one object for all paths that no mapping names. */
  findMappings(path: string): HookMappings<T>
  /** Every mapping of the configuration, in order, each with its reason. */
  explain(delivery: MatchInput): TraceEntry[]
}

/** The part of a mapping that decides whether it takes a delivery. */
type Routable = {
  readonly id: string
  readonly match: Match
  readonly accept?: Mapping['accept']
  /** Whether a delivery matches `flow.cancelOn`: the mapping takes such a delivery too. */
  readonly isCancelledBy?: (delivery: MatchInput) => boolean
}

/** Returns why the condition is false; undefined if it is true. */
type Condition = (delivery: MatchInput) => string | undefined
type Rule<T> = {
  mapping: T
  path: string | undefined
  conditions: readonly Condition[]
  hit: TraceEntry
}

/** Throws `config-invalid` with the mapping if the payload path of a condition does not parse. */
export function createRouter<T extends Routable>(mappings: readonly T[]): Router<T> {
  const rules = mappings.map(compileRule)
  const groups = groupBy(rules.entries(), ([, { path = '' }]) => path)
  const pathless = groups.get('') ?? []
  const toHook = (chosen: readonly (readonly [number, Rule<T>])[]) =>
    buildHookMappings(chosen.toSorted(([one], [other]) => one - other).map(([, rule]) => rule))
  const anywhere = toHook(pathless)
  // a Map, not an object: a hook may be named `constructor`
  const byPath = new Map<string, HookMappings<T>>()
  for (const [path, own] of groups) if (path !== '') byPath.set(path, toHook([...own, ...pathless]))

  return {
    findMappings: (path) => byPath.get(path) ?? anywhere,
    explain(delivery) {
      let first: string | undefined
      return rules.map((rule) => {
        const { mapping, path } = rule
        const entry =
          path !== undefined && path !== delivery.path
            ? {
                mappingId: mapping.id,
                matched: false,
                why: `path is ${quote(delivery.path)}, this mapping takes ${quote(path)}`,
              }
            : tryRule(rule, delivery)
        if (!entry.matched) return entry
        if (first !== undefined) {
          return { mappingId: mapping.id, matched: false, why: `it matches too, but ${quote(first)} comes first` }
        }
        first = mapping.id
        return entry
      })
    },
  }
}

function buildHookMappings<T extends Routable>(rules: readonly Rule<T>[]): HookMappings<T> {
  return {
    mappings: rules.map(({ mapping }) => mapping),
    find(delivery, findDenial = () => undefined) {
      const trace: TraceEntry[] = []
      for (const rule of rules) {
        const { mapping } = rule
        const denial = findDenial(mapping)
        const entry =
          denial === undefined ? tryRule(rule, delivery) : { mappingId: mapping.id, matched: false, why: denial }
        trace.push(entry)
        if (entry.matched) return { mapping, trace }
      }
      return { mapping: undefined, trace }
    },
  }
}

/** Whether the conditions of a mapping, or those of its `flow.cancelOn`, are true. */
function tryRule<T extends Routable>({ mapping, conditions, hit }: Rule<T>, delivery: MatchInput): TraceEntry {
  const why = findMiss(conditions, delivery)
  if (why === undefined) return hit
  const isCancelled = mapping.isCancelledBy?.(delivery) === true
  return { mappingId: mapping.id, matched: isCancelled, why: isCancelled ? 'flow.cancelOn matches' : why }
}

function findMiss(conditions: readonly Condition[], delivery: MatchInput): string | undefined {
  for (const condition of conditions) {
    const why = condition(delivery)
    if (why !== undefined) return why
  }
  return undefined
}

function compileRule<T extends Routable>(mapping: T): Rule<T> {
  const { id, match } = mapping
  const path = normalizeHookName(match.path ?? '') || undefined
  const { conditions, reasons } = compileConditions(id, match)
  if (path !== undefined) reasons.unshift(`path is ${quote(path)}`)
  if (match.any !== undefined) {
    conditions.push(compileAlternatives(match.any.map((alternative) => compileConditions(id, alternative).conditions)))
    reasons.push(`at least one of the ${match.any.length} alternatives is true`)
  }
  const why = reasons.length === 0 ? 'it has no conditions' : reasons.join(', ')
  const hit = Object.freeze({ mappingId: id, matched: true, why })
  return { mapping, path, conditions: [createBodyCondition(mapping.accept), ...conditions], hit }
}

/**
 * Returns a function that says whether a delivery matches `flow.cancelOn`, has a body that the mapping accepts, and comes from the sender of the
 * mapping: its source and its headers count too.
 */
export function compileCancelTest(
  { id, match: { source, headers }, accept }: Pick<Routable, 'id' | 'match' | 'accept'>,
  cancelOn: Alternative | undefined,
): (delivery: MatchInput) => boolean {
  if (cancelOn === undefined) return () => false
  const stated = [{ source, headers }, cancelOn].flatMap((match) => compileConditions(id, match).conditions)
  const conditions = [createBodyCondition(accept), ...stated]
  return (delivery) => findMiss(conditions, delivery) === undefined
}

/** The conditions, and for each one the reason that is shown when it is true. */
function compileConditions(id: string, match: Alternative): { conditions: Condition[]; reasons: string[] } {
  const conditions: Condition[] = []
  const reasons: string[] = []
  for (const [name, wanted] of Object.entries(match.headers ?? {})) {
    conditions.push(compileHeaderCondition(name.toLowerCase(), wanted))
    reasons.push(`header ${name.toLowerCase()} matches`)
  }
  for (const field of words) {
    const wanted = match[field]
    if (wanted === undefined) continue
    const { condition, description } = compileWordCondition(field, wanted)
    conditions.push(condition)
    reasons.push(`${field} is ${description}`)
  }
  for (const [expression, wanted] of Object.entries(match.payload ?? {})) {
    const { condition, description } = compilePayloadCondition(id, expression, wanted)
    conditions.push(condition)
    reasons.push(`payload.${expression} is ${description}`)
  }
  return { conditions, reasons }
}

/** A condition that is true if all conditions of at least one alternative are. */
function compileAlternatives(alternatives: readonly (readonly Condition[])[]): Condition {
  return (delivery) => {
    const misses: string[] = []
    for (const conditions of alternatives) {
      const why = findMiss(conditions, delivery)
      if (why === undefined) return undefined
      misses.push(why)
    }
    const rest = misses.length > 3 ? `; and ${misses.length - 3} more` : ''
    return `none of the alternatives is true: ${misses.slice(0, 3).join('; ')}${rest}`
  }
}

/** Text and XML are only for mappings that accept them: others expect fields in the payload. */
function createBodyCondition(accept: Mapping['accept']): Condition {
  return ({ body: { syntax } }) => {
    if (syntax === 'json' || syntax === 'form' || accept?.includes(syntax) === true) return undefined
    return `the body is ${syntax === 'xml' ? 'XML' : syntax}, which this mapping does not accept`
  }
}

type DescribedCondition = { readonly condition: Condition; readonly description: string }

function compileWordCondition(field: Word, wanted: ConditionValue): DescribedCondition {
  const { description, findMiss: findWordMiss } = compileComparison(wanted)
  const condition: Condition = (delivery) => {
    const word = delivery[field]
    if (findWordMiss(word) === undefined) return undefined
    return `${field} is ${word === undefined ? 'unknown' : quote(word)}, this mapping takes ${description}`
  }
  return { condition, description }
}

// a header may carry a shared secret: the reason shows neither the received value nor the expected one
function compileHeaderCondition(name: string, wanted: ConditionValue): Condition {
  const { findMiss: findValueMiss } = compileComparison(wanted)
  return ({ headers }) => {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (findValueMiss(value) === undefined) return undefined
    return value === undefined ? `header ${name} is missing` : `header ${name} has another value`
  }
}

// a reason shows only the kind of a value of the payload
function compilePayloadCondition(id: string, expression: string, wanted: ConditionValue): DescribedCondition {
  const path = parsePayloadPath(id, expression)
  const { description, findMissAmong } = compileComparison(wanted)
  if (isNowhere(path) && findMissAmong([undefined]) !== undefined) {
    const why =
      'finds nothing in any payload, so the condition is never true. Items count from 0, and the names constructor, prototype and __proto__ are not read.'
    throw new Problem('config-invalid', `Mapping "${id}": match.payload: The path ${quote(expression)} ${why}`)
  }
  const condition: Condition = ({ body }) => {
    const values = readValues(readPayload(body), path)
    const miss = findMissAmong(values)
    if (miss === undefined) return undefined
    const found = values.every((value) => value === undefined) ? 'missing' : miss
    return `payload.${expression} is ${found}, this mapping takes ${description}${describeNext(expression, values)}`
  }
  return { condition, description }
}

/** A value that is a list never equals a text: the author may have meant its items. */
function describeNext(expression: string, values: readonly (SentValue | undefined)[]): string {
  return values.length === 1 && Array.isArray(values[0]) ? `: "${expression}[*]" is any of its items` : ''
}

function parsePayloadPath(id: string, expression: string): ConditionPath {
  try {
    return parseConditionPath(expression)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem('config-invalid', `Mapping "${id}": match.payload: ${error.message}`, { cause: error })
  }
}
