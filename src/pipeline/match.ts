// Chooses the mapping for a delivery: the first one in the order of the configuration whose conditions are all true.
import { cut } from '../base/text.ts'
import type { Delivery } from '../model/delivery.ts'
import { describeValueKind, type JsonValue } from '../base/json.ts'
import type { Mapping, Match } from '../model/mapping.ts'
import { normalizeHookName } from '../model/mapping-rules.ts'
import { readPayload } from '../model/parse-body.ts'
import { Problem, type TraceEntry } from '../model/problem.ts'
import { parsePath, readPath } from './path.ts'

/** Conditions on one word of a delivery: it must be one of those in the mapping. */
const words = ['source', 'event'] as const
type Word = (typeof words)[number]

/** The fields of a delivery that conditions read. */
export type MatchInput = Pick<Delivery, Word | 'path' | 'headers' | 'body'>

/** The mappings that a hook name can reach, in order. Empty: no hook has this name. */
export type HookMappings<T> = {
  readonly mappings: readonly T[]
  /** The mapping that takes a delivery, and the mappings that were tried until then. */
  readonly find: (
    delivery: MatchInput,
    isOpened?: (mapping: T) => boolean,
  ) => { mapping: T | undefined; trace: readonly TraceEntry[] }
}

export type Router<T> = {
  /** Returns the same object for the same mappings. */
  mappingsFor(path: string): HookMappings<T>
  /** Every mapping of the configuration, in order, each with its reason. */
  explain(delivery: MatchInput): TraceEntry[]
}

const unproved = 'the request has no valid proof for this mapping'

/** The part of a mapping that decides whether it takes a delivery. */
type Routable = { readonly id: string; readonly match: Match; readonly accept?: Mapping['accept'] }

/** Why a condition is false; undefined if it is true. */
type Condition = (delivery: MatchInput) => string | undefined
type Rule<T> = { mapping: T; path: string | undefined; conditions: readonly Condition[]; hit: TraceEntry }

/** Throws `config-invalid` with the mapping if a payload path does not parse. */
export function createRouter<T extends Routable>(mappings: readonly T[]): Router<T> {
  const rules = mappings.map(compileRule)
  const anywhere = toHookMappings(rules.filter(({ path }) => path === undefined))
  // a Map, not an object: a hook may be named `constructor`
  const lanes = new Map<string, HookMappings<T>>()
  for (const { path } of rules) {
    if (path === undefined || lanes.has(path)) continue
    lanes.set(path, toHookMappings(rules.filter((rule) => rule.path === path || rule.path === undefined)))
  }

  return {
    mappingsFor: (path) => lanes.get(path) ?? anywhere,
    explain(delivery) {
      let first: string | undefined
      return rules.map(({ mapping, path, conditions, hit }) => {
        const why =
          path !== undefined && path !== delivery.path
            ? `path is ${quote(delivery.path)}, this mapping takes ${quote(path)}`
            : findMiss(conditions, delivery)
        if (why !== undefined) return { mappingId: mapping.id, matched: false, why }
        if (first !== undefined) {
          return { mappingId: mapping.id, matched: false, why: `it matches too, but ${quote(first)} comes first` }
        }
        first = mapping.id
        return hit
      })
    },
  }
}

function toHookMappings<T extends { readonly id: string }>(rules: readonly Rule<T>[]): HookMappings<T> {
  return {
    mappings: rules.map(({ mapping }) => mapping),
    find(delivery, isOpened = () => true) {
      const trace: TraceEntry[] = []
      for (const { mapping, conditions, hit } of rules) {
        const why = isOpened(mapping) ? findMiss(conditions, delivery) : unproved
        if (why === undefined) {
          trace.push(hit)
          return { mapping, trace }
        }
        trace.push({ mappingId: mapping.id, matched: false, why })
      }
      return { mapping: undefined, trace }
    },
  }
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
  const conditions: Condition[] = [toBodyCondition(mapping.accept)]
  const reasons: string[] = path === undefined ? [] : [`path is ${quote(path)}`]
  for (const [name, values] of Object.entries(match.headers ?? {})) {
    conditions.push(toHeaderCondition(name.toLowerCase(), [values].flat()))
    reasons.push(`header ${name.toLowerCase()} matches`)
  }
  for (const field of words) {
    const wanted = match[field]
    if (wanted === undefined) continue
    conditions.push(toWordCondition(field, [wanted].flat()))
    reasons.push(`${field} is ${describeChoice([wanted].flat())}`)
  }
  for (const [expression, values] of Object.entries(match.payload ?? {})) {
    conditions.push(toPayloadCondition(id, expression, [values].flat()))
    reasons.push(`payload.${expression} is ${describeChoice([values].flat())}`)
  }
  const why = reasons.length === 0 ? 'it has no conditions' : reasons.join(', ')
  return { mapping, path, conditions, hit: Object.freeze({ mappingId: id, matched: true, why }) }
}

/** Text and XML are only for mappings that accept them: others expect fields in the payload. */
function toBodyCondition(accept: Mapping['accept']): Condition {
  return ({ body: { syntax } }) => {
    if (syntax === 'json' || syntax === 'form' || accept?.includes(syntax) === true) return undefined
    return `the body is ${syntax === 'xml' ? 'XML' : 'text'}, which this mapping does not accept`
  }
}

function toWordCondition(field: Word, wanted: readonly string[]): Condition {
  const choice = describeChoice(wanted)
  return (delivery) => {
    const word = delivery[field]
    if (word !== undefined && wanted.includes(word)) return undefined
    return `${field} is ${word === undefined ? 'unknown' : quote(word)}, this mapping takes ${choice}`
  }
}

// headers may carry shared secrets: the message shows neither the value that came nor the wanted one
function toHeaderCondition(name: string, wanted: readonly string[]): Condition {
  return ({ headers }) => {
    if (!Object.hasOwn(headers, name)) return `header ${name} is missing`
    return wanted.includes(headers[name] ?? '') ? undefined : `header ${name} has another value`
  }
}

type Scalar = string | number | boolean | null

// traces do not show values of the payload, only their kind
function toPayloadCondition(id: string, expression: string, wanted: readonly Scalar[]): Condition {
  const path = parsePayloadPath(id, expression)
  const choice = describeChoice(wanted)
  const kinds = new Set(wanted.map(describeValueKind))
  return ({ body }) => {
    const value = readPath(readPayload(body), path)
    if (isScalar(value) && wanted.includes(value)) return undefined
    const kind = describeValueKind(value)
    const found = kinds.has(kind) ? kind.replace(/^an? /, 'another ') : kind
    return `payload.${expression} is ${found}, this mapping takes ${choice}`
  }
}

function parsePayloadPath(id: string, expression: string): ReturnType<typeof parsePath> {
  try {
    return parsePath(expression)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem('config-invalid', `Mapping "${id}": match.payload: ${error.message}`, { cause: error })
  }
}

function isScalar(value: JsonValue | undefined): value is Scalar {
  return value === null || (typeof value !== 'object' && value !== undefined)
}

/** Values of the configuration for people: the first few, and the number of the rest. */
function describeChoice(wanted: readonly Scalar[]): string {
  const shown = wanted.slice(0, 6).map((value) => (typeof value === 'string' ? quote(value) : String(value)))
  return wanted.length > shown.length
    ? `${shown.join(', ')} or ${wanted.length - shown.length} more`
    : shown.join(' or ')
}

/** One short line: senders choose this text. */
function quote(text: string): string {
  return JSON.stringify(cut(text, 60))
}
