// A JSON value as a tree that folds. Branches are drawn when they are opened, a hundred entries at a time.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { markUnseen } from './visible.ts'

const page = 100
const longestText = 2_000

export function Tree({ name, value, depth = 0 }: { name?: string; value: unknown; depth?: number }): JSX.Element {
  const [isOpen, setOpen] = useState(depth < 2)
  const [most, setMost] = useState(page)
  if (typeof value !== 'object' || value === null) {
    return (
      <div class="leaf">
        {name !== undefined && <Name name={name} />}
        <Leaf value={value} />
      </div>
    )
  }
  const entries = Array.isArray(value) ? value.map((item, at) => [String(at), item]) : Object.entries(value)
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {name !== undefined && <Name name={name} />}
        <span class="dim">{isOpen && entries.length > 0 ? open : `${open} ${entries.length || ''} ${close}`}</span>
      </summary>
      {isOpen && (
        <div class="branch">
          {entries.slice(0, most).map(([key, item]) => (
            <Tree key={key} name={key} value={item} depth={depth + 1} />
          ))}
          {entries.length > most && (
            <button type="button" class="link" onClick={() => setMost(most + 10 * page)}>
              {entries.length - most} more
            </button>
          )}
        </div>
      )}
    </details>
  )
}

function Name({ name }: { name: string }): JSX.Element {
  return (
    <span class="name">
      <bdi>{markUnseen(name.slice(0, 200))}</bdi>
      <span class="dim">: </span>
    </span>
  )
}

function Leaf({ value }: { value: unknown }): JSX.Element {
  const [isWhole, setWhole] = useState(false)
  if (typeof value !== 'string') return <span class="number">{String(value)}</span>
  const isCut = value.length > longestText && !isWhole
  return (
    <span class="string">
      <bdi>{markUnseen(isCut ? value.slice(0, longestText) : value.slice(0, 20 * longestText))}</bdi>
      {isCut && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          … {value.length.toLocaleString('en')} characters
        </button>
      )}
    </span>
  )
}
