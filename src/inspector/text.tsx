// Text from outside. It is only ever a text node; what could change how a line reads is shown as a mark.
import type { JSX } from 'preact'
import { markUnseen } from './visible.ts'

/** Characters that are drawn at once. A browser lays out some hundred kilobytes quickly, and five megabytes not at all. */
const shown = 20_000

export function LongText({ text, label }: { text: string; label: string }): JSX.Element {
  const cut = text.length > shown
  return (
    <>
      <pre tabIndex={0} aria-label={label}>
        <bdi>{markUnseen(cut ? text.slice(0, shown) : text)}</bdi>
      </pre>
      {cut && (
        <p class="note">
          {shown.toLocaleString('en')} of {text.length.toLocaleString('en')} characters. "Copy" takes all of them.
        </p>
      )}
    </>
  )
}

/** One line. */
export function Line({ text, most = 300 }: { text: string; most?: number }): JSX.Element {
  return <bdi>{markUnseen(text.length > most ? `${text.slice(0, most)}…` : text).replaceAll(/\s+/g, ' ')}</bdi>
}

export function Time({ at }: { at: string }): JSX.Element {
  return (
    <time dateTime={at} title={at}>
      {formatClock(Date.parse(at))}
    </time>
  )
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: '2-digit', month: 'short' })

/** The time of today, the day and the time of before. */
export function formatClock(at: number): string {
  const time = clock.format(at)
  return new Date(at).toDateString() === new Date().toDateString() ? time : `${day.format(at)} ${time}`
}
