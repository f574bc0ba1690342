// The text field of a template, which completes paths from the learnt payloads. The keys and attributes are those of a WAI-ARIA combobox,
// and the focus stays in the field. The role `combobox` itself is not used: it allows only one line.
import type { JSX, RefObject, TargetedKeyboardEvent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { LearntPaths } from '../model/api/shapes.ts'
import { choosePaths, findOpenPath, findRestOfPath, type OpenPath, splitByPaths } from './paths.ts'
import { Line } from './text.tsx'

const maxPaths = 50

type TemplateFieldProps = {
  readonly value: string
  readonly learnt: LearntPaths
  /** The paths that no request has, which are underlined. */
  readonly unread: ReadonlySet<string>
  readonly box: RefObject<HTMLTextAreaElement | null>
  readonly onFocus: () => void
  readonly onChange: (template: string) => void
}

export function TemplateField({ value, learnt, unread, box, onFocus, onChange }: TemplateFieldProps): JSX.Element {
  const marks = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState<OpenPath>()
  const [active, setActive] = useState(0)
  const found = open === undefined ? [] : choosePaths(learnt.paths, open.word).slice(0, maxPaths)
  const isOpen = found.length > 0
  useEffect(() => document.getElementById(`path-${active}`)?.scrollIntoView({ block: 'nearest' }), [active])

  function updateOpenPath({ value: text, selectionStart }: HTMLTextAreaElement): void {
    setOpen(findOpenPath(text, selectionStart))
    setActive(0)
  }
  function accept(path: string): void {
    const { current } = box
    if (current === null || open === undefined) return
    const after = current.value.slice(current.selectionStart)
    // the rest of the path, up to the end of the placeholder or to its filter, is replaced
    const rest = findRestOfPath(after)
    const end = after.startsWith('}}', rest?.length) || rest === undefined ? '}}' : ' '
    const until = current.selectionStart + (rest?.length ?? 0) + (rest !== undefined && end === '}}' ? 2 : 0)
    current.setRangeText(`{{${path}${end}`, open.from, until, 'end')
    setOpen(undefined)
    onChange(current.value)
  }
  function onKeyDown(event: TargetedKeyboardEvent<HTMLTextAreaElement>): void {
    if (event.isComposing) return
    const { key } = event
    if (key === ' ' && event.ctrlKey) updateOpenPath(event.currentTarget)
    else if (!isOpen) return
    else if (key === 'ArrowDown') setActive((active + 1) % found.length)
    else if (key === 'ArrowUp') setActive((active + found.length - 1) % found.length)
    else if (key === 'Enter') accept(found[active]?.path ?? '')
    else if (key === 'Escape') setOpen(undefined)
    else return
    event.preventDefault()
    // Escape only closes the list
    event.stopPropagation()
  }
  return (
    <div class="completed">
      <textarea
        id="bench-template"
        ref={box}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls="paths"
        aria-activedescendant={isOpen ? `path-${active}` : undefined}
        spellcheck={false}
        rows={4}
        value={value}
        aria-invalid={unread.size > 0}
        aria-describedby={unread.size > 0 ? 'unread' : undefined}
        onFocus={onFocus}
        onScroll={({ currentTarget }) => marks.current?.scrollTo(0, currentTarget.scrollTop)}
        onBlur={() => setOpen(undefined)}
        onClick={() => setOpen(undefined)}
        onKeyDown={onKeyDown}
        onInput={({ currentTarget }) => {
          updateOpenPath(currentTarget)
          onChange(currentTarget.value)
        }}
      />
      {unread.size > 0 && (
        <div class="marks" ref={marks} aria-hidden="true">
          {splitByPaths(value, unread).map(({ text, isMarked }, at) => (isMarked ? <u key={at}>{text}</u> : text))}
        </div>
      )}
      {/* tabIndex: otherwise Chromium gives the focus of Tab to a list that scrolls, which then closes */}
      <ul id="paths" role="listbox" tabIndex={-1} aria-label="Paths of the payload" hidden={!isOpen}>
        {found.map(({ path, kinds, count }, at) => (
          <li
            key={path}
            id={`path-${at}`}
            role="option"
            aria-selected={at === active}
            onMouseDown={(event) => {
              event.preventDefault()
              accept(path)
            }}
          >
            <Line text={path} max={200} />{' '}
            <span class="dim">
              {kinds.join(' or ')}
              {!/\[\d+\]/.test(path) && `, in ${count} of ${learnt.requests}`}
            </span>
          </li>
        ))}
      </ul>
      <span class="sr" role="status">
        {isOpen && `${found.length} paths`}
      </span>
    </div>
  )
}
