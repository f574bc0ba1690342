// Where a text may break, best first: a paragraph, a line, a sentence, a space; in the worst case between two characters as people see them.
import { fenceAfterLine, type Fence } from './fences.ts'

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** The best place in (at, max] for a piece to end; the white space there belongs to nobody. */
export function lastBreak({
  text,
  at,
  max,
  open,
}: {
  text: string
  at: number
  max: number
  open: Fence | undefined
}): number {
  // with the character at max: a piece may end just before it
  const window = text.slice(at, max + 1)
  const places = [
    ...lineBreaks(window, open),
    lastMatch(window, /(?<=[.!?…。！？]["'”’)\]]?)\s/g),
    lastMatch(window, /\s/g),
  ]
  const third = window.length / 3
  const place = places.find((offset) => offset >= third) ?? Math.max(...places)
  return at + (place > 0 ? place : lastCharacter(text.slice(at, max + 64), max - at))
}

/** The last paragraph break and line break outside of code, and the last line break in code; 0 where there is none. */
function lineBreaks(window: string, open: Fence | undefined): [number, number, number] {
  const found: [number, number, number] = [0, 0, 0]
  let fence = open
  let end = window.indexOf('\n')
  for (let start = 0; end !== -1; start = end + 1, end = window.indexOf('\n', start)) {
    const line = window.slice(start, end)
    const before = fence
    fence = fenceAfterLine(line, before)
    const isBlank = line.trim() === ''
    // a paragraph ends where its last line did
    if (fence === undefined && isBlank) found[0] = Math.max(start - 1, 0)
    else if (fence === undefined) found[1] = end
    // not after the opening line: that would be an empty block
    else if (fence === before) found[2] = end
  }
  return found
}

function lastMatch(window: string, pattern: RegExp): number {
  let last = 0
  for (const { index } of window.matchAll(pattern)) last = index
  return last
}

/** The last boundary between graphemes up to `max`; of one that is longer than that, between code points. At least one character. */
function lastCharacter(text: string, max: number): number {
  const boundary = graphemes.segment(text).containing(max)?.index ?? max
  if (boundary > 0) return boundary
  const isLow = /^[\uDC00-\uDFFF]/.test(text.slice(max))
  return isLow ? Math.max(max - 1, 2) : max
}
