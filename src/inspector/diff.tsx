// Shows two values next to each other, line by line. Lines that only one value has are marked. Of the equal lines, two are shown above and
// below each mark.
import type { JSX } from 'preact'
import { markUnseen } from './format.ts'

/** `noted`: a recorded line that the live code does not produce. */
type Piece = { readonly kind: 'same' | 'removed' | 'added' | 'noted' | 'gap'; readonly text: string }

/**
 * The maximum number of lines of both values together for a comparison line by line. With more lines, all lines between the equal beginning and the
 * equal end count as different.
 */
const maxComparedLines = 400
const context = 2
/** The number of equal characters that are shown before and after the difference within a line. */
const lead = 60
/** The maximum number of characters of a difference within a line. An action that only one side has is a single line. */
const maxDifferenceChars = 2_000
const maxShownLines = 120

/** `removed`: only in the first value; `added`: only in the second. */
function comparePieces(before: unknown, after: unknown, isWhole = false): Piece[] {
  // without quotes, "5" and 5 would look the same
  const isPlain =
    typeof before === typeof after || [before, after].some((value) => value === undefined || value === null)
  const [old, now] = [toLines(before, isPlain), toLines(after, isPlain)]
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1
  let end = 0
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end += 1
  const same = (lines: readonly string[]) => lines.map((text): Piece => ({ kind: 'same', text }))
  const middle = diffLines(old.slice(start, old.length - end), now.slice(start, now.length - end))
  const pieces = [...same(old.slice(0, start)), ...middle, ...same(old.slice(old.length - end))]
  return isWhole ? pieces : addGaps(pieces)
}

/** `isPlain`: texts get no quotes. */
function toLines(value: unknown, isPlain: boolean): string[] {
  if (value === undefined || value === null) return []
  return (isPlain && typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)).split('\n')
}

/** Compares by the longest common sequence of lines. */
function diffLines(old: readonly string[], now: readonly string[]): Piece[] {
  const removed = (text = ''): Piece => ({ kind: 'removed', text })
  const added = (text = ''): Piece => ({ kind: 'added', text })
  if (old.length + now.length > maxComparedLines) return [...old.map(removed), ...now.map(added)]
  const width = now.length + 1
  const lengths = new Uint16Array((old.length + 1) * width)
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const pieces: Piece[] = []
  for (let [i, j] = [0, 0]; i < old.length || j < now.length;) {
    if (i < old.length && old[i] === now[j]) {
      pieces.push({ kind: 'same', text: old[i] ?? '' })
      i += 1
      j += 1
    } else if (j >= now.length || (i < old.length && at(i + 1, j) >= at(i, j + 1))) pieces.push(removed(old[i++]))
    else pieces.push(added(now[j++]))
  }
  return pieces
}

function addGaps(pieces: readonly Piece[]): Piece[] {
  const isNear = (at: number) => pieces.slice(Math.max(0, at - context), at + context + 1).some(isChange)
  return pieces.flatMap((piece, at): Piece[] => {
    if (isNear(at)) return [piece]
    return at === 0 || isNear(at - 1) ? [{ kind: 'gap', text: '⋯' }] : []
  })
}

const toNoted = (piece: Piece): Piece => (piece.kind === 'added' ? { ...piece, kind: 'noted' } : piece)
const isChange = ({ kind }: Piece) => kind === 'removed' || kind === 'added'

/** Shows the values of a field in columns. `names`: the heads of the columns. `recorded`: the value of a third column, if there is one. `isWhole`: equal
 * lines are shown too. */
export function Diff({
  before,
  after,
  names,
  recorded,
  isWhole = false,
}: {
  before: unknown
  after: unknown
  names: readonly [string, string]
  recorded?: unknown
  isWhole?: boolean
}): JSX.Element {
  const pieces = comparePieces(before, after, isWhole)
  return (
    <div class="columns">
      <Side name={names[0]} pieces={pieces} other="added" />
      <Side name={names[1]} pieces={pieces} other="removed" />
      {recorded !== undefined && (
        <Side name="recorded when it came" pieces={comparePieces(before, recorded).map(toNoted)} other="removed" />
      )}
    </div>
  )
}

/** `other`: the kind of the lines that this side does not have. */
function Side({
  name,
  pieces,
  other,
}: {
  name: string
  pieces: readonly Piece[]
  other: 'removed' | 'added'
}): JSX.Element {
  const own = pieces.flatMap((piece, at) => (piece.kind === other ? [] : [{ ...piece, twin: findTwin(pieces, at) }]))
  return (
    <figure>
      <figcaption class="dim">{name}</figcaption>
      <pre tabIndex={0} aria-label={name}>
        {own.length === 0 && <span class="dim">nothing</span>}
        {own.slice(0, maxShownLines).map(({ kind, text, twin }, at) => (
          <DiffLine key={at} kind={kind} text={text} twin={twin} />
        ))}
        {own.length > maxShownLines && <span class="dim">{own.length - maxShownLines} more lines</span>}
      </pre>
    </figure>
  )
}

/** The other line of a pair: exactly one removed line, followed by exactly one added line. Undefined for any other line. A pair shows where its lines differ. */
function findTwin(pieces: readonly Piece[], at: number): string | undefined {
  const kind = (index: number) => (pieces[index]?.kind === 'noted' ? 'added' : pieces[index]?.kind)
  if (kind(at) === 'removed' && kind(at + 1) === 'added' && kind(at + 2) !== 'added' && kind(at - 1) !== 'removed') {
    return pieces[at + 1]?.text
  }
  if (kind(at) === 'added' && kind(at - 1) === 'removed' && kind(at - 2) !== 'removed' && kind(at + 1) !== 'added') {
    return pieces[at - 1]?.text
  }
  return undefined
}

function DiffLine({ kind, text, twin }: { kind: Piece['kind']; text: string; twin: string | undefined }): JSX.Element {
  const [head, middle, tail] = twin === undefined ? ['', text, ''] : splitByTwin(text, twin)
  const sign = { removed: '− ', added: '+ ', noted: '≠ ', same: '  ', gap: '' }[kind]
  const Mark = kind === 'removed' ? 'del' : kind === 'same' || kind === 'gap' ? 'span' : 'ins'
  return (
    <span class={`line ${kind}`}>
      {sign}
      <bdi>
        {head.length > lead ? `…${markUnseen(head.slice(-lead))}` : markUnseen(head)}
        <Mark>{markUnseen(middle.slice(0, maxDifferenceChars))}</Mark>
        {middle.length > maxDifferenceChars && '…'}
        {markUnseen(tail.slice(0, lead))}
        {tail.length > lead && '…'}
      </bdi>
    </span>
  )
}

/** The common beginning of two lines, the different part, and the common end. */
function splitByTwin(text: string, twin: string): [string, string, string] {
  let start = 0
  while (start < text.length && text[start] === twin[start]) start += 1
  let end = 0
  while (end < Math.min(text.length, twin.length) - start && text.at(-1 - end) === twin.at(-1 - end)) end += 1
  return [text.slice(0, start), text.slice(start, text.length - end), text.slice(text.length - end)]
}
