// Splits a reply into pieces that a channel accepts. Only white space at a break is lost, and no code block is left open in a piece.

type ChunkLimits = {
  /** The maximum that `measure` may return for a piece. */
  readonly limit: number
  /** Measures a piece in the form in which it is sent. Default: its number of UTF-16 units. */
  readonly measure?: (piece: string) => number
}

/**
 * The pieces of `markdown`, in order. Each piece fits, unless a single character does not. A piece ends after its last paragraph; if it would
 * be less than a third full, it ends after its last line, else after its last sentence, else after its last word. If each of these is too short,
 * the longest is taken. A piece that has none of these ends is cut between two graphemes. An open code fence is closed at the end of a piece,
 * and opened again in the next one. Only a blank text gives a blank piece.
 */
export function splitMarkdown(markdown: string, { limit, measure = (piece) => piece.length }: ChunkLimits): string[] {
  // providers treat half a surrogate pair differently
  const text = markdown
    .replaceAll('\r\n', '\n')
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .trimEnd()
  const blanks = createBlankFinder(text)
  const pieces: string[] = []
  let at = blanks(0).line
  let open: Fence | undefined
  while (at < text.length) {
    const piece = takePiece({ text, blanks, at, open, limit, measure })
    if (piece.body.trim() !== '') pieces.push(piece.text)
    at = piece.end
    open = piece.open
  }
  return pieces.length === 0 ? [markdown] : pieces
}

type Rest = Required<ChunkLimits> & {
  readonly text: string
  readonly blanks: FindBlanks
  readonly at: number
  readonly open: Fence | undefined
}

type Piece = {
  readonly text: string
  /** The new text in the piece. */
  readonly body: string
  /** Where the next piece begins, and the fence that it must reopen. */
  readonly end: number
  readonly open: Fence | undefined
}

/** The next piece: as much of the rest as fits, cut back to a break. */
function takePiece(rest: Rest): Piece {
  const { limit, measure } = rest
  // at most `limit` characters of the source are tried, which bounds the work: if a part of them is not shown, the piece could be longer
  let room = limit
  for (;;) {
    const piece = cutPiece(rest, room)
    const size = measure(piece.text)
    // a character that does not fit is sent anyway: a refusal is better than an endless loop
    if (size <= limit || room === 1) return piece
    const share = Math.min(limit / size, 7 / 8)
    room = Math.max(1, Math.floor(Math.min(room, piece.end - rest.at) * share))
  }
}

function cutPiece({ text, blanks, at, open }: Rest, maxLength: number): Piece {
  const stop = at + maxLength >= text.length ? text.length : findLastBreak({ text, at, max: at + maxLength, open })
  const body = text.slice(at, stop)
  const after = findFenceAfter(body, open)
  const start = open === undefined ? '' : `${open.opening}\n`
  if (after === undefined) {
    return { text: start + body.trimEnd(), body, end: blanks(stop).end, open: undefined }
  }
  const next = blanks(stop).line
  const closing = readLineAt(text, next)
  // the piece has a closing line already, so the one with which the text may continue is skipped
  const ends = next > stop && closesFence(closing, after)
  return {
    text: `${start}${body.trimEnd()}\n${after.closing}`,
    body,
    end: ends ? blanks(next + closing.length).end : next,
    open: ends ? undefined : after,
  }
}

/** The longest line that can end a fence. The check runs for each piece, so a very long line must not be read to its end. */
const maxClosingChars = 1_000

function readLineAt(text: string, at: number): string {
  const start = text.slice(at, at + maxClosingChars)
  const end = start.indexOf('\n')
  return end === -1 ? start : start.slice(0, end)
}

/** Finds the run of white space at a position. `end`: where it ends. `line`: the start of the line that contains `end`, but never before the position. */
type FindBlanks = (at: number) => { readonly end: number; readonly line: number }

/** Two pieces in a row ask for the same white space, so the last result is kept. */
function createBlankFinder(text: string): FindBlanks {
  const run = /\s*/y
  let known = { start: 0, end: -1, line: 0 }
  return (at) => {
    if (at < known.start || at > known.end) {
      run.lastIndex = at
      const [found = ''] = run.exec(text) ?? []
      known = { start: at, end: at + found.length, line: at + found.lastIndexOf('\n') + 1 }
    }
    return { end: known.end, line: Math.max(at, known.line) }
  }
}

let graphemes: Intl.Segmenter | undefined

/** The best end of a piece in (at, max]; the white space there is dropped. */
function findLastBreak({
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
  // the window includes the character at `max`, because a piece may end just before it
  const window = text.slice(at, max + 1)
  const places = [
    ...findLineBreaks(window, open),
    findLastMatch(window, /(?<=[.!?…。！？]["'”’)\]]?)\s/g),
    findLastMatch(window, /\s/g),
  ]
  const third = window.length / 3
  const place = places.find((offset) => offset >= third) ?? Math.max(...places)
  return at + (place > 0 ? place : findLastCharacter(text.slice(at, max + 64), max - at))
}

/** The last paragraph break and the last line break outside code, and the last line break in code; 0 for each that does not exist. */
function findLineBreaks(window: string, open: Fence | undefined): [number, number, number] {
  const found: [number, number, number] = [0, 0, 0]
  let fence = open
  let end = window.indexOf('\n')
  for (let start = 0; end !== -1; start = end + 1, end = window.indexOf('\n', start)) {
    const line = window.slice(start, end)
    const before = fence
    fence = findFenceAfterLine(line, before)
    const isBlank = line.trim() === ''
    // a paragraph ends where its last line ended
    if (fence === undefined && isBlank) found[0] = Math.max(start - 1, 0)
    else if (fence === undefined) found[1] = end
    // no break after the opening line: it would leave an empty block
    else if (fence === before) found[2] = end
  }
  return found
}

function findLastMatch(window: string, pattern: RegExp): number {
  let last = 0
  for (const { index } of window.matchAll(pattern)) last = index
  return last
}

/** The last grapheme boundary up to `max`; inside a longer grapheme, the last code point boundary. At least one character. */
function findLastCharacter(text: string, max: number): number {
  // the segmenter is made at its first use, because its tables take two megabytes
  graphemes ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  const boundary = graphemes.segment(text).containing(max)?.index ?? max
  if (boundary > 0) return boundary
  const isLow = /^[\uDC00-\uDFFF]/.test(text.slice(max))
  return isLow ? Math.max(max - 1, 2) : max
}

type Fence = {
  readonly marks: string
  /** The line that opens the fence again in the next piece, with indentation and language. */
  readonly opening: string
  readonly closing: string
}

/** Matches quotes and indentation or a bullet, then the marks, then the rest. The bounds keep the line short, because each piece repeats it. */
const opener = /^([ \t>]{0,40})(?:([-*+]|\d{1,9}[.)])([ \t]{1,4}))?(`{3,16}|~{3,16})(?!`|~)(.*)$/
const closer = /^[ \t>]*(`{3,}|~{3,})[ \t]*$/

/** The fence that is open after `line`, given the fence that was open before it. */
function findFenceAfterLine(line: string, open: Fence | undefined): Fence | undefined {
  if (open !== undefined && !hasEnded(line, open)) return closesFence(line, open) ? undefined : open
  const [, before = '', bullet = '', gap = '', marks, info = ''] = opener.exec(line) ?? []
  // a line that begins with backticks and has more backticks later is inline code, not a fence
  if (marks === undefined || (marks.startsWith('`') && info.includes('`'))) return undefined
  const place = `${before}${' '.repeat(bullet.length + gap.length)}`
  const language = /^\s*([^\s{]{0,40})/.exec(info)?.[1] ?? ''
  return { marks, opening: `${place}${marks}${language}`, closing: `${place}${marks}` }
}

export function findFenceAfter(text: string, open: Fence | undefined): Fence | undefined {
  return text.split('\n').reduce((fence, line) => findFenceAfterLine(line, fence), open)
}

function closesFence(line: string, { marks }: Fence): boolean {
  return closer.exec(line)?.[1]?.startsWith(marks) === true
}

/** Whether the quote of a fence has ended: a fence in a quote ends with the quote. */
function hasEnded(line: string, { closing }: Fence): boolean {
  return closing.includes('>') && !/^[ \t]*>/.test(line)
}
