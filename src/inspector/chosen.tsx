// The bar for the chosen rows, which can be retried or dropped together, and the histogram of the shown time.
import type { JSX } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { actOnAll, DropAll } from './bulk.tsx'
import { formatCount, formatFullTime, markUnseen } from './format.ts'
import { go, type PagePlace } from './place.ts'
import { type Bin, buildBins, type ListRow } from './rows.ts'

type ChosenBarProps = { readonly ids: readonly string[]; readonly onClear: () => void }

export function ChosenBar({ ids, onClear }: ChosenBarProps): JSX.Element {
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const act = async (what: 'retry' | 'drop') => {
    setBusy(true)
    await actOnAll(ids, what, setSaid)
    setBusy(false)
  }
  return (
    <div class="filters chosen-bar" role="group" aria-label="Chosen rows">
      <b>{formatCount(ids.length)} chosen</b>
      <button type="button" disabled={isBusy} onClick={() => void act('retry')}>
        retry them
      </button>
      <button type="button" disabled={isBusy} onClick={onClear}>
        clear
      </button>
      <span class="dim" role="status">
        {markUnseen(said)}
      </span>
      <DropAll count={ids.length} isBusy={isBusy} onDrop={() => void act('drop')} />
    </div>
  )
}

/**
 * The number of rows over time, with the failures on top. A click on a bar, or a drag over several, shows only the rows of that time; a
 * second click shows all rows. The bars stay while a time is chosen.
 */
export function Histogram({ rows, place }: { rows: readonly ListRow[]; place: PagePlace }): JSX.Element | null {
  const { since, until } = place
  const isChosen = since !== '' || until !== ''
  const whole = useRef<readonly Bin[]>([])
  const shown = useMemo(() => buildBins(rows), [rows])
  if (!isChosen || whole.current.length === 0) whole.current = shown
  const bins = whole.current
  const draggedFrom = useRef<Bin | undefined>(undefined)
  if (bins.length === 0) return null
  const max = Math.max(...bins.map(({ all }) => all))

  function choose(first: Bin, last: Bin): void {
    const [from, end] = [String(Math.min(first.from, last.from)), String(Math.max(first.until, last.until))]
    const isShown = since === from && until === end
    go(isShown ? { since: '', until: '' } : { since: from, until: end }, { replaces: true })
  }

  return (
    <div class="histogram" role="group" aria-label="Deliveries over the shown time">
      {bins.map((bin) => {
        const { from, until: end, all, failed } = bin
        const words = `${formatCount(all)} from ${formatFullTime(from)}${failed > 0 ? `, ${formatCount(failed)} need a look` : ''}`
        return (
          <button
            type="button"
            key={from}
            tabIndex={-1}
            disabled={all === 0}
            aria-pressed={isChosen && from >= Number(since) && (until === '' || end <= Number(until))}
            aria-label={words}
            title={words}
            onPointerDown={() => (draggedFrom.current = bin)}
            onPointerUp={() => {
              const first = draggedFrom.current
              draggedFrom.current = undefined
              // if the pointer stays on the same bar, a click event follows
              if (first !== undefined && first !== bin) choose(first, bin)
            }}
            onClick={() => choose(bin, bin)}
          >
            <i class="failed" style={{ height: `${(failed / max) * 100}%` }} />
            <i class="rest" style={{ height: `${((all - failed) / max) * 100}%` }} />
          </button>
        )
      })}
    </div>
  )
}
