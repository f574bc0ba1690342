// The time that the list shows, and the filters that somebody has saved in this browser.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Link } from './link.tsx'
import { findMidnight } from './format.ts'
import { go, noFilters, type PagePlace } from './place.ts'
import { Line } from './text.tsx'

const hourMs = 3_600_000

const times: Readonly<Record<string, () => readonly [since: number, until?: number]>> = {
  'last hour': () => [Date.now() - hourMs],
  'last 24 hours': () => [Date.now() - 24 * hourMs],
  today: () => [findMidnight(0).getTime()],
  yesterday: () => [findMidnight(1).getTime(), findMidnight(0).getTime()],
  'last 7 days': () => [Date.now() - 7 * 24 * hourMs],
}

/** A part of the time that was chosen otherwise, for example in the histogram, has its own button beside. */
export function TimePicker({ place: { since, until } }: { place: PagePlace }): JSX.Element {
  const isChosen = since !== '' || until !== ''
  const choose = (name: string) => {
    const [from, to] = times[name]?.() ?? []
    go({ since: from === undefined ? '' : String(from), until: to === undefined ? '' : String(to) })
  }
  return (
    <select
      aria-label="Time"
      value={isChosen ? 'chosen' : ''}
      onChange={({ currentTarget }) => currentTarget.value !== 'chosen' && choose(currentTarget.value)}
    >
      <option value="">any time</option>
      {isChosen && <option value="chosen">a chosen time</option>}
      {Object.keys(times).map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  )
}

type SavedFilter = { readonly name: string; readonly place: Partial<PagePlace> }
const storageName = 'hookloom-filters'
const maxSaved = 30

function readSaved(): readonly SavedFilter[] {
  try {
    // as: only this file writes it, and each field is read as text
    const saved = JSON.parse(localStorage.getItem(storageName) ?? '[]') as readonly SavedFilter[]
    return saved.map(({ name, place }) => ({ name: String(name), place: pickFilters(place) }))
  } catch {
    return []
  }
}

// as: the keys of `noFilters` are filters
const pickFilters = (place: Partial<PagePlace>): Partial<PagePlace> =>
  Object.fromEntries(Object.keys(noFilters).map((name) => [name, String(place[name as keyof PagePlace] ?? '')]))

export function SavedFilters({ place }: { place: PagePlace }): JSX.Element {
  const [saved, setSaved] = useState(readSaved)
  const [name, setName] = useState('')
  const keep = (next: readonly SavedFilter[]) => {
    localStorage.setItem(storageName, JSON.stringify(next))
    setSaved(next)
  }
  return (
    <details class="saved-menu">
      <summary>saved filters</summary>
      <div>
        {saved.map((each) => (
          <div class="saved" key={each.name}>
            <Link class="button" to={each.place}>
              <Line text={each.name} max={60} />
            </Link>
            <button
              type="button"
              aria-label={`Delete the saved filter ${each.name}`}
              onClick={() => keep(saved.filter((other) => other !== each))}
            >
              ×
            </button>
          </div>
        ))}
        <form
          class="saved"
          onSubmit={(event) => {
            event.preventDefault()
            const others = saved.filter((each) => each.name !== name.trim())
            if (name.trim() !== '') keep([...others, { name: name.trim(), place: pickFilters(place) }].slice(-maxSaved))
            setName('')
          }}
        >
          <input
            aria-label="A name for the filters that are shown"
            placeholder="name these filters"
            value={name}
            autocomplete="off"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
          <button type="submit" disabled={name.trim() === ''}>
            save
          </button>
        </form>
      </div>
    </details>
  )
}
