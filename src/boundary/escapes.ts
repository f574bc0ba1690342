// Reads JSON and HTML escapes at the end of a list of characters. It looks back over a limited number of characters.

/** An unescaped character, and the part of the text that it was read from. `depth`: how often that part was unescaped. */
export type Character = {
  readonly character: string
  readonly start: number
  readonly end: number
  readonly depth: number
}

/** The last `length` characters are an escape of the code point `code`. */
export type Escape = { readonly length: number; readonly code: number }

// The names are in capitals, because the characters are. Only characters that can be part of a marker or a token, or can hide one, are listed.
const entities: Record<string, string> = {
  LT: '<',
  GT: '>',
  AMP: '&',
  QUOT: '"',
  APOS: "'",
  BSOL: '\\',
  SOL: '/',
  NUM: '#',
  SEMI: ';',
  LSQB: '[',
  LBRACK: '[',
  RSQB: ']',
  RBRACK: ']',
  VERT: '|',
  VERBAR: '|',
  LOWBAR: '_',
  HYPHEN: '-',
  DASH: '-',
  NDASH: '-',
  MDASH: '-',
  NBSP: ' ',
  ENSP: ' ',
  EMSP: ' ',
  THINSP: ' ',
  TAB: ' ',
  NEWLINE: ' ',
  LAQUO: '<',
  RAQUO: '>',
  LSAQUO: '<',
  RSAQUO: '>',
  LANG: '<',
  RANG: '>',
  SHY: '\u00AD',
  ZWJ: '\u200D',
  ZWNJ: '\u200C',
  ZEROWIDTHSPACE: '\u200B',
}

/** Room for `&#x` with many leading zeros. It limits how far the search looks back, and so the total work. */
export const longestEscape = 32

export const isHighSurrogate = (code: number) => code >= 0xd800 && code <= 0xdbff
const isLowSurrogate = (code: number) => code >= 0xdc00 && code <= 0xdfff

const radixDigits = { 8: /^[0-7]+$/, 10: /^[0-9]+$/, 16: /^[0-9A-F]+$/ }

function readCode(digits: string, radix: keyof typeof radixDigits): number | undefined {
  if (!radixDigits[radix].test(digits)) return undefined
  const code = Number.parseInt(digits, radix)
  return code <= 0x10ffff ? code : undefined
}

function toEscape(length: number, code: number | undefined): Escape | undefined {
  return code === undefined ? undefined : { length, code }
}

export function joinLast(characters: readonly Character[], count: number): string {
  return characters
    .slice(-count)
    .map(({ character }) => character)
    .join('')
}

/** The text after the nearest `first`, up to the newest character. Undefined if `first` is too far away, or if a character between them ends an escape. */
function joinSince(characters: readonly Character[], first: string): string | undefined {
  for (let back = 2; back <= longestEscape; back += 1) {
    const character = characters.at(-back)?.character
    if (character === first) return joinLast(characters, back).slice(1)
    if (character === undefined || !/[A-Z0-9#]/.test(character)) return undefined
  }
  return undefined
}

function findEntityAtEnd(characters: readonly Character[]): Escape | undefined {
  const name = joinSince(characters, '&')?.slice(0, -1)
  if (name === undefined) return undefined
  const length = name.length + 2
  if (name.startsWith('#X')) return toEscape(length, readCode(name.slice(2), 16))
  if (name.startsWith('#')) return toEscape(length, readCode(name.slice(1), 10))
  return Object.hasOwn(entities, name) ? toEscape(length, entities[name]?.codePointAt(0)) : undefined
}

function findBracedAtEnd(characters: readonly Character[]): Escape | undefined {
  const digits = joinSince(characters, '{')?.slice(0, -1)
  if (digits === undefined || !joinLast(characters, digits.length + 4).startsWith('\\U{')) return undefined
  return toEscape(digits.length + 4, readCode(digits, 16))
}

/** HTML reads these names without a semicolon too. */
const bareEntities: readonly (readonly [name: string, character: string])[] = [
  ['&LT', '<'],
  ['&GT', '>'],
  ['&AMP', '&'],
  ['&QUOT', '"'],
]

const hexDigits = new Set('0123456789ABCDEF')

/**
 * The numeric escape without a semicolon that ends before `next`, such as `&#60` in `&#60b`. `next`: the character that follows; `''` at the end of the
 * text. Undefined before `&` or a backslash, which may begin the escape of another digit, unless `ends`.
 */
export function findNumberBefore(characters: readonly Character[], next: string, ends: boolean): Escape | undefined {
  if (!hexDigits.has(characters.at(-1)?.character ?? '') || next === ';') return undefined
  if (!ends && (next === '&' || next === '\\')) return undefined
  const name = joinSince(characters, '&') ?? ''
  const isHex = name.startsWith('#X')
  if (!name.startsWith('#') || (isHex ? /[0-9A-F]/ : /[0-9]/).test(next)) return undefined
  return toEscape(name.length + 1, isHex ? readCode(name.slice(2), 16) : readCode(name.slice(1), 10))
}

function findBareEntityAtEnd(characters: readonly Character[]): Escape | undefined {
  const [name = '', character = ''] = bareEntities.find(([each]) => joinLast(characters, each.length) === each) ?? []
  return toEscape(name.length, character.codePointAt(0))
}

/** The octal escape of an ASCII character from space on: `\74`, `\074`. */
function findOctalAtEnd(characters: readonly Character[]): Escape | undefined {
  const [, digits = ''] = /\\(0?[4-7][0-7]|1[0-7][0-7])$/.exec(joinLast(characters, 4)) ?? []
  return toEscape(digits.length + 1, readCode(digits, 8))
}

/** The percent-encoded character that the newest character completes: `%3C`. Only ASCII, because no character of a marker needs more than one byte. */
function findPercentAtEnd(characters: readonly Character[]): Escape | undefined {
  const [, digits = ''] = /%([2-7][0-9A-F])$/.exec(joinLast(characters, 3)) ?? []
  return toEscape(3, readCode(digits, 16))
}

/**
 * The escape that the newest character completes: `\"`, `\n`, `\x3C`, `\u003C`, `\U0000003C`, `\u{3C}`, `\74`, `\074`, `%3C`, `&lt;`, `&lt`, `&#60;`,
 * `&#x3C;`.
 */
export function findEscapeAtEnd(characters: readonly Character[], text: string): Escape | undefined {
  const newest = characters.at(-1)?.character ?? ''
  if (newest === ';') return findEntityAtEnd(characters)
  if (newest === '}') return findBracedAtEnd(characters)
  if (newest === 'T' || newest === 'P') {
    const escape = findBareEntityAtEnd(characters)
    if (escape !== undefined) return escape
  }
  if (hexDigits.has(newest)) {
    const escape = findPercentAtEnd(characters) ?? findOctalAtEnd(characters)
    if (escape !== undefined) return escape
  }
  if (characters.at(-2)?.character === '\\') {
    if (/["'/`]/.test(newest)) return toEscape(2, newest.codePointAt(0))
    return /[NTRBF]/.test(newest) ? toEscape(2, 0x20) : undefined
  }
  // `\U` is followed by eight digits
  const isLong = (back: number) =>
    characters.at(-back)?.character === 'U' && text[characters.at(-back)?.start ?? 0] === 'U'
  if (characters.at(-10)?.character === '\\' && isLong(9)) return toEscape(10, readCode(joinLast(characters, 8), 16))
  if (characters.at(-6)?.character === '\\' && characters.at(-5)?.character === 'U') {
    const digits = joinLast(characters, 4)
    // after a `\U`, these may be the first four of eight digits: the highest code point is 0010FFFF
    return isLong(5) && /^00(?:0.|10)$/.test(digits) ? undefined : toEscape(6, readCode(digits, 16))
  }
  if (characters.at(-4)?.character === '\\' && characters.at(-3)?.character === 'X')
    return toEscape(4, readCode(joinLast(characters, 2), 16))
  return undefined
}

/** Removes an escape from the characters. Returns its code point, and the part of the text that it covered. */
export function removeEscape(characters: Character[], escape: Escape): { code: number; start: number; depth: number } {
  const taken = characters.splice(-escape.length)
  let start = taken[0]?.start ?? 0
  let code = escape.code
  const depth = Math.max(...taken.map((character) => character.depth))
  // Text that was escaped several times has a run of 1, 3, 7 … backslashes. A backslash that was itself an escape belongs to the run only if the
  // other backslashes were escapes too: in \u005c\u0075…, it begins an escape of the next depth.
  if (taken[0]?.character === '\\') {
    for (let top = characters.at(-1); top?.character === '\\' && top.depth <= depth; top = characters.at(-1)) {
      start = top.start
      characters.pop()
    }
  }
  const before = characters.at(-1)
  const high = before?.character.charCodeAt(0) ?? 0
  if (before !== undefined && isLowSurrogate(code) && isHighSurrogate(high)) {
    code = (high - 0xd800) * 0x400 + (code - 0xdc00) + 0x10000
    start = before.start
    characters.pop()
  }
  return { code, start, depth: depth + 1 }
}
