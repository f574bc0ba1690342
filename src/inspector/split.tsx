// The list and the opened delivery beside each other, and the line between them, which can be dragged or moved with the arrow keys.
import type { ComponentChildren, JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Link } from './link.tsx'

const storageName = 'hookloom-split'
/** The part of the width that the list may have, in percent. */
const least = 20
const most = 75
const usual = 45

function readShare(): number {
  const share = Number(localStorage.getItem(storageName))
  return share >= least && share <= most ? share : usual
}

/** `detail`: undefined if no delivery is opened. */
type SplitProps = { readonly list: ComponentChildren; readonly detail: ComponentChildren | undefined }

export function Split({ list, detail }: SplitProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const [share, setShare] = useState(readShare)
  const [isHeld, setHeld] = useState(false)
  const move = (to: number) => {
    const next = Math.round(Math.max(least, Math.min(most, to)) * 10) / 10
    localStorage.setItem(storageName, String(next))
    setShare(next)
  }
  return (
    <div
      class={detail !== undefined ? 'split has-detail' : 'split'}
      ref={box}
      style={{ '--share': `${share}fr`, '--rest': `${100 - share}fr` }}
    >
      {list}
      {detail !== undefined && (
        <div
          class="grip"
          role="separator"
          tabIndex={0}
          aria-label="The width of the list"
          aria-orientation="vertical"
          aria-valuemin={least}
          aria-valuemax={most}
          aria-valuenow={Math.round(share)}
          onPointerDown={(event) => {
            // a press inside a selection would drag the selected text, which ends the move of the line
            event.preventDefault()
            event.currentTarget.focus()
            event.currentTarget.setPointerCapture(event.pointerId)
            setHeld(true)
          }}
          onPointerMove={({ clientX }) => {
            const bounds = box.current?.getBoundingClientRect()
            if (isHeld && bounds !== undefined) move(((clientX - bounds.left) / bounds.width) * 100)
          }}
          onPointerUp={() => setHeld(false)}
          onPointerCancel={() => setHeld(false)}
          onDblClick={() => move(usual)}
          onKeyDown={(event) => {
            const by = { ArrowLeft: -2, ArrowRight: 2 }[event.key]
            if (by === undefined) return
            event.preventDefault()
            move(share + by)
          }}
        />
      )}
      {detail !== undefined && (
        <article id="detail" tabIndex={-1} aria-label="The chosen delivery">
          <Link class="button back" to={{ id: '' }}>
            ← list
          </Link>
          {detail}
        </article>
      )}
    </div>
  )
}
