// Shows which lines of a module ran: maps the executed parts of its bundle to the files of the author.
import { takeStart } from '../../base/text.ts'
import { SourceMap } from 'node:module'

/** `line` and `endLine` begin at 1. `text`: the beginning of the code. */
export type CodePlace = { readonly line: number; readonly endLine: number; readonly text: string }

/** One file of the author. `lines`: the number of lines with code. `covered`: how many of them the fixtures run completely. */
export type FileCoverage = {
  /** The path, relative to the transforms directory. */
  readonly file: string
  readonly lines: number
  readonly covered: number
  /** Code that neither a fixture nor a kept request runs. */
  readonly unreached: readonly CodePlace[]
  /** Code that only kept requests run. */
  readonly onlyKept: readonly CodePlace[]
}

/** The offsets of the code that some runs reached together. */
export type ReachedOffsets = {
  add(parts: readonly number[]): void
  /** Whether all of these parts were reached before. */
  hasAll(parts: readonly number[]): boolean
  has(offset: number): boolean
}

export function createReachedOffsets(code: string): ReachedOffsets {
  const reached = new Uint8Array(code.length)
  return {
    add(parts) {
      for (let at = 0; at < parts.length; at += 2) reached.fill(1, parts[at], parts[at + 1])
    },
    hasAll(parts) {
      for (let at = 0; at < parts.length; at += 2) {
        const hole = reached.indexOf(0, parts[at])
        if (hole >= 0 && hole < (parts[at + 1] ?? 0)) return false
      }
      return true
    },
    has: (offset) => reached[offset] === 1,
  }
}

type State = 'fixture' | 'kept' | 'none'

/** A piece of the bundle that has its own position in a file of the author. */
type Piece = {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly state: State
  text: string
}

const longestText = 80

/** Files of packages are left out. */
export function toFileCoverage(
  { code, map }: { readonly code: string; readonly map: string },
  { fixtures, kept }: { readonly fixtures: ReachedOffsets; readonly kept: ReachedOffsets },
): FileCoverage[] {
  const parsed = new SourceMap(JSON.parse(map))
  const { sources, sourcesContent } = parsed.payload
  const pieces = readPieces(code, parsed, (offset) =>
    fixtures.has(offset) ? 'fixture' : kept.has(offset) ? 'kept' : 'none',
  )
  return sources.flatMap((file, index) => {
    const own = pieces.filter((piece) => piece.file === file)
    const texts = (sourcesContent[index] ?? '').split(/\r?\n/)
    const [lines, incomplete] = [own, own.filter(({ state }) => state !== 'fixture')].map(
      (some) => new Set(some.map(({ line }) => line)).size,
    )
    if (lines === undefined || incomplete === undefined || lines === 0) return []
    const listByState = (state: State) => listPlaces(own, state, texts)
    return { file, lines, covered: lines - incomplete, unreached: listByState('none'), onlyKept: listByState('kept') }
  })
}

function isOwn(file: string): boolean {
  return !/^(entry|builtin|provided):/.test(file) && !/(^|\/)node_modules\//.test(file)
}

/** The pieces in the order of the bundle. Pieces with no name or number, such as a brace, are left out. */
function readPieces(code: string, map: SourceMap, toState: (offset: number) => State): Piece[] {
  const pieces: Piece[] = []
  let offset = 0
  for (const [lineIndex, text] of code.split('\n').entries()) {
    let begun = -1
    for (let column = 0; column < text.length; column += 1) {
      const entry = map.findEntry(lineIndex, column)
      if (!('originalLine' in entry) || entry.generatedLine !== lineIndex || !isOwn(entry.originalSource)) continue
      const last = pieces.at(-1)
      if (entry.generatedColumn === begun && last !== undefined) last.text += text[column] ?? ''
      else {
        begun = entry.generatedColumn
        const { originalSource: file, originalLine: line, originalColumn } = entry
        pieces.push({ file, line, column: originalColumn, state: toState(offset + column), text: text[column] ?? '' })
      }
    }
    offset += text.length + 1
  }
  return pieces.filter(({ text }) => /[\w$]/.test(text))
}

/** The places of one state. Pieces that follow each other become one place. */
function listPlaces(pieces: readonly Piece[], wanted: State, texts: readonly string[]): CodePlace[] {
  const places: { line: number; endLine: number; text: string }[] = []
  let isOpen = false
  for (const { line, column, state } of pieces) {
    if (state !== wanted) {
      isOpen = false
      continue
    }
    const last = places.at(-1)
    if (isOpen && last !== undefined) {
      last.line = Math.min(last.line, line + 1)
      last.endLine = Math.max(last.endLine, line + 1)
    } else {
      const text = takeStart((texts[line] ?? '').slice(column).trim(), longestText)
      places.push({ line: line + 1, endLine: line + 1, text })
    }
    isOpen = true
  }
  return places
}
