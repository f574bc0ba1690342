// Finds terminal sequences between the signs of a text, as in `EXTERNAL_\u001b[0mUNTRUSTED`. A terminal may hide them from its reader.
import { joinLast, type Sign } from './escapes.ts'

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
export const terminalCodes: readonly number[] = [bell, start, shortStart, stringEnd].map((sign) => sign.charCodeAt(0))

/** How code and people write the first control: `\033`, `\e`, `^[`. The letters are capitals, because the signs are. */
const startSpellings = ['\\033', '\\E', '^[']
const spelledStart = /(?:\\033|\\E|\^\[)[[\]]/

/** The sign that ends `ESC [ …` (ECMA-48, 5.4). Brackets and the backslash are not here: below, they begin or end other sequences. */
const commandEnd = /^[@-Z^-~]$/

/** Whether a text has a character that may begin a sequence. `known`: the code points that were folded. */
export function hasSequences(signs: string, known: ReadonlyMap<number, string>): boolean {
  return known.has(start.charCodeAt(0)) || known.has(shortStart.charCodeAt(0)) || spelledStart.test(signs)
}

/** `signs`: the signs of the skeleton that is being built. */
export function createSequenceFilter(signs: Sign[], terminal: Terminal) {
  /** The position of the latest `ESC ]`, which begins a string, such as a title or a link. */
  let stringAt = -1

  /** Replaces an escaped control before the newest sign with the control itself. */
  const readSpelledStart = () => {
    const before = joinLast(signs, 5).slice(0, -1)
    const word = startSpellings.find((each) => before.endsWith(each)) ?? ''
    const at = signs.length - 1 - word.length
    const first = signs[at]
    if (word !== '' && first !== undefined) signs.splice(at, word.length, { ...first, sign: start })
  }

  /**
   * Removes the command that the newest sign ends, such as `ESC [ 1 ; 31 m`. No search back passes the sign where the search before it began, so the
   * total work is linear.
   */
  const removeCommand = () => {
    let at = signs.length - 2
    while (/[0-9:;<=>?]/.test(signs[at]?.sign ?? '')) at -= 1
    if (signs[at]?.sign === shortStart) signs.length = at
    else if (signs[at]?.sign === '[' && signs[at - 1]?.sign === start) signs.length = at - 1
  }

  return {
    /** Drops the sequence that the newest sign completes. */
    drop(): void {
      const newest = terminal === 'none' ? '' : (signs.at(-1)?.sign ?? '')
      if (newest === '[' || newest === ']') {
        readSpelledStart()
        if (newest === ']' && signs.at(-2)?.sign === start) stringAt = signs.length - 2
      } else if (commandEnd.test(newest)) {
        if (terminal === 'all' || newest === 'M') removeCommand()
      } else if (newest === bell || newest === stringEnd || (newest === '\\' && signs.at(-2)?.sign === start)) {
        if (terminal === 'all' && signs[stringAt]?.sign === start) signs.length = stringAt
        stringAt = -1
      }
    },
  }
}
