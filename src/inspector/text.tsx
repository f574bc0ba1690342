// Text from outside as elements. It is only ever a text node; characters that could change how a line reads are shown as marks.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { formatAge, formatClock, formatCount, formatFullTime, isRecent, markUnseen } from './format.ts'

/** The maximum number of characters that are drawn at once. A browser lays out some hundred kilobytes quickly, but not five megabytes. */
const shown = 20_000

/** The lines of a file that failed. They are not wrapped: a mark below a line shows the column. */
export function CodeFrame({ text }: { text: string }): JSX.Element {
  return <LongText text={text} label="Code frame" className="frame" />
}

type LongTextProps = { readonly text: string; readonly label: string; readonly className?: string }

export function LongText({ text, label, className = '' }: LongTextProps): JSX.Element {
  const isCut = text.length > shown
  return (
    <>
      <pre tabIndex={0} aria-label={label} class={className}>
        <bdi>{markUnseen(isCut ? text.slice(0, shown) : text)}</bdi>
      </pre>
      {isCut && (
        <p class="note">
          {formatCount(shown)} of {formatCount(text.length)} characters. "Copy" takes all of them.
        </p>
      )}
    </>
  )
}

/** A text on one line, cut after `most` characters. */
export function Line({ text, most = 300 }: { text: string; most?: number }): JSX.Element {
  return <bdi>{markUnseen(text.length > most ? `${text.slice(0, most)}…` : text).replaceAll(/\s+/g, ' ')}</bdi>
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

/** `12 s ago`, or `Sat 21:04`. */
export function Ago({ at, now }: { at: number; now: number }): JSX.Element {
  return (
    <>
      <Age at={at} now={now} />
      {isRecent(at, now) && ' ago'}
    </>
  )
}

/** The present time, for ages: each second while `newest` is younger than a minute, then every ten seconds. */
export function useNow(newest: number): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const isTime = (before: number) => Date.now() - newest < 60_000 || Date.now() - before >= 10_000
    const timer = setInterval(() => setNow((before) => (isTime(before) ? Date.now() : before)), 1_000)
    return () => clearInterval(timer)
  }, [newest])
  return now
}
