// The live list. Only the rows in sight are in the document, each of one height, so thousands of rows stay smooth and nothing jumps.
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Feed } from './feed.ts'
import { go, type PagePlace } from './place.ts'
import { type ListRow, describeRow, toRowState, formatTook } from './rows.ts'
import { Line, formatClock } from './text.tsx'

const states = ['', 'parked', 'dead', 'refused', 'accepted', 'skipped', 'pending', 'dropped'] as const
const rowHeight = 30
const narrowHeight = 48
const spare = 8

export function List({ feed, place }: { feed: Feed; place: PagePlace }): JSX.Element {
  const { rows } = feed
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 800, isNarrow: false })
  const height = view.isNarrow ? narrowHeight : rowHeight
  const chosen = rows.findIndex(({ id }) => id === place.id)
  const first = Math.max(0, Math.floor(view.top / height) - spare)
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / height) + spare)

  useLayoutEffect(() => {
    const { current } = box
    if (current === null) return
    const measure = () =>
      setView({ top: current.scrollTop, height: current.clientHeight, isNarrow: current.clientWidth < 620 })
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(current)
    return () => observer.disconnect()
  }, [])

  // rows that come while one reads further down must not move what one reads
  const anchor = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    const { current } = box
    const index = rows.findIndex(({ id }) => id === anchor.current)
    if (current !== null && index > 0 && current.scrollTop > height) {
      const offset = current.scrollTop % height
      current.scrollTop = index * height + offset
    }
  }, [rows])

  useEffect(() => {
    const { current } = box
    if (current === null || chosen < 0) return
    const [top, bottom] = [chosen * height, (chosen + 1) * height]
    if (top < current.scrollTop) current.scrollTop = top
    else if (bottom > current.scrollTop + current.clientHeight) current.scrollTop = bottom - current.clientHeight
  }, [place.id, height])

  function onScroll({
    currentTarget: { scrollTop, clientHeight, clientWidth, scrollHeight },
  }: {
    currentTarget: HTMLElement
  }): void {
    setView({ top: scrollTop, height: clientHeight, isNarrow: clientWidth < 620 })
    anchor.current = scrollTop > height ? rows[Math.floor(scrollTop / height)]?.id : undefined
    if (scrollTop + clientHeight > scrollHeight - 20 * height) feed.older()
  }

  return (
    <div
      class="list"
      ref={box}
      onScroll={onScroll}
      role="listbox"
      aria-label="Deliveries, newest first"
      {...(chosen >= first && chosen < last ? { 'aria-activedescendant': `row-${place.id}` } : {})}
      tabIndex={0}
      id="list"
    >
      {rows.length === 0 && <Empty feed={feed} place={place} />}
      <div style={{ height: `${rows.length * height}px`, position: 'relative' }} role="presentation">
        {rows.slice(first, last).map((row, at) => (
          <RowLine
            key={row.id}
            row={row}
            top={(first + at) * height}
            height={height}
            isChosen={row.id === place.id}
            position={first + at + 1}
            count={rows.length}
          />
        ))}
      </div>
    </div>
  )
}

type LineProps = { row: ListRow; top: number; height: number; isChosen: boolean; position: number; count: number }

function RowLine({ row, top, height, isChosen, position, count }: LineProps): JSX.Element {
  const outcome = toRowState(row)
  const [source, hook, event] =
    row.kind === 'refusal'
      ? [row.refusal.client, row.refusal.hook ?? row.refusal.path, String(row.refusal.status)]
      : [row.delivery.sourceName ?? row.delivery.source ?? '', row.delivery.hook, row.delivery.event ?? '']
  return (
    <div
      class={`row ${outcome}${isChosen ? ' chosen' : ''}`}
      style={{ top: `${top}px`, height: `${height}px` }}
      role="option"
      id={`row-${row.id}`}
      aria-selected={isChosen}
      aria-posinset={position}
      aria-setsize={count}
      onClick={() => go({ id: row.id })}
    >
      <span class="time">{formatClock(row.at)}</span>
      <span class="outcome">{outcome}</span>
      <span class="hook">
        <Line text={hook} most={60} />
      </span>
      <span class="source">
        <Line text={source} most={40} />
      </span>
      <span class="event">
        <Line text={event} most={60} />
      </span>
      <span class="became">
        <Line text={describeRow(row)} most={160} />
      </span>
      <span class="took">{formatTook(row)}</span>
    </div>
  )
}

function Empty({ feed, place }: { feed: Feed; place: PagePlace }): JSX.Element {
  const isFiltered = [place.state, place.hook, place.source, place.q].some((value) => value !== '')
  if (feed.problem !== '') return <p class="empty bad">{feed.problem}</p>
  if (feed.isLoading) return <p class="empty">Reading …</p>
  if (isFiltered) return <p class="empty">Nothing fits these filters. New deliveries that fit appear here.</p>
  return (
    <p class="empty">
      No delivery yet. Send one: <code>hookloom send &lt;hook&gt; &lt;file&gt;</code>
    </p>
  )
}

export function FilterBar({ place, feed }: { place: PagePlace; feed: Feed }): JSX.Element {
  return (
    <div class="filters" role="search">
      <input
        id="search"
        type="search"
        aria-label="Search by hook, source, event, mapping or id"
        placeholder="Search  /"
        value={place.q}
        spellcheck={false}
        autocomplete="off"
        onInput={({ currentTarget }) => go({ q: currentTarget.value }, { replaces: true })}
      />
      <div class="states" role="group" aria-label="State">
        {states.map((state) => (
          <button
            type="button"
            key={state}
            class={state === '' ? '' : state}
            aria-pressed={place.state === state}
            onClick={() => go({ state })}
          >
            {state === '' ? 'all' : state}
          </button>
        ))}
      </div>
      {(['hook', 'source'] as const).map(
        (name) =>
          place[name] !== '' && (
            <button
              type="button"
              class="chip"
              key={name}
              onClick={() => go({ [name]: '' })}
              aria-label={`Remove the filter ${name} ${place[name]}`}
            >
              {name} <Line text={place[name]} most={30} /> ×
            </button>
          ),
      )}
      <button
        type="button"
        id="pause"
        class="pause"
        aria-pressed={feed.isPaused}
        onClick={() => feed.pause(!feed.isPaused)}
      >
        {feed.isPaused ? `resume${feed.waiting > 0 ? ` · ${feed.waiting} new` : ''}` : 'pause'}
      </button>
    </div>
  )
}
