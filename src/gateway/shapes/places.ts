// The places of a shape by their paths, as templates have them, but with `[]` for all items of a list and `<any>` for all keys of a map:
// `commits[].author.name`, `labels.<any>`.
import { findNearest } from '../../base/text.ts'
import { anyItem, type ConditionPath, formatPath } from '../../base/path-text.ts'
import { countSeen, type Kind, type Shape } from './shape.ts'

export type FieldPlace = {
  readonly path: string
  readonly kinds: readonly Kind[]
  readonly count: number
  /** The number of objects that could have had the field: those that were read one level above. For items and `<any>`, the number of values. */
  readonly of: number
}

type Visit = (place: { readonly path: string; readonly shape: Shape; readonly of: number }) => void

/** Calls `visit` for each place below the root. */
export function walk(shape: Shape, visit: Visit, path = ''): void {
  const { fields, others, items, opened } = shape
  const below = (inner: string, child: Shape, of: number) => {
    visit({ path: inner, shape: child, of })
    walk(child, visit, inner)
  }
  for (const [key, field] of fields) below(path + formatBelow(path, key), field, opened)
  if (others !== undefined) below(path === '' ? '<any>' : `${path}.<any>`, others, countSeen(others))
  if (items !== undefined) below(`${path}[]`, items, countSeen(items))
}

export function listPlaces(shape: Shape): FieldPlace[] {
  const places: FieldPlace[] = []
  walk(shape, ({ path, shape: place, of }) => {
    places.push({ path, kinds: [...place.kinds.keys()], count: countSeen(place), of })
  })
  return places
}

function formatBelow(path: string, key: string): string {
  const text = formatPath([key])
  return path === '' || text.startsWith('[') ? text : `.${text}`
}

/** Whether a path is in the payloads. `unknown`: the shape cannot say. `near`: a similar path that they have, or may have. */
type FoundPath =
  | { readonly has: 'yes'; readonly kinds: ReadonlySet<Kind> }
  | { readonly has: 'no'; readonly near: ConditionPath | undefined }
  | { readonly has: 'unknown' }

/**
 * Finds a path in the payloads. The shape cannot say whether they have it, if it leads into a map, into a value that was always null or empty, or into a
 * part that the limits left out.
 */
export function findPath(root: Shape, path: ConditionPath): FoundPath {
  let shape = root
  for (const [at, step] of path.entries()) {
    const isIndex = typeof step !== 'string' || (shape.kinds.has('array') && /^\d+$/.test(step))
    if (step === 'length' && shape.kinds.has('array')) return { has: 'yes', kinds: new Set(['number']) }
    const next = isIndex ? shape.items : shape.fields.get(step)
    if (next !== undefined) {
      shape = next
      continue
    }
    const isEmpty = isIndex ? shape.kinds.has('array') : shape.kinds.has('object') && shape.fields.size === 0
    const isOpen = shape.others !== undefined || shape.isPartial || isEmpty || isNothing(shape)
    return isOpen ? { has: 'unknown' } : { has: 'no', near: findNearPath(root, path, { at, shape }) }
  }
  return { has: 'yes', kinds: new Set(shape.kinds.keys()) }
}

/** The shortest path to a list, which leads through no other list; undefined if the payloads have none. */
export function findList(root: Shape): readonly string[] | undefined {
  let level: (readonly [readonly string[], Shape])[] = [[[], root]]
  while (level.length > 0) {
    const list = level.find(([, { kinds, items }]) => kinds.has('array') && items !== undefined)
    if (list !== undefined) return list[0]
    level = level.flatMap(([path, { fields }]) => [...fields].map(([key, field]) => [[...path, key], field] as const))
  }
  return undefined
}

/** The first path that the payloads have, or may have, of those that the author may have meant. `shape`: the place that lacks the step at `at`. */
function findNearPath(
  root: Shape,
  path: ConditionPath,
  missing: { at: number; shape: Shape },
): ConditionPath | undefined {
  const { at, shape } = missing
  const before = path.slice(0, at)
  const step = path[at]
  if (typeof step !== 'string') return undefined
  const spelt = findNearest(step, [...shape.fields.keys()])
  const meant = [
    ...findKeys(shape, path.slice(at)).map(({ key, rest }): ConditionPath => [...before, key, ...rest]),
    ...(shape.items === undefined ? [] : [[...before, anyItem, ...path.slice(at)] satisfies ConditionPath]),
    ...(spelt === undefined ? [] : [[...before, spelt, ...path.slice(at + 1)]]),
  ]
  for (const each of meant) {
    const found = findPath(root, each)
    if (found.has !== 'no') return each
    if (found.near !== undefined) return found.near
  }
  return undefined
}

/** The keys that several steps name together: `System.Title` for the steps `System` and `Title`, `data[email]` for `data` and `email`. */
function findKeys({ fields }: Shape, steps: ConditionPath): { key: string; rest: ConditionPath }[] {
  return steps.flatMap((_, last) => {
    const [first = '', ...others] = steps.slice(0, last + 1).map(String)
    const spellings = [[first, ...others].join('.'), `${first}${others.map((name) => `[${name}]`).join('')}`]
    const rest = steps.slice(last + 1)
    return others.length === 0 ? [] : spellings.filter((key) => fields.has(key)).map((key) => ({ key, rest }))
  })
}

/** Whether only null was seen. */
function isNothing({ kinds }: Shape): boolean {
  return [...kinds.keys()].every((kind) => kind === 'null')
}

/** The shape at a path of fields; undefined if there is none. */
export function findFieldShape(root: Shape, path: ConditionPath): Shape | undefined {
  let shape: Shape | undefined = root
  for (const step of path) shape = typeof step === 'string' ? shape?.fields.get(step) : undefined
  return shape
}
