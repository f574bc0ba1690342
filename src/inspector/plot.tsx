// A small plot of the last sixty minutes: stacked bars or points, with the values of the minute under the pointer.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { MinuteFields } from '../model/api/health.ts'
import { formatClock, formatCount, formatMinute, addUp } from './format.ts'

/** `of`: returns undefined for a minute that has no value. */
type Series = { readonly name: string; readonly of: (minute: MinuteFields) => number | undefined }

const width = 240
const height = 60
const span = 60
const minuteMs = 60_000

type PlotProps = {
  readonly title: string
  readonly minutes: readonly MinuteFields[]
  readonly series: readonly Series[]
  readonly isStacked?: boolean
}

export function Plot({ title, minutes, series, isStacked = true }: PlotProps): JSX.Element {
  const now = Math.floor(Date.now() / minuteMs) * minuteMs
  const bars = minutes.flatMap((minute) => {
    const at = span - 1 - (now - Date.parse(minute.at)) / minuteMs
    return at >= 0 && at < span ? [{ at, minute, values: series.map(({ of }) => of(minute) ?? 0) }] : []
  })
  const most = Math.max(1, ...bars.map(({ values }) => (isStacked ? addUp(values) : Math.max(...values))))
  const step = width / span
  const toY = (value: number) => height - (value / most) * height
  const [pointed, setPointed] = useState<number>()
  const shown = bars.find(({ at }) => at === pointed)
  const pointedAt = pointed === undefined ? undefined : now - (span - 1 - pointed) * minuteMs
  return (
    <figure class="plot">
      <figcaption>
        {title}{' '}
        {pointedAt !== undefined && (
          <span class="dim">
            {formatMinute(pointedAt)}:{' '}
            {shown === undefined
              ? 'nothing'
              : series.map(({ name, of }) => `${of(shown.minute) ?? 'no'} ${name}`).join(', ')}
          </span>
        )}
      </figcaption>
      <div class="axes" aria-hidden="true">
        <span class="dim">{formatCount(most)}</span>
        <span class="dim">0</span>
        <span class="dim">60 min ago</span>
        <span class="dim">now</span>
      </div>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onPointerMove={({ offsetX, currentTarget }) =>
          setPointed(Math.max(0, Math.min(span - 1, Math.floor((offsetX / currentTarget.clientWidth) * span))))
        }
        onPointerLeave={() => setPointed(undefined)}
      >
        {pointed !== undefined && <rect class="pointed" x={pointed * step} width={step} y={0} height={height} />}
        {bars.map(({ at, values, minute }) =>
          values.map((value, index) => {
            if (!isStacked && series[index]?.of(minute) === undefined) return null
            const below = isStacked ? addUp(values.slice(0, index)) : 0
            return (
              <rect
                key={`${minute.at}${index}`}
                class={`series-${index}`}
                x={at * step}
                width={step - 0.6}
                y={toY(below + value)}
                height={isStacked ? toY(0) - toY(value) : 1.6}
              />
            )
          }),
        )}
      </svg>
      <ul class="legend">
        {series.map(({ name, of }, index) => (
          <li key={name}>
            <i class={`series-${index}`} /> {name}{' '}
            <span class="dim">
              {isStacked ? formatCount(addUp(minutes.map((minute) => of(minute) ?? 0))) : findLast(minutes, of)}
            </span>
          </li>
        ))}
      </ul>
      <span class="sr">
        {bars.length === 0 ? 'Nothing yet.' : `From ${formatClock(Date.parse(bars[0]?.minute.at ?? ''))} until now.`}
      </span>
    </figure>
  )
}

/** The newest value of the series, as a text. */
function findLast(minutes: readonly MinuteFields[], of: Series['of']): string {
  const last = minutes.findLast((minute) => of(minute) !== undefined)
  return last === undefined ? 'no traffic' : String(of(last))
}
