// A payload as a tree whose branches can be folded. A branch is rendered when it is opened, at first a hundred entries.
import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { formatCount, formatFullTime, markUnseen } from './format.ts'
import { formatPlaceholder, type PathStep, unreadableNames } from '../base/path-text.ts'
import { findNodes, type JsonNode, readJson, findTime, readText } from './json.ts'
import { Line, LongText } from './text.tsx'

const page = 100
const maxTextChars = 2_000
/** The maximum number of characters of a payload whose branches are all open at first. */
const maxExpandedChars = 100_000
/** The maximum number of nodes that a search opens. */
const maxFound = 2_000
/** The maximum number of keys that a folded object shows. */
const maxKeys = 4

type ChosenNode = { readonly path: readonly PathStep[]; readonly node: JsonNode }

type Choice = {
  /** Branches above this depth are open at first. */
  readonly openDepth: number
  /** The nodes that a search found. Undefined without a search. */
  readonly found: ReadonlySet<JsonNode> | undefined
  readonly onChoose: (chosen: ChosenNode) => void
}

type PayloadViewProps = {
  readonly text: string
  /** Called with the name and the text of the copied part. */
  readonly onCopy: (what: string, text: string) => void
}

export function PayloadView({ text, onCopy }: PayloadViewProps): JSX.Element {
  const root = useMemo(() => readJson(text), [text])
  const [isRaw, setRaw] = useState(false)
  const [openDepth, setOpenDepth] = useState(2)
  const [word, setWord] = useState('')
  const [chosen, setChosen] = useState<ChosenNode>()
  useEffect(() => setChosen(undefined), [root])
  const found = useMemo(() => (root === undefined || word === '' ? undefined : findNodes(root, word)), [root, word])
  if (root === undefined) return <LongText text={text} label="Payload" />
  const path = chosen && readPlaceholder(chosen.path)
  return (
    <>
      <div class="tools">
        <button type="button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
          raw
        </button>
        {!isRaw && (
          <>
            <button
              type="button"
              onClick={() => setOpenDepth(openDepth > 2 ? 2 : text.length < maxExpandedChars ? 100 : 4)}
            >
              {openDepth > 2 ? 'fold' : 'expand all'}
            </button>
            <SearchField label="Search in the payload" word={word} onChange={setWord} />
          </>
        )}
        <button type="button" onClick={() => onCopy('The payload', text)}>
          copy
        </button>
      </div>
      {chosen !== undefined && !isRaw && (
        <div class="tools" role="group" aria-label="The chosen value">
          {path !== undefined && (
            <button type="button" onClick={() => onCopy('The path', `{{${path}}}`)}>
              copy{' '}
              <code>
                <Line text={`{{${path}}}`} max={80} />
              </code>
            </button>
          )}
          <button type="button" onClick={() => onCopy('The value', readCopy(chosen.node))}>
            copy value
          </button>
        </div>
      )}
      {isRaw && <LongText text={text} label="Raw payload" />}
      {!isRaw && found?.size === 0 && <p class="note">No key and no value has this text.</p>}
      {!isRaw && found?.size !== 0 && (
        <div class="tree">
          <Tree key={`${openDepth} ${word}`} node={root} path={[]} choice={{ openDepth, found, onChoose: setChosen }} />
        </div>
      )}
    </>
  )
}

/** Undefined if no template reads the path. */
function readPlaceholder(path: readonly PathStep[]): string | undefined {
  return path.some((step) => unreadableNames.has(String(step))) ? undefined : formatPlaceholder(path)
}

type SearchFieldProps = {
  readonly label: string
  readonly word: string
  readonly onChange: (word: string) => void
}

export function SearchField({ label, word, onChange }: SearchFieldProps): JSX.Element {
  return (
    <input
      type="search"
      aria-label={label}
      placeholder="search"
      value={word}
      spellcheck={false}
      autocomplete="off"
      onInput={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}

/** A value as a text: a string without its quotes. */
export function readCopy(node: JsonNode): string {
  return node.kind === 'string' ? readText(node) : node.source
}

type TreeProps = { readonly node: JsonNode; readonly path: readonly PathStep[]; readonly choice: Choice }

function Tree({ node, path, choice }: TreeProps): JSX.Element {
  const { openDepth, found, onChoose } = choice
  const [isOpen, setOpen] = useState((found?.size ?? maxFound) < maxFound || path.length < openDepth)
  const [most, setMost] = useState(page)
  const step = path.at(-1)
  const name = step !== undefined && <bdi>{markUnseen(String(step).slice(0, 200))}</bdi>
  const choose = () => onChoose({ path, node })
  if (node.kind !== 'object' && node.kind !== 'array') {
    return (
      <div class="leaf">
        {name && (
          <>
            <button type="button" class="name" title="choose" onClick={choose}>
              {name}
            </button>
            <span class="dim">: </span>
          </>
        )}
        <Leaf name={step} node={node} />
      </div>
    )
  }
  const children: readonly (readonly [PathStep, JsonNode])[] =
    node.kind === 'array' ? node.items.map((item, at) => [at, item] as const) : node.entries
  const shown = found === undefined ? children : children.filter(([, child]) => found.has(child))
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary onClick={choose}>
        {name && <span class="name">{name}</span>}
        {name && <span class="dim">: </span>}
        <span class="dim">
          <Line text={isOpen && children.length > 0 ? (node.kind === 'array' ? '[' : '{') : describeBranch(node)} />
        </span>
      </summary>
      {isOpen && (
        <div class="branch">
          {shown.slice(0, most).map(([key, child], at) => (
            <Tree key={at} node={child} path={[...path, key]} choice={choice} />
          ))}
          {shown.length > most && (
            <button
              type="button"
              class="link"
              onClick={({ currentTarget }) => {
                // the last press removes the button, which has the focus
                if (shown.length <= most + 10 * page) focusIn(currentTarget.previousElementSibling)
                setMost(most + 10 * page)
              }}
            >
              {shown.length - most} more
            </button>
          )}
        </div>
      )}
    </details>
  )
}

function focusIn(entry: Element | null): void {
  entry?.querySelector<HTMLElement>('button, summary')?.focus()
}

/** A folded object or array in one line. */
function describeBranch(node: JsonNode): string {
  if (node.kind === 'array') return `[ ${node.items.length || ''} ]`
  if (node.kind !== 'object') return node.source
  const names = node.entries.slice(0, maxKeys).map(([key]) => key.slice(0, 40))
  const rest = node.entries.length > maxKeys ? `, … ${node.entries.length}` : ''
  return `{ ${names.join(', ')}${rest} }`
}

function Leaf({ name, node }: { name: PathStep | undefined; node: JsonNode }): JSX.Element {
  const [isWhole, setWhole] = useState(false)
  const at = findTime(name, node)
  const moment = at !== undefined && <span class="dim"> = {formatFullTime(at)}</span>
  if (node.kind !== 'string') {
    return (
      <>
        <span class={node.kind}>
          <Line text={node.source} max={maxTextChars} />
        </span>
        {moment}
      </>
    )
  }
  const text = readText(node)
  const most = isWhole ? 20 * maxTextChars : maxTextChars
  const isCut = text.length > most
  return (
    <span class="string">
      <span class="dim">"</span>
      <bdi>{markUnseen(text.slice(0, most))}</bdi>
      {!isCut && <span class="dim">"</span>}
      {text.length > maxTextChars && (
        <button type="button" class="link" onClick={() => setWhole(!isWhole)}>
          {isCut ? `… ${formatCount(text.length)} characters` : 'less'}
        </button>
      )}
      {moment}
    </span>
  )
}
