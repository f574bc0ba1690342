// Finds terminal sequences between the characters of a text, as in `EXTERNAL_\u001b[0mUNTRUSTED`. A terminal may hide them from its reader.
import { joinLast, type Character } from './escapes.ts'

/**
 * How a reader treats terminal sequences: shows all, or hides the colour sequences, or hides all. A sequence can swallow a letter of the
 * text, so every reading is checked.
 */
export type Terminal = 'none' | 'colours' | 'all'

const bell = '\u0007'
const start = '\u001B'
const shortStart = '\u009B'
const stringEnd = '\u009C'

/** The controls that begin and end sequences. */
export const terminalCodes: readonly number[] = [bell, start, shortStart, stringEnd].map((character) =>
  character.charCodeAt(0),
)

/** How code and people write the first control: `\033`, `\e`, `^[`. The letters are capitals, because the characters are. */
const startSpellings = ['\\033', '\\E', '^[']
const spelledStart = /(?:\\033|\\E|\^\[)[[\]]/

/** The character that ends `ESC [ …` (ECMA-48, 5.4). Brackets and the backslash are not here: below, they begin or end other sequences. */
const commandEnd = /^[@-Z^-~]$/

/** Whether a text has a character that may begin a sequence. `known`: the code points that were folded. */
export function hasSequences(characters: string, known: ReadonlyMap<number, string>): boolean {
  return known.has(start.charCodeAt(0)) || known.has(shortStart.charCodeAt(0)) || spelledStart.test(characters)
}

/** `characters`: the characters of the skeleton that is being built. */
export function createSequenceFilter(characters: Character[], terminal: Terminal) {
  /** The position of the latest `ESC ]`, which begins a string, such as a title or a link. */
  let stringAt = -1

  /** Replaces an escaped control before the newest character with the control itself. */
  const readSpelledStart = () => {
    const before = joinLast(characters, 5).slice(0, -1)
    const word = startSpellings.find((each) => before.endsWith(each)) ?? ''
    const at = characters.length - 1 - word.length
    const first = characters[at]
    if (word !== '' && first !== undefined) characters.splice(at, word.length, { ...first, character: start })
  }

  /**
   * Removes the command that the newest character ends, such as `ESC [ 1 ; 31 m`. No search back passes the character where the search before it began, so the
   * total work is linear.
   */
  const removeCommand = () => {
    let at = characters.length - 2
    while (/[0-9:;<=>?]/.test(characters[at]?.character ?? '')) at -= 1
    if (characters[at]?.character === shortStart) characters.length = at
    else if (characters[at]?.character === '[' && characters[at - 1]?.character === start) characters.length = at - 1
  }

  return {
    /** Drops the sequence that the newest character completes. */
    drop(): void {
      const newest = terminal === 'none' ? '' : (characters.at(-1)?.character ?? '')
      if (newest === '[' || newest === ']') {
        readSpelledStart()
        if (newest === ']' && characters.at(-2)?.character === start) stringAt = characters.length - 2
      } else if (commandEnd.test(newest)) {
        if (terminal === 'all' || newest === 'M') removeCommand()
      } else if (
        newest === bell ||
        newest === stringEnd ||
        (newest === '\\' && characters.at(-2)?.character === start)
      ) {
        if (terminal === 'all' && characters[stringAt]?.character === start) characters.length = stringAt
        stringAt = -1
      }
    },
  }
}
