// The number of rows over the shown time, as bars with an axis. A drag over the bars, or the arrow keys and Enter, choose a part of the time.
import type { JSX } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { formatClock, formatCount, formatFullTime } from './format.ts'
import { go, type PagePlace } from './place.ts'
import { type Bin, buildBins, type ListRow } from './rows.ts'

type HistogramProps = { rows: readonly ListRow[]; place: PagePlace }

/** The failures are at the bottom of each bar. A second click on the chosen part shows all rows. The bars stay while a part of them is chosen. */
export function Histogram({ rows, place }: HistogramProps): JSX.Element | null {
  const { since, until } = place
  const isChosen = since !== '' || until !== ''
  const whole = useRef<readonly Bin[]>([])
  /** Whether the time was chosen here, and not with the filter of the time, whose rows have bars of their own. */
  const isPart = useRef(false)
  const shown = useMemo(() => buildBins(rows), [rows])
  if (!isChosen) isPart.current = false
  if (!isPart.current) whole.current = shown
  const bins = whole.current
  const [pointed, setPointed] = useState<number>()
  const [brushedFrom, setBrushedFrom] = useState<number>()
  if (bins.length === 0) return null
  const most = Math.max(...bins.map(({ all }) => all))
  const last = bins.length - 1
  const at = Math.min(pointed ?? last, last)

  function choose(one: number, other: number): void {
    const from = bins[Math.min(one, other)]?.from
    const to = bins[Math.max(one, other)]?.until
    if (from === undefined || to === undefined) return
    const range = { since: String(from), until: String(to) }
    const isShown = since === range.since && until === range.until
    isPart.current = !isShown
    go(isShown ? { since: '', until: '' } : range, { replaces: true })
  }
  const findBin = ({ clientX, currentTarget }: { clientX: number; currentTarget: HTMLElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect()
    return Math.max(0, Math.min(last, Math.floor(((clientX - left) / width) * bins.length)))
  }
  const isBrushed = (index: number, { from, until: to }: Bin) =>
    brushedFrom === undefined
      ? isChosen && from >= Number(since) && (until === '' || to <= Number(until))
      : index >= Math.min(brushedFrom, at) && index <= Math.max(brushedFrom, at)

  return (
    <div class="histogram">
      <div
        class="bars"
        role="slider"
        tabIndex={0}
        aria-label="Deliveries over the shown time"
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={describeBin(bins[at])}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          setBrushedFrom(findBin(event))
        }}
        onPointerMove={(event) => setPointed(findBin(event))}
        onPointerLeave={() => setPointed(undefined)}
        onPointerCancel={() => setBrushedFrom(undefined)}
        onPointerUp={(event) => {
          if (brushedFrom !== undefined) choose(brushedFrom, findBin(event))
          setBrushedFrom(undefined)
        }}
        onKeyDown={(event) => {
          const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key]
          if (by === undefined && event.key !== 'Enter') return
          event.preventDefault()
          if (by === undefined) choose(at, at)
          else setPointed(Math.max(0, Math.min(last, at + by)))
        }}
      >
        {bins.map((bin, index) => (
          <div
            key={bin.from}
            class={`bin${isBrushed(index, bin) ? ' brushed' : ''}${index === pointed ? ' pointed' : ''}`}
          >
            <i class="rest" style={{ height: `${((bin.all - bin.failed) / most) * 100}%` }} />
            <i class="failed" style={{ height: `${(bin.failed / most) * 100}%` }} />
          </div>
        ))}
      </div>
      <div class="axis" aria-hidden="true">
        <span>{formatClock(bins[0]?.from ?? 0)}</span>
        <b>{pointed === undefined ? `at most ${formatCount(most)} in a bar` : describeBin(bins[pointed])}</b>
        <span>{formatClock(bins[last]?.until ?? 0)}</span>
      </div>
    </div>
  )
}

function describeBin(bin: Bin | undefined): string {
  if (bin === undefined) return ''
  const { from, all, failed } = bin
  return `${formatCount(all)} from ${formatFullTime(from)}${failed > 0 ? `, ${formatCount(failed)} need a look` : ''}`
}
