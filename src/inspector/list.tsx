// The live list. All rows have the same height, and only the rows near the visible ones are in the document, so thousands of rows scroll smoothly.
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Feed } from './feed.ts'
import { formatCount, formatLongDay } from './format.ts'
import { ListEnd } from './list-end.tsx'
import { Link } from './link.tsx'
import type { PagePlace } from './place.ts'
import {
  describeRow,
  findRowState,
  formatTook,
  glyphs,
  type ListItem,
  type ListRow,
  toggleName,
  toListItems,
} from './rows.ts'
import { Start } from './start.tsx'
import { Age, Line, Marked, useNow } from './text.tsx'

/** The number of rows that are in the document above the visible rows, and below them. */
const spareRows = 8
/** How long after its time a row is drawn as new. */
const newMs = 3_000

export type ListItems = {
  readonly items: readonly ListItem[]
  /** Opens a fold of refusals, or closes it. */
  toggle(fold: string): void
}

/** The items of the list. With the filter `refused`, each refusal of a stranger has its own row. */
export function useListItems({ rows }: Feed, { state }: PagePlace): ListItems {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  // the headings of the days change at midnight
  const today = new Date().toDateString()
  const showsStrangers = state === 'refused'
  const items = useMemo(() => toListItems(rows, { showsStrangers, open }), [rows, showsStrangers, open, today])
  const toggle = (fold: string) => setOpen((before) => toggleName(before, fold))
  return { items, toggle }
}

type ListProps = {
  feed: Feed
  place: PagePlace
  items: readonly ListItem[]
  /** The ids of the rows that are chosen for retry and drop. */
  picked: ReadonlySet<string>
  onPick: (id: string) => void
  onFold: (fold: string) => void
}

export function List({ feed, place, items, picked, onPick, onFold }: ListProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const sheet = useRef<HTMLDivElement>(null)
  // `height`: the height of a row, which the style sheet sets by the width of the list
  const [view, setView] = useState({ top: 0, size: 800, height: 30 })
  const { height } = view
  const now = useNow(feed.rows[0]?.at ?? 0)
  const chosen = items.findIndex(({ id }) => id === place.id)
  const first = Math.max(0, Math.floor(view.top / height) - spareRows)
  const last = Math.min(items.length, Math.ceil((view.top + view.size) / height) + spareRows)

  const measure = () => {
    if (box.current === null || sheet.current === null) return
    const { scrollTop, clientHeight } = box.current
    const styled = Number.parseFloat(getComputedStyle(sheet.current).getPropertyValue('--row'))
    setView({ top: scrollTop, size: clientHeight, height: Math.round(styled) || 30 })
  }
  useLayoutEffect(() => {
    if (box.current === null) return
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(box.current)
    return () => observer.disconnect()
  }, [])

  // new rows must not move the rows that somebody is reading further down
  const anchor = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    const { current } = box
    const index = items.findIndex(({ id }) => id === anchor.current)
    if (current !== null && index > 0 && current.scrollTop > height) {
      const offset = current.scrollTop % height
      current.scrollTop = index * height + offset
    }
  }, [items])

  useEffect(() => {
    const { current } = box
    if (current === null || chosen < 0) return
    const [top, bottom] = [chosen * height, (chosen + 1) * height]
    if (top < current.scrollTop) current.scrollTop = top
    else if (bottom > current.scrollTop + current.clientHeight) current.scrollTop = bottom - current.clientHeight
  }, [place.id, height])

  function onScroll({
    currentTarget: { scrollTop, clientHeight, scrollHeight },
  }: {
    currentTarget: HTMLElement
  }): void {
    measure()
    anchor.current = scrollTop > height ? items[Math.floor(scrollTop / height)]?.id : undefined
    if (scrollTop + clientHeight > scrollHeight - 20 * height) feed.loadOlder()
  }

  const isEmpty = items.length === 0
  // accessibility checkers report a list box without options as an error
  const role = isEmpty
    ? { role: 'region', 'aria-label': 'Deliveries' }
    : {
        role: 'listbox',
        'aria-label': 'Deliveries, newest first',
        ...(chosen >= first && chosen < last ? { 'aria-activedescendant': `row-${place.id}` } : {}),
      }
  return (
    <div class="list-pane">
      {!isEmpty && <Heads />}
      {/* as: the attributes of both roles are valid */}
      <div class="list" ref={box} onScroll={onScroll} tabIndex={0} id="list" {...(role as { role: 'listbox' })}>
        {isEmpty && <Empty feed={feed} place={place} />}
        <div class="rows" ref={sheet} style={{ height: `${items.length * height}px` }} role="presentation">
          {items.slice(first, last).map((item, at) => {
            const top = (first + at) * height
            return item.kind === 'day' ? (
              <div class="day" role="presentation" key={item.id} style={{ top: `${top}px`, height: `${height}px` }}>
                {formatLongDay(item.at, now)}
              </div>
            ) : (
              <RowLine
                key={item.id}
                row={item}
                now={now}
                style={{ top: `${top}px`, height: `${height}px` }}
                isChosen={item.id === place.id}
                isPicked={picked.has(item.id)}
                onPick={onPick}
                onFold={onFold}
                word={place.q.trim()}
                position={first + at + 1}
                count={items.length}
              />
            )
          })}
        </div>
      </div>
      {!isEmpty || feed.searchedTo !== undefined ? <ListEnd feed={feed} /> : null}
    </div>
  )
}

function Heads(): JSX.Element {
  return (
    <div class="heads row" aria-hidden="true">
      <span class="outcome">state</span>
      <span class="hook">hook and event</span>
      <span class="source">sender</span>
      <span class="summary">about</span>
      <span class="took">took</span>
      <span class="age">age</span>
    </div>
  )
}

type LineProps = {
  row: ListRow
  now: number
  style: { top: string; height: string }
  isChosen: boolean
  isPicked: boolean
  onPick: (id: string) => void
  onFold: (fold: string) => void
  /** The words of the search. */
  word: string
  position: number
  count: number
}

function RowLine({
  row,
  now,
  style,
  isChosen,
  isPicked,
  onPick,
  onFold,
  word,
  position,
  count,
}: LineProps): JSX.Element {
  const state = findRowState(row)
  const [source, hook, event] =
    row.kind === 'refusal'
      ? [row.refusal.client, row.refusal.hook ?? row.refusal.path, String(row.refusal.status)]
      : [row.delivery.sourceName ?? row.delivery.source ?? '', row.delivery.hook, row.delivery.event ?? '']
  const isQuiet = row.kind === 'refusal' && row.refusal.isStranger
  // while the list scrolls, a row that stays visible is not drawn again
  return useMemo(
    () => (
      <Link
        class={`row ${state}${isQuiet ? ' quiet' : ''}${isChosen ? ' chosen' : ''}${isPicked ? ' picked' : ''}${Date.now() - row.at < newMs ? ' new' : ''}`}
        style={style}
        role="option"
        id={`row-${row.id}`}
        aria-selected={isChosen}
        aria-posinset={position}
        aria-setsize={count}
        to={{ id: row.id }}
        tabIndex={-1}
        // the list keeps the focus, for its keys
        onFocus={() => document.getElementById('list')?.focus({ preventScroll: true })}
      >
        <span
          class="outcome"
          title={row.kind === 'delivery' ? 'Choose it for retry and drop (x)' : undefined}
          onClick={(event) => {
            if (row.kind !== 'delivery') return
            event.stopPropagation()
            event.preventDefault()
            onPick(row.id)
          }}
        >
          <span class={`state ${isQuiet ? 'quiet' : state}`}>
            <span class="glyph" aria-hidden="true">
              {isPicked ? '☑' : glyphs[state]}
            </span>{' '}
            {state}
          </span>
          {isPicked && <span class="sr"> chosen</span>}
        </span>
        <span class="hook">
          <Marked text={hook} max={60} word={word} />{' '}
          <span class="dim">
            <Marked text={event} max={60} word={word} />
          </span>
        </span>
        <span class="source">
          <Marked text={source} max={40} word={word} />
        </span>
        <span class="summary">
          <Folded row={row} onFold={onFold} />
          {row.kind === 'delivery' && row.delivery.found !== undefined && (
            <span class="found">
              <b>
                <Line text={row.delivery.found.in} max={60} />
              </b>{' '}
              <Marked text={row.delivery.found.text} max={160} word={word} /> ·{' '}
            </span>
          )}
          <Marked text={describeRow(row)} max={240} word={word} />
        </span>
        <span class="took">{formatTook(row)}</span>
        <span class="age">
          <Age at={row.at} now={now} />
        </span>
      </Link>
    ),
    [row, now, style.top, style.height, isChosen, isPicked, word, position, count],
  )
}

/** The number of refusals that a row stands for. A click shows each of them. */
function Folded({ row, onFold }: { row: ListRow; onFold: (fold: string) => void }): JSX.Element | null {
  if (row.kind === 'delivery' || row.fold === undefined) return null
  const { fold, times, isOpen = false } = row
  return (
    <span
      class="fold"
      title={`${isOpen ? 'Show them as one row' : 'Show each of them'} (x)`}
      onClick={(event) => {
        event.stopPropagation()
        event.preventDefault()
        onFold(fold)
      }}
    >
      <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span> × {formatCount(times)}{' '}
    </span>
  )
}

function Empty({ feed, place }: { feed: Feed; place: PagePlace }): JSX.Element {
  const isFiltered = [place.state, place.hook, place.source, place.q, place.since, place.until].some(
    (value) => value !== '',
  )
  if (feed.problem !== '') return <p class="empty bad">{feed.problem}</p>
  if (feed.isLoading) return <p class="empty">Reading …</p>
  if (isFiltered && feed.searchedTo !== undefined) return <p class="empty">Nothing was found so far.</p>
  if (isFiltered) return <p class="empty">Nothing matches these filters. New deliveries that match appear here.</p>
  return <Start />
}
