// Renders text from outside: always as text nodes, with marks in place of characters that could change how a line reads.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { formatAge, formatClock, formatCount, formatFullTime, isRecent, markUnseen, toLocalTimes } from './format.ts'

/** The maximum number of characters that are rendered at once: a browser lays out some hundred kilobytes quickly, but not five megabytes. */
const maxShownChars = 20_000

/** The lines of a file around a failure. They are not wrapped, because a mark below a line shows the column. */
export function CodeFrame({ text }: { text: string }): JSX.Element {
  return <LongText text={text} label="Code frame" className="frame" />
}

type LongTextProps = { readonly text: string; readonly label: string; readonly className?: string }

export function LongText({ text, label, className = '' }: LongTextProps): JSX.Element {
  const isCut = text.length > maxShownChars
  return (
    <>
      <pre tabIndex={0} aria-label={label} class={className}>
        <bdi>{markUnseen(isCut ? text.slice(0, maxShownChars) : text)}</bdi>
      </pre>
      {isCut && (
        <p class="note">
          {formatCount(maxShownChars)} of {formatCount(text.length)} characters.
        </p>
      )}
    </>
  )
}

/** A text on one line, cut after `max` characters. */
export function Line({ text, max = 300 }: { text: string; max?: number }): JSX.Element {
  return <bdi>{markUnseen(text.length > max ? `${text.slice(0, max)}…` : text).replaceAll(/\s+/g, ' ')}</bdi>
}

/** A text on one line, with marks on the words of a search. A text whose first hit is behind its beginning is shown around it. */
export function Marked({ text, max, word }: { text: string; max: number; word: string }): JSX.Element {
  const lower = text.toLowerCase()
  const at = word === '' || lower.length !== text.length ? -1 : lower.indexOf(word.toLowerCase())
  if (at < 0) return <Line text={text} max={max} />
  const end = at + word.length
  const from = at > 60 ? at - 30 : 0
  const show = (part: string) => markUnseen(part).replaceAll(/\s+/g, ' ')
  return (
    <bdi>
      {from > 0 && '…'}
      {show(text.slice(from, at))}
      <mark>{show(text.slice(at, end))}</mark>
      {show(text.slice(end, Math.max(end, from + max)))}
      {text.length > Math.max(end, from + max) && '…'}
    </bdi>
  )
}

/** A sentence of the gateway on one line, with its times in the time zone of the browser. */
export function Sentence({ text, max = 2_000 }: { text: string; max?: number }): JSX.Element {
  return <Line text={toLocalTimes(text)} max={max} />
}

export function Time({ at }: { at: string }): JSX.Element {
  const moment = Date.parse(at)
  return (
    <time dateTime={at} title={formatFullTime(moment)}>
      {formatClock(moment)}
    </time>
  )
}

export function Age({ at, now }: { at: number; now: number }): JSX.Element {
  return <time title={formatFullTime(at)}>{formatAge(at, now)}</time>
}

/** The age of a moment: `12 s ago`, or `Sat 21:04`. */
export function Ago({ at, now }: { at: number; now: number }): JSX.Element {
  return (
    <>
      <Age at={at} now={now} />
      {isRecent(at, now) && ' ago'}
    </>
  )
}

/** The current time, from which ages are computed. Updates each second while `newest` is less than a minute ago, then every ten seconds. */
export function useNow(newest: number): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const mustUpdate = (before: number) => Date.now() - newest < 60_000 || Date.now() - before >= 10_000
    const timer = setInterval(() => setNow((before) => (mustUpdate(before) ? Date.now() : before)), 1_000)
    return () => clearInterval(timer)
  }, [newest])
  return now
}
