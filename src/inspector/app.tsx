// The frame of the page: the views, the keyboard, and what is announced.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { StatusFields } from '../model/api-types.ts'
import { DeliveryView } from './delivery.tsx'
import { type Feed, useFeed } from './feed.ts'
import { Health, useHealth } from './health.tsx'
import { Help, useKeys } from './keys.tsx'
import { FilterBar, List } from './list.tsx'
import { go, type PagePlace, usePlace, type View, views } from './place.ts'
import { RefusalView } from './refusal.tsx'
import { ReplayView } from './replay.tsx'
import { toRowState } from './rows.ts'
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
  const [isHelpOpen, setHelpOpen] = useState(false)
  const focusList = () => document.getElementById('list')?.focus()

  const step = (by: number) => {
    const { rows } = feed
    const chosen = rows.findIndex(({ id }) => id === place.id)
    const next = rows[chosen < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, chosen + by))]
    if (next !== undefined) go({ id: next.id, view: 'list' }, { replaces: place.id !== '' })
    focusList()
  }
  const press = (id: string) => () => document.getElementById(id)?.click()
  const show = (view: View) => () => go({ view })
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    Enter: () => (place.id === '' ? step(0) : document.getElementById('detail')?.focus()),
    Escape: () => (document.activeElement?.id === 'list' ? go({ id: '' }) : focusList()),
    '/': () => {
      go({ view: 'list' })
      requestAnimationFrame(() => document.getElementById('search')?.focus())
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
  const count = [...feed.changed.values()].reduce((sum, each) => sum + each, 0)

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
              onClick={show(view)}
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
        {place.view === 'list' && <ListView feed={feed} place={place} hooksUrl={health?.hooksUrl ?? ''} />}
        {place.view === 'replay' && <ReplayView place={place} status={feed.status} isConnected={feed.isConnected} />}
        {place.view === 'sessions' && <Sessions place={place} version={count} />}
        {place.view === 'health' && <Health health={health} />}
      </main>
      <Announcer feed={feed} />
      <Help isOpen={isHelpOpen} onClose={() => setHelpOpen(false)} />
    </>
  )
}

function ListView({ feed, place, hooksUrl }: { feed: Feed; place: PagePlace; hooksUrl: string }): JSX.Element {
  const row = feed.rows.find(({ id }) => id === place.id)
  return (
    <>
      <h2 class="sr">Deliveries</h2>
      <FilterBar place={place} feed={feed} />
      <div class={`split${place.id === '' ? '' : ' has-detail'}`}>
        <List feed={feed} place={place} />
        {place.id !== '' && (
          <article id="detail" tabIndex={-1} aria-label="The chosen delivery">
            <button type="button" class="back" onClick={() => go({ id: '' })}>
              ← list
            </button>
            {row?.kind === 'refusal' ? (
              <RefusalView refusal={row.refusal} />
            ) : (
              <DeliveryView id={place.id} version={feed.changed.get(place.id) ?? 0} hooksUrl={hooksUrl} />
            )}
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

/** Says how many came, at most every two seconds: a busy gateway must not talk without end. */
function Announcer({ feed }: { feed: Feed }): JSX.Element {
  const [said, setSaid] = useState('')
  const newest = useRef('')
  const rows = useRef(feed.rows)
  rows.current = feed.rows
  // the rows that were there at first are no news
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
        const bad = added.filter((row) => ['parked', 'dead', 'refused'].includes(toRowState(row))).length
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
