// The announcements of new rows for screen readers.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Feed } from './feed.ts'
import { findRowState } from './rows.ts'

const sayEveryMs = 2_000

/** Announces the number of new rows, at most every two seconds, so that a busy gateway does not make a screen reader talk without end. */
export function Announcer({ feed }: { feed: Feed }): JSX.Element {
  const [said, setSaid] = useState('')
  const newest = useRef('')
  const rows = useRef(feed.rows)
  rows.current = feed.rows
  // the rows of the first read do not count as new
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
