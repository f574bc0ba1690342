// The fields that a template can read, as a list that can be opened: those of the request on the bench, and those of the other requests of the hook.
import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { LearntPaths } from '../model/api/shapes.ts'
import { formatPlaceholder, type PathStep, unreadableNames } from '../base/path-text.ts'
import { choosePaths } from './paths.ts'
import { type JsonNode, readJson } from './json.ts'
import { Line } from './text.tsx'
import { readCopy, SearchField } from './tree.tsx'

const maxShown = 200
/** With more fields, the list has a search. */
const manyFields = 12
const maxDepth = 20
/** Where the fields have room beside the result, they are shown without a click. */
const roomy = matchMedia('(min-width: 1100px)')

type Field = { readonly path: string; readonly value: string | undefined; readonly note: string }
type FieldListProps = {
  readonly body: string
  readonly learnt: LearntPaths
  readonly onOpen: () => void
  /** Called with the placeholder of a clicked field. */
  readonly onPick: (placeholder: string) => void
}

export function FieldList({ body, learnt, onOpen, onPick }: FieldListProps): JSX.Element {
  const [word, setWord] = useState('')
  const [isOpen, setOpen] = useState(roomy.matches)
  useEffect(() => void (isOpen && onOpen()), [isOpen])
  const fields = useMemo(() => listFields(body, learnt), [body, learnt])
  const found = word === '' ? fields : choosePaths(fields, word)
  return (
    <details class="part" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <h3>Fields that it can read, {fields.length}</h3>
      </summary>
      {isOpen && fields.length > manyFields && (
        <div class="tools">
          <SearchField label="Search in the fields" word={word} onChange={setWord} />
        </div>
      )}
      {isOpen && (
        <ul class="field-list" aria-label="Fields">
          {found.slice(0, maxShown).map(({ path, value, note }) => (
            <li key={path}>
              <button type="button" class="name" onClick={() => onPick(`{{${path}}}`)}>
                <Line text={path} max={200} />
              </button>{' '}
              {value !== undefined && <Line text={value} max={120} />} <span class="dim">{note}</span>
            </li>
          ))}
        </ul>
      )}
      {isOpen && found.length > maxShown && <p class="note">{found.length - maxShown} more: search for them.</p>}
      {isOpen && found.length === 0 && <p class="note">No field has this name.</p>}
    </details>
  )
}

/** The fields of the body, with their values, then those that only other requests have. Objects and lists are left out. */
function listFields(body: string, { requests, paths }: LearntPaths): Field[] {
  const counts = new Map(paths.map(({ path, count }) => [path, count]))
  const countText = (path: string) => {
    const count = counts.get(path)
    // below a list, a count is that of its items
    return count === undefined || /\[\d+\]/.test(path) ? '' : `in ${count} of ${requests} requests`
  }
  const own: Field[] = []
  const root = readJson(body)
  const visit = (node: JsonNode, steps: readonly PathStep[]) => {
    if (own.length > 5_000 || steps.length > maxDepth) return
    if (node.kind === 'object') {
      for (const [key, child] of node.entries) if (!unreadableNames.has(key)) visit(child, [...steps, key])
    } else if (node.kind === 'array') {
      // a template reads the items one by one, and the first one stands for the others
      if (node.items[0] !== undefined) visit(node.items[0], [...steps, 0])
    } else if (steps.length > 0) {
      const path = formatPlaceholder(steps)
      own.push({ path, value: readCopy(node), note: countText(path) })
    }
  }
  if (root !== undefined) visit(root, [])
  const known = new Set(own.map(({ path }) => path))
  const others = paths
    .filter(({ path, kinds }) => !known.has(path) && kinds.some((kind) => kind !== 'object' && kind !== 'array'))
    .map(({ path, kinds }) => ({ path, value: undefined, note: `${kinds.join(' or ')} ${countText(path)}` }))
  return [...own, ...others]
}
