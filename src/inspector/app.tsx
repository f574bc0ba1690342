// The frame of the page: the views, the keyboard, and the announcements for screen readers.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { StatusFields } from '../model/api/answers.ts'
import type { AttentionFields } from '../model/api/operations.ts'
import type { HealthFields } from '../model/api/health.ts'
import { Acts } from './acts.tsx'
import { Announcer } from './announcer.tsx'
import { Attention, useAttention } from './attention.tsx'
import { ChosenBar } from './chosen.tsx'
import { ColorSwitch } from './colors.tsx'
import { OpenedView } from './delivery.tsx'
import { type Feed, useFeed } from './feed.ts'
import { Health, useHealth } from './health.tsx'
import { type Operations, Pauses, useOperations } from './held.tsx'
import { Hooks } from './hooks.tsx'
import { Histogram } from './histogram.tsx'
import { Help, useKeys } from './keys.tsx'
import { FilterBar } from './filters.tsx'
import { Link } from './link.tsx'
import { List, useListItems } from './list.tsx'
import { Costs, Today } from './costs.tsx'
import { go, type PagePlace, ShownPlace, usePlace, type View, viewNames, views } from './place.ts'
import { Palette } from './palette.tsx'
import { ReplayView } from './replay.tsx'
import { type ListItem, toggleName } from './rows.ts'
import { Sessions } from './sessions.tsx'
import { Split } from './split.tsx'

export function App(): JSX.Element {
  const place = usePlace()
  const feed = useFeed(place)
  const health = useHealth(`${feed.status?.lastReloadAt ?? ''}`)
  const operations = useOperations(`${feed.status?.lastReloadAt ?? ''} ${place.view}`)
  const { items, toggle } = useListItems(feed, place)
  const changes = [...feed.changed.values()].reduce((sum, each) => sum + each, 0)
  const attention = useAttention(changes)
  const saved = `${feed.status?.lastReloadAt ?? ''} ${feed.status?.generation ?? ''}`
  const [isHelpOpen, setHelpOpen] = useState(false)
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set())
  const pick = (id: string) => setPicked((before) => toggleName(before, id))
  const focusList = () => document.getElementById('list')?.focus()

  /** Selects the row that is `by` rows below the selected one. Only the list has rows. */
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
  /** Selects a row by an arrow key. Outside of the list, the arrow keys scroll. */
  const stepInList = (by: number): 'unused' | undefined => {
    const { activeElement } = document
    if (place.view !== 'list' || (activeElement !== document.body && activeElement?.id !== 'list')) return 'unused'
    step(by)
    return undefined
  }
  const press = (id: string) => () => document.getElementById(id)?.click()
  const show = (view: View) => () => {
    go({ view })
    // focus the view, so that the arrow keys scroll it
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
      // focus at once if possible: the next key may already be a letter of the search
      if (place.view === 'list') return focusSearch()
      go({ view: 'list' })
      requestAnimationFrame(focusSearch)
      return undefined
    },
    '?': () => setHelpOpen(true),
    'Ctrl-K': () => setPaletteOpen(true),
    r: press('retry'),
    c: press('copy-curl'),
    e: press('open-editor'),
    p: press('pause'),
    x: () => {
      const row = items.find(({ id }) => id === place.id)
      if (place.view !== 'list') return
      if (row?.kind === 'delivery') pick(row.id)
      if (row?.kind === 'refusal' && row.fold !== undefined) toggle(row.fold)
    },
    1: show('list'),
    2: show('hooks'),
    3: show('replay'),
    4: show('sessions'),
    5: show('health'),
    6: show('acts'),
    7: show('costs'),
  })

  // the link that was followed may be gone, and a key must not begin at the top of the page again
  const isFirst = useRef(true)
  useEffect(() => {
    if (!isFirst.current && document.activeElement === document.body) document.getElementById('view')?.focus()
    isFirst.current = false
  }, [place.view, place.bench, place.session])

  return (
    <ShownPlace.Provider value={place}>
      <header class="top">
        <h1>
          <img src="/inspector/icon.svg" alt="" width="18" height="18" /> Hookloom
        </h1>
        <nav aria-label="Views">
          {views.map((view) => (
            <Link
              key={view}
              class={view === 'costs' ? 'wide-only' : ''}
              aria-current={view === place.view ? 'page' : undefined}
              to={{ view }}
            >
              {viewNames[view]}
            </Link>
          ))}
        </nav>
        <Status feed={feed} status={feed.status} paused={operations.pauses.length} />
        <ColorSwitch />
        <button type="button" class="help" onClick={() => setPaletteOpen(true)} aria-label="Go to …" title="Ctrl-K">
          ⌕
        </button>
        <button type="button" class="help" onClick={() => setHelpOpen(true)} aria-label="Keys">
          ?
        </button>
      </header>
      <main>
        {place.view === 'list' && (
          <ListView
            feed={feed}
            place={place}
            items={items}
            health={health}
            operations={operations}
            attention={attention}
            saved={saved}
            picked={picked}
            onPick={pick}
            onFold={toggle}
            onClear={() => setPicked(new Set())}
          />
        )}
        {place.view === 'hooks' && <Hooks place={place} saved={saved} changes={changes} />}
        {place.view === 'replay' && (
          <ReplayView place={place} status={feed.status} health={health} isConnected={feed.isConnected} />
        )}
        {place.view === 'sessions' && <Sessions place={place} version={changes} />}
        {place.view === 'costs' && <Costs place={place} />}
        {place.view === 'health' && <Health health={health} operations={operations} attention={attention} />}
        {place.view === 'acts' && <Acts place={place} version={changes} />}
      </main>
      <Announcer feed={feed} />
      {isPaletteOpen && <Palette onClose={() => setPaletteOpen(false)} />}
      <Help isOpen={isHelpOpen} onClose={() => setHelpOpen(false)} />
    </ShownPlace.Provider>
  )
}

/** The maximum number of rows that one click retries. */
const maxAtOnce = 200

type ListViewProps = {
  feed: Feed
  place: PagePlace
  items: readonly ListItem[]
  health: HealthFields | undefined
  operations: Operations
  attention: AttentionFields | undefined
  saved: string
  picked: ReadonlySet<string>
  onPick: (id: string) => void
  onFold: (fold: string) => void
  onClear: () => void
}

function ListView({
  feed,
  place,
  items,
  health,
  operations,
  attention,
  saved,
  picked,
  onPick,
  onFold,
  onClear,
}: ListViewProps): JSX.Element {
  const { id } = place
  const isOpenState = place.state === 'waiting' || place.state === 'parked' || place.state === 'dead'
  const open = isOpenState
    ? feed.rows.flatMap((row) => (row.kind === 'delivery' ? row.id : [])).slice(0, maxAtOnce)
    : []
  const isRefusal =
    feed.rows.find((row) => row.id === id)?.kind === 'refusal' ||
    attention?.groups.some((group) => group.kind === 'refused' && group.ids.includes(id)) === true
  return (
    <>
      <h2 class="sr">Deliveries</h2>
      <FilterBar place={place} feed={feed} health={health} attention={attention?.count ?? 0} />
      <Pauses operations={operations} isShort />
      {picked.size > 0 && <ChosenBar ids={[...picked]} label="retry them" onClear={onClear} />}
      <Today />
      {picked.size === 0 && open.length > 0 && (
        <ChosenBar key={place.state} ids={open} label={place.state === 'waiting' ? 'start them now' : 'retry them'} />
      )}
      {place.state !== 'attention' && <Histogram key={place.state} rows={feed.rows} place={place} />}
      <Split
        list={
          place.state === 'attention' ? (
            <Attention attention={attention} place={place} saved={saved} />
          ) : (
            <List feed={feed} place={place} items={items} picked={picked} onPick={onPick} onFold={onFold} />
          )
        }
        detail={
          id === '' ? undefined : (
            <OpenedView
              id={id}
              isRefusal={isRefusal}
              version={feed.changed.get(id) ?? 0}
              hooksUrl={health?.hooksUrl ?? ''}
            />
          )
        }
      />
    </>
  )
}

type StatusProps = { feed: Feed; status: StatusFields | undefined; paused: number }

function Status({ feed, status, paused }: StatusProps): JSX.Element {
  if (!feed.isConnected) return <span class="status bad">not connected, trying again …</span>
  if (status?.held === true) {
    return (
      <Link class="status bad link" to={{ view: 'replay' }}>
        a save waits
      </Link>
    )
  }
  if (status?.degraded === true) {
    return (
      <Link class="status bad link" to={{ view: 'health' }}>
        {status.problems} not live
      </Link>
    )
  }
  if (paused > 0) {
    return (
      <Link class="status bad link" to={{ view: 'health' }}>
        {paused} paused
      </Link>
    )
  }
  return <span class="status good">{feed.isPaused ? 'paused' : 'live'}</span>
}
