// A small column for each of the last 24 hours of a hook.
import type { JSX } from 'preact'
import type { HookFields } from '../model/api/bench.ts'
import { formatCount, formatMinute } from './format.ts'

const step = 4
const height = 22
const hourMs = 3_600_000

export function Spark({ day, now }: { day: HookFields['day']; now: number }): JSX.Element {
  const { deliveries, parked } = day
  const most = Math.max(1, ...deliveries)
  const start = (Math.floor(now / hourMs) + 1 - deliveries.length) * hourMs
  // a single delivery stays visible beside thousands
  const toHeight = (count: number) => (count === 0 ? 0 : Math.max(1.5, (count / most) * height))
  return (
    <svg class="spark" viewBox={`0 0 ${deliveries.length * step} ${height}`} aria-hidden="true">
      {deliveries.map((count, at) => {
        const bad = toHeight(Math.min(count, parked[at] ?? 0))
        const from = start + at * hourMs
        return (
          <g key={at}>
            <title>{`${formatMinute(from)} – ${formatMinute(from + hourMs)}: ${formatCount(count)}`}</title>
            <rect class="whole" x={at * step} width={step} y={0} height={height} />
            <rect x={at * step} width={step - 1} y={height - toHeight(count)} height={toHeight(count)} />
            <rect class="bad" x={at * step} width={step - 1} y={height - bad} height={bad} />
          </g>
        )
      })}
    </svg>
  )
}
