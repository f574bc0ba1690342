// A text as it looks to a reader who undoes JSON and HTML escapes, to any depth and in any mixture, and folds every character to the one that
// it resembles. Each character keeps its position in the text. It takes one pass, which is linear in the length of the text.
import {
  findEscapeAtEnd,
  type Escape,
  isHighSurrogate,
  longestEscape,
  findNumberBefore,
  type Character,
  removeEscape,
} from './escapes.ts'
import { foldCodePoint } from './lookalikes.ts'
import { createSequenceFilter, hasSequences, type Terminal, terminalCodes } from './sequences.ts'

export type Skeleton = {
  readonly characters: string
  /** The place in the text of each unit of `characters`. */
  readonly places: readonly Character[]
  /** Whether the text has a character that may begin a terminal sequence. */
  readonly hasSequences: boolean
}

/** Half a surrogate pair is kept, because its other half may be escaped. */
function fold(code: number, known: Map<number, string>): string {
  let folded = known.get(code)
  if (folded === undefined) {
    folded = isHighSurrogate(code) ? String.fromCharCode(code) : foldCodePoint(code)
    known.set(code, folded)
  }
  return folded
}

/** A number without a semicolon that was left as it is, because the sign after it might have begun another digit: `&#60\`. */
const openNumber = /&#(?:X[0-9A-F]+|[0-9]+)[&\\]/

/**
 * The skeletons of a text: one, and a second one if a number without a semicolon stands before `&` or a backslash. Such a sign may begin the escape of
 * another digit (`&#6\u0030`) or end the number (`&#60\EXTERNAL`): the second skeleton ends the numbers that the first one left.
 */
export function toSkeletons(text: string, terminal: Terminal = 'none'): Skeleton[] {
  const first = undoEscapes(text, splitCharacters(text), terminal, false)
  return openNumber.test(first.characters) ? [first, undoEscapes(text, first.places, terminal, true)] : [first]
}

function* splitCharacters(text: string): Generator<Character> {
  for (let start = 0; start < text.length;) {
    const character = String.fromCodePoint(text.codePointAt(start) ?? 0)
    const end = start + character.length
    yield { character, start, end, depth: 0 }
    start = end
  }
}

/**
 * An escape is undone as soon as its last character is read, and its character becomes the newest character, which may complete another escape: so
 * `&amp;lt;`, `\u0026lt;` and `\u005cu003c` all become `<`, without a second pass.
 */
function undoEscapes(text: string, source: Iterable<Character>, terminal: Terminal, endsNumbers: boolean): Skeleton {
  const characters: Character[] = []
  const known = new Map<number, string>()
  if (terminal !== 'none') for (const code of terminalCodes) known.set(code, String.fromCharCode(code))
  const sequences = createSequenceFilter(characters, terminal)
  // The latest position where an escape may have begun; far behind it, no search is needed
  let escapeAt = -longestEscape
  /** Characters that are not read yet, the next one last: an unescaped character comes before the rest of the text. */
  const waiting: Character[] = []
  const enqueue = (code: number, { start, end, depth }: Omit<Character, 'character'>) => {
    const folded = fold(code, known)
    for (let at = folded.length - 1; at >= 0; at -= 1) waiting.push({ character: folded.charAt(at), start, end, depth })
  }
  const undoEscape = (escape: Escape, end: number) => {
    const { code, start, depth } = removeEscape(characters, escape)
    escapeAt = characters.length
    enqueue(code, { start, end, depth })
  }
  const readWaiting = () => {
    for (let next = waiting.at(-1); next !== undefined; next = waiting.at(-1)) {
      const before = characters.at(-1)
      const number =
        characters.length - escapeAt > longestEscape
          ? undefined
          : findNumberBefore(characters, next.character, endsNumbers)
      if (before !== undefined && number !== undefined) {
        undoEscape(number, before.end)
        continue
      }
      waiting.pop()
      // drops the semicolon of `&lt;`, because this escape was already complete without it
      if (next.character === ';' && before !== undefined && before.depth > 0 && /[<>&"]/.test(before.character)) {
        characters[characters.length - 1] = { ...before, end: next.end }
        continue
      }
      if (next.character === '\\' || next.character === '&' || next.character === '%') escapeAt = characters.length
      characters.push(next)
      const escape = characters.length - escapeAt > longestEscape ? undefined : findEscapeAtEnd(characters, text)
      if (escape === undefined) sequences.drop()
      else undoEscape(escape, next.end)
    }
  }
  let end = 0
  for (const character of source) {
    end = character.end
    enqueue(character.character.codePointAt(0) ?? 0, character)
    readWaiting()
  }
  const number = findNumberBefore(characters, '', endsNumbers)
  if (number !== undefined) undoEscape(number, end)
  readWaiting()
  const all = characters.map(({ character }) => character).join('')
  return { characters: all, places: characters, hasSequences: hasSequences(all, known) }
}
