// The frame of the page: the views, the keyboard, and the announcements for screen readers.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { AttentionFields, HealthFields, StatusFields } from '../model/api-types.ts'
import { Attention, useAttention } from './attention.tsx'
import { OpenedView } from './delivery.tsx'
import { type Feed, useFeed } from './feed.ts'
import { Health, useHealth } from './health.tsx'
import { Help, useKeys } from './keys.tsx'
import { FilterBar, List, useListItems } from './list.tsx'
import { go, type PagePlace, usePlace, type View, views } from './place.ts'
import { ReplayView } from './replay.tsx'
import { findRowState, type ListItem } from './rows.ts'
import { Sessions } from './sessions.tsx'

const names: Readonly<Record<View, string>> = {
  list: 'deliveries',
  replay: 'replay',
  sessions: 'sessions',
  health: 'health',
}

export function App(): JSX.Element {
  const place = usePlace()
  const feed = useFeed(place)
  const health = useHealth(`${feed.status?.lastReloadAt ?? ''}`)
  const items = useListItems(feed, place)
  const changes = [...feed.changed.values()].reduce((sum, each) => sum + each, 0)
  const attention = useAttention(changes)
  const [isHelpOpen, setHelpOpen] = useState(false)
  const focusList = () => document.getElementById('list')?.focus()

  /** Chooses the row that is `by` rows further down. Only the list has rows. */
  const step = (by: number) => {
    if (place.view !== 'list') return
    const ids =
      place.state === 'attention'
        ? (attention?.groups.flatMap((group) => group.ids[0] ?? []) ?? [])
        : items.flatMap(({ kind, id }) => (kind === 'day' ? [] : [id]))
    const chosen = ids.indexOf(place.id)
    const id = ids[chosen < 0 ? 0 : Math.max(0, Math.min(ids.length - 1, chosen + by))]
    if (id !== undefined) go({ id }, { replaces: place.id !== '' })
    focusList()
  }
  /** Elsewhere, the arrow keys scroll. */
  const stepInList = (by: number): 'unused' | undefined => {
    const { activeElement } = document
    if (place.view !== 'list' || (activeElement !== document.body && activeElement?.id !== 'list')) return 'unused'
    step(by)
    return undefined
  }
  const press = (id: string) => () => document.getElementById(id)?.click()
  const show = (view: View) => () => {
    go({ view })
    // so that the arrow keys scroll it
    requestAnimationFrame(() => document.getElementById(view === 'list' ? 'list' : 'view')?.focus())
  }
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => stepInList(1),
    ArrowUp: () => stepInList(-1),
    Enter: () => {
      if (place.view !== 'list') return 'unused'
      if (place.id === '') step(0)
      else document.getElementById('detail')?.focus()
      return undefined
    },
    Escape: () => (document.activeElement?.id === 'list' ? go({ id: '' }) : focusList()),
    '/': () => {
      const focusSearch = () => document.getElementById('search')?.focus()
      // at once if possible: the next key is a letter of the search already
      if (place.view === 'list') return focusSearch()
      go({ view: 'list' })
      requestAnimationFrame(focusSearch)
      return undefined
    },
    '?': () => setHelpOpen(true),
    r: press('retry'),
    c: press('copy-curl'),
    e: press('open-editor'),
    p: press('pause'),
    1: show('list'),
    2: show('replay'),
    3: show('sessions'),
    4: show('health'),
  })

  return (
    <>
      <header class="top">
        <h1>Hookloom</h1>
        <nav aria-label="Views">
          {views.map((view) => (
            <button
              type="button"
              key={view}
              aria-current={view === place.view ? 'page' : undefined}
              onClick={() => go({ view })}
            >
              {names[view]}
            </button>
          ))}
        </nav>
        <Status feed={feed} status={feed.status} />
        <button type="button" class="help" onClick={() => setHelpOpen(true)} aria-label="Keys">
          ?
        </button>
      </header>
      <main>
        {place.view === 'list' && (
          <ListView feed={feed} place={place} items={items} health={health} attention={attention} />
        )}
        {place.view === 'replay' && <ReplayView place={place} status={feed.status} isConnected={feed.isConnected} />}
        {place.view === 'sessions' && <Sessions place={place} version={changes} />}
        {place.view === 'health' && <Health health={health} />}
      </main>
      <Announcer feed={feed} />
      <Help isOpen={isHelpOpen} onClose={() => setHelpOpen(false)} />
    </>
  )
}

type ListViewProps = {
  feed: Feed
  place: PagePlace
  items: readonly ListItem[]
  health: HealthFields | undefined
  attention: AttentionFields | undefined
}

function ListView({ feed, place, items, health, attention }: ListViewProps): JSX.Element {
  const { id } = place
  const isRefusal =
    items.find((item) => item.id === id)?.kind === 'refusal' ||
    attention?.groups.some((group) => group.kind === 'refused' && group.ids.includes(id)) === true
  return (
    <>
      <h2 class="sr">Deliveries</h2>
      <FilterBar place={place} feed={feed} health={health} attention={attention?.count ?? 0} />
      <div class={`split${id === '' ? '' : ' has-detail'}`}>
        {place.state === 'attention' ? (
          <Attention attention={attention} place={place} />
        ) : (
          <List feed={feed} place={place} items={items} />
        )}
        {id !== '' && (
          <article id="detail" tabIndex={-1} aria-label="The chosen delivery">
            <button type="button" class="back" onClick={() => go({ id: '' })}>
              ← list
            </button>
            <OpenedView
              id={id}
              isRefusal={isRefusal}
              version={feed.changed.get(id) ?? 0}
              hooksUrl={health?.hooksUrl ?? ''}
            />
          </article>
        )}
      </div>
    </>
  )
}

function Status({ feed, status }: { feed: Feed; status: StatusFields | undefined }): JSX.Element {
  if (!feed.isConnected) return <span class="status bad">not connected, trying again …</span>
  if (status?.held === true) {
    return (
      <button type="button" class="status bad link" onClick={() => go({ view: 'replay' })}>
        a save waits
      </button>
    )
  }
  if (status?.degraded === true) {
    return (
      <button type="button" class="status bad link" onClick={() => go({ view: 'health' })}>
        {status.problems} not live
      </button>
    )
  }
  return <span class="status good">{feed.isPaused ? 'paused' : 'live'}</span>
}

const sayEveryMs = 2_000

/** Announces how many rows are new, at most every two seconds: a busy gateway must not talk without end. */
function Announcer({ feed }: { feed: Feed }): JSX.Element {
  const [said, setSaid] = useState('')
  const newest = useRef('')
  const rows = useRef(feed.rows)
  rows.current = feed.rows
  // the rows of the first reading are not new
  useEffect(() => {
    newest.current ||= feed.rows[0]?.id ?? ''
  }, [feed.rows])
  useEffect(() => {
    const timer = setInterval(() => {
      const [first] = rows.current
      if (first === undefined || first.id === newest.current) return
      const known = rows.current.findIndex(({ id }) => id === newest.current)
      if (newest.current !== '') {
        const added = rows.current.slice(0, known < 0 ? rows.current.length : known)
        const bad = added.filter((row) => ['parked', 'dead', 'refused'].includes(findRowState(row))).length
        setSaid(`${added.length} new${bad > 0 ? `, ${bad} need a look` : ''}`)
      }
      newest.current = first.id
    }, sayEveryMs)
    return () => clearInterval(timer)
  }, [])
  return (
    <p class="sr" aria-live="polite" id="said">
      {said}
    </p>
  )
}
