// The state of the page, in the fragment of its URL: a bookmark keeps it, and no server or log gets it.
import { createContext } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Filters } from './rows.ts'

export const views = ['list', 'hooks', 'replay', 'sessions', 'health', 'acts', 'costs'] as const
export type View = (typeof views)[number]

/** How the page calls the views. */
export const viewNames: Readonly<Record<View, string>> = {
  list: 'deliveries',
  hooks: 'hooks',
  replay: 'replay',
  sessions: 'sessions',
  health: 'health',
  acts: 'acts',
  costs: 'costs',
}

/** The values of the state filter: the states of a row, `attention` for rows that need a person, and '' for all rows. */
export const stateFilters = [
  'attention',
  '',
  'parked',
  'dead',
  'refused',
  'waiting',
  'done',
  'skipped',
  'dropped',
] as const

/**
 * `id`: the opened delivery. `session`: `<agent>/<key>`. `last`: the number of requests that are replayed. `bench`: the hook whose bench is
 * open. `from`: the delivery whose request is on the bench. `by`, `act`: the actor and the kind of the acts.
 */
export type PagePlace = Filters & { readonly view: View } & {
  readonly [Name in 'id' | 'session' | 'last' | 'bench' | 'from' | 'by' | 'act']: string
}

export const noFilters: Filters = { state: '', hook: '', source: '', q: '', since: '', until: '' }

function readPlace(): PagePlace {
  const fields = new URLSearchParams(location.hash.slice(1))
  const text = (name: string) => fields.get(name) ?? ''
  const view = views.find((each) => each === text('view')) ?? 'list'
  return {
    view,
    id: text('id'),
    session: text('session'),
    last: text('last'),
    bench: text('bench'),
    from: text('from'),
    by: text('by'),
    act: text('act'),
    since: /^\d{1,15}$/.exec(text('since'))?.[0] ?? '',
    until: /^\d{1,15}$/.exec(text('until'))?.[0] ?? '',
    state: stateFilters.find((each) => each === text('state')) ?? '',
    hook: text('hook'),
    source: text('source'),
    q: text('q'),
  }
}

export function toHash(place: Partial<PagePlace>): string {
  const filled = Object.entries(place).filter(([name, value]) => value !== '' && !(name === 'view' && value === 'list'))
  return `#${new URLSearchParams(filled.map(([name, value]) => [name, String(value)])).toString()}`
}

/** `replaces`: adds no entry to the history, for example for each letter of a search. */
export function go(change: Partial<PagePlace>, { replaces = false } = {}): void {
  const hash = toHash({ ...readPlace(), ...change })
  // two neighbouring entries of the history must differ
  if (replaces || hash === (location.hash || '#')) history.replaceState(null, '', hash)
  else history.pushState(null, '', hash)
  dispatchEvent(new Event('popstate'))
}

/** The place that the page shows: the addresses of links begin with its filters. */
export const ShownPlace = createContext<PagePlace>(readPlace())

export function usePlace(): PagePlace {
  const [place, setPlace] = useState(readPlace)
  useEffect(() => {
    const read = () => setPlace(readPlace())
    addEventListener('popstate', read)
    addEventListener('hashchange', read)
    return () => {
      removeEventListener('popstate', read)
      removeEventListener('hashchange', read)
    }
  }, [])
  return place
}
