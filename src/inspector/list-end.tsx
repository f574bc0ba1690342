// The end of the list: how much is older, how far a search came, and what changed below the last row.
import type { JSX } from 'preact'
import type { Feed } from './feed.ts'
import { formatClock, formatCount } from './format.ts'
import { Link } from './link.tsx'
import { stepRows } from './range.ts'

export function ListEnd({ feed }: { feed: Feed }): JSX.Element | null {
  const { next, older, below, searchedTo, rows, limit, isLoading } = feed
  if (isLoading || (next === null && below.length === 0)) return null
  const isFull = rows.length >= limit
  const [label, act] =
    searchedTo !== undefined && !isFull
      ? ['search further', () => feed.loadOlder()]
      : [`show ${formatCount(Math.min(stepRows, older ?? stepRows))} more`, () => feed.extend()]
  const changed = below.at(-1)
  return (
    <p class="list-end" role="status">
      {searchedTo !== undefined && `Searched back to ${formatClock(searchedTo)}. `}
      {searchedTo === undefined &&
        next !== null &&
        (older === undefined ? 'More are older. ' : `${formatCount(older)} older. `)}
      {(isFull || searchedTo !== undefined) && (
        <button type="button" class="link" onClick={act}>
          {label}
        </button>
      )}
      {changed !== undefined && (
        <>
          {' '}
          {below.length === 1 ? 'One of them changed:' : `${formatCount(below.length)} of them changed:`}{' '}
          <Link class="link" to={{ id: changed }}>
            show {below.length === 1 ? 'it' : 'the last one'}
          </Link>
        </>
      )}
    </p>
  )
}
