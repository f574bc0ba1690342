// The bar for the chosen rows, which can be retried or dropped together, and for all rows that wait or need a person.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { actOnAll, DropAll } from './bulk.tsx'
import { formatCount, markUnseen } from './format.ts'

/** `onClear`: undefined for the rows of a filter, which nobody has chosen one by one: they cannot be dropped at once. */
type ChosenBarProps = { readonly ids: readonly string[]; readonly label: string; readonly onClear?: () => void }

export function ChosenBar({ ids, label, onClear }: ChosenBarProps): JSX.Element {
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const act = async (what: 'retry' | 'drop') => {
    setBusy(true)
    await actOnAll(ids, what, setSaid)
    setBusy(false)
  }
  return (
    <div
      class={onClear ? 'filters chosen-bar' : 'filters'}
      role="group"
      aria-label={onClear ? 'Chosen rows' : 'All rows'}
    >
      <b>
        {formatCount(ids.length)} {onClear ? 'chosen' : 'shown'}
      </b>
      <button type="button" disabled={isBusy} onClick={() => void act('retry')}>
        {label}
      </button>
      {onClear !== undefined && (
        <button type="button" disabled={isBusy} onClick={onClear}>
          clear
        </button>
      )}
      <span class="dim" role="status">
        {markUnseen(said)}
      </span>
      {onClear !== undefined && <DropAll count={ids.length} isBusy={isBusy} onDrop={() => void act('drop')} />}
    </div>
  )
}
