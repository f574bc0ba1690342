// The places of a shape by their paths, as templates write them: `commits[].author.name`, `labels.<any>` for a map.
import { findNearest } from '../base/text.ts'
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
  for (const [key, field] of fields) below(path === '' ? key : `${path}.${key}`, field, opened)
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

/**
 * Whether a path is in the payloads. `unknown`: the shape cannot say, because it leads into a map, into a value that was always null or empty, or
 * into a part that the limits left out. `near`: the similar path that exists.
 */
export function findPath(
  root: Shape,
  path: readonly (string | number)[],
): { readonly has: 'yes' | 'no' | 'unknown'; readonly near?: string } {
  let shape = root
  for (const [at, step] of path.entries()) {
    const isIndex = typeof step === 'number' || (shape.kinds.has('array') && /^\d+$/.test(step))
    if (step === 'length' && shape.kinds.has('array')) return { has: 'yes' }
    const next = isIndex ? shape.items : shape.fields.get(step)
    if (next !== undefined) {
      shape = next
      continue
    }
    const isEmpty = isIndex ? shape.kinds.has('array') : shape.kinds.has('object') && shape.fields.size === 0
    const isOpen = shape.others !== undefined || shape.isPartial || isEmpty || isNothing(shape)
    if (isOpen) return { has: 'unknown' }
    const near = isIndex ? undefined : findNearest(step, [...shape.fields.keys()])
    return {
      has: 'no',
      ...(near !== undefined && { near: renderPath([...path.slice(0, at), near, ...path.slice(at + 1)]) }),
    }
  }
  return { has: 'yes' }
}

/** Whether only null was seen. */
function isNothing({ kinds }: Shape): boolean {
  return [...kinds.keys()].every((kind) => kind === 'null')
}

export function renderPath(path: readonly (string | number)[]): string {
  return path.map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? step : `.${step}`)).join('')
}

/** The shape at a path of fields; undefined if there is none. */
export function findFieldShape(root: Shape, path: readonly (string | number)[]): Shape | undefined {
  let shape: Shape | undefined = root
  for (const step of path) shape = typeof step === 'string' ? shape?.fields.get(step) : undefined
  return shape
}
