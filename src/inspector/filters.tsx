// The bar above the list: the search, the filters with their counts, and the pause.
import type { JSX } from 'preact'
import type { HealthFields } from '../model/api/health.ts'
import type { Feed } from './feed.ts'
import { formatClock, formatCount } from './format.ts'
import { Link } from './link.tsx'
import { go, type PagePlace, stateFilters } from './place.ts'
import { SavedFilters, TimePicker } from './saved-filters.tsx'
import { Line } from './text.tsx'

const describeTime = ({ since, until }: PagePlace) =>
  [since, until]
    .map((at) => (at === '' ? '' : formatClock(Number(at))))
    .join(' – ')
    .trim()

type FilterBarProps = { place: PagePlace; feed: Feed; health: HealthFields | undefined; attention: number }

export function FilterBar({ place, feed, health, attention }: FilterBarProps): JSX.Element {
  const counts: Readonly<Record<string, number | undefined>> = {
    ...health?.deliveries,
    dead: health?.jobs.dead,
    attention,
  }
  return (
    <div class="filters" role="search">
      <input
        id="search"
        type="search"
        aria-label="Search payloads, messages, replies, hooks and ids"
        placeholder="Search payloads and replies  /"
        value={place.q}
        spellcheck={false}
        autocomplete="off"
        onInput={({ currentTarget }) => go({ q: currentTarget.value }, { replaces: true })}
      />
      <div class="states" role="group" aria-label="State">
        {stateFilters.map((state) => (
          <Link key={state} class={state} aria-current={place.state === state} to={{ state }}>
            {state === '' ? 'all' : state}
            {(counts[state] ?? 0) > 0 && <span class="count">{formatCount(counts[state] ?? 0)}</span>}
          </Link>
        ))}
      </div>
      <TimePicker place={place} />
      <SavedFilters place={place} />
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
              {name} <Line text={place[name]} max={30} /> ×
            </button>
          ),
      )}
      {(place.since !== '' || place.until !== '') && (
        <button
          type="button"
          class="chip"
          onClick={() => go({ since: '', until: '' })}
          aria-label={`Remove the filter of the time ${describeTime(place)}`}
        >
          {describeTime(place)} ×
        </button>
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
