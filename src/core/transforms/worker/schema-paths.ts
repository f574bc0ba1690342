// Lists the fields that the schema of a transform names: they show which payload it expects, without a call of the transform.
import { schemaMark } from '../../model/refusal.ts'

/** Names from the root down. */
type FieldPath = readonly string[]

/** The limits of a search: a schema may be recursive, or describe a large API. */
const maxPaths = 100
const deepest = 8
const longestName = 200
const maxVisits = 2_000

type Definition = {
  readonly type?: unknown
  readonly shape?: unknown
  readonly innerType?: unknown
  readonly options?: unknown
  readonly left?: unknown
  readonly right?: unknown
  readonly in?: unknown
  readonly getter?: unknown
}

/**
 * The schema of a function that `defineTransform` made; undefined for any other function. The look-up may run code of the module, so it may
 * throw.
 */
function readSchema(callable: unknown): unknown {
  return typeof callable === 'function' && Object.hasOwn(callable, schemaMark)
    ? Reflect.get(callable, schemaMark)
    : undefined
}

/**
 * The innermost fields that a schema of Zod 4 names, optional ones too. Left out are fields below a list or a map, and fields with a default,
 * whose absence is expected. The list is empty for another schema, and for one that cannot be read.
 */
export function listSchemaPaths(callable: unknown): FieldPath[] {
  const found: FieldPath[] = []
  let visits = 0
  const visit = (schema: unknown, path: FieldPath): void => {
    visits += 1
    if (found.length >= maxPaths || path.length > deepest || visits > maxVisits) return
    const definition = readDefinition(schema)
    const { type } = definition
    if (type === 'object') visitFields(definition.shape, path)
    else if (type === 'union') for (const option of toList(definition.options)) visit(option, path)
    else if (type === 'intersection') for (const side of [definition.left, definition.right]) visit(side, path)
    else if (type === 'lazy' && typeof definition.getter === 'function') visit(definition.getter(), path)
    else if (type === 'pipe') visit(definition.in, path)
    else if (isWrapper(type)) visit(definition.innerType, path)
    else if (isLeaf(type) && path.length > 0) add(path)
  }
  const visitFields = (shape: unknown, path: FieldPath): void => {
    const names = typeof shape === 'object' && shape !== null ? Object.keys(shape) : []
    if (names.length === 0 && path.length > 0) add(path)
    for (const name of names.filter((each) => each.length <= longestName)) {
      visit(Reflect.get(Object(shape), name), [...path, name])
    }
  }
  const add = (path: FieldPath): void => {
    const text = JSON.stringify(path)
    if (!found.some((known) => JSON.stringify(known) === text)) found.push(path)
  }
  try {
    visit(readSchema(callable), [])
    return found
  } catch {
    return []
  }
}

function readDefinition(schema: unknown): Definition {
  if (typeof schema !== 'object' || schema === null || !('_zod' in schema)) return {}
  const { _zod: internals } = schema
  const definition =
    typeof internals === 'object' && internals !== null && 'def' in internals ? internals.def : undefined
  return typeof definition === 'object' && definition !== null ? definition : {}
}

/** Whether a schema wraps another one without changing which field is read. */
function isWrapper(type: unknown): boolean {
  return ['optional', 'nullable', 'nonoptional', 'readonly', 'success', 'promise'].includes(String(type))
}

/**
 * Whether a field of this type is listed. A field with a default, or with a function before its check, is not: it may be missing. Nor is a type
 * without a value.
 */
function isLeaf(type: unknown): boolean {
  return (
    typeof type === 'string' &&
    !['default', 'prefault', 'catch', 'transform', 'undefined', 'void', 'never', 'lazy'].includes(type)
  )
}

function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** Checks the paths that another thread reports: the code in that thread may post anything. */
export function parseSchemaPaths(given: unknown, exports: number): (readonly FieldPath[])[] {
  const lists = toList(given)
  return Array.from({ length: exports }, (_, at) => toList(lists[at]).filter(isFieldPath).slice(0, maxPaths))
}

function isFieldPath(path: unknown): path is FieldPath {
  return (
    Array.isArray(path) &&
    path.length > 0 &&
    path.length <= deepest &&
    path.every((name) => typeof name === 'string' && name.length <= longestName)
  )
}
