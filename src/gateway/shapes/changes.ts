// Lists the changes in the payloads of an event, and their times: new fields, new kinds, and fields that no longer come.
import { walk } from './places.ts'
import { countSeen, type Kind, type Shape } from './shape.ts'

/** `at`: milliseconds since the epoch. `kind`: the new kind. */
export type ShapeChange = {
  readonly at: number
  readonly what: 'new-field' | 'new-kind' | 'gone'
  readonly path: string
  readonly kind?: Kind
  readonly text: string
}

/** A field counts as gone only if it was seen at least this many times. */
const fewestOfGone = 20

/** The changes since `since`, oldest first. Fields below a new field are not listed. */
export function listShapeChanges(root: Shape, since: number): ShapeChange[] {
  const changes: ShapeChange[] = []
  const last = readLast(root)
  const covered: string[] = []
  walk(root, ({ path, shape, of }) => {
    if (covered.some((outer) => path.startsWith(outer))) return
    const first = readFirst(shape)
    const names = [...shape.kinds.keys()].join(' or ')
    if (first >= since) {
      covered.push(`${path}.`, `${path}[`)
      changes.push({ at: first, what: 'new-field', path, text: `${path} is new: ${names}` })
      return
    }
    for (const [kind, { first: at }] of shape.kinds) {
      if (at >= since) changes.push({ at, what: 'new-kind', path, kind, text: `${path} is now sometimes ${kind}` })
    }
    const lastAt = readLast(shape)
    if (lastAt >= since && isGone(shape, last)) {
      covered.push(`${path}.`, `${path}[`)
      changes.push({
        at: lastAt,
        what: 'gone',
        path,
        text: `${path} came last then; it was in ${countSeen(shape)} of ${of}`,
      })
    }
  })
  return changes.toSorted((one, other) => one.at - other.at)
}

/** Whether the place has been missing for ten times its usual interval. `last`: the time of the last request of the event. */
function isGone(shape: Shape, last: number): boolean {
  const count = countSeen(shape)
  const usualMs = (readLast(shape) - readFirst(shape)) / (count - 1)
  return count >= fewestOfGone && last - readLast(shape) > 10 * usualMs
}

function readFirst({ kinds }: Shape): number {
  return Math.min(...[...kinds.values()].map(({ first }) => first))
}

function readLast({ kinds }: Shape): number {
  return Math.max(...[...kinds.values()].map(({ last }) => last))
}
