// Reads JSON and HTML escapes at the end of a list of signs. It looks back over a limited number of signs.

/** An unescaped sign, and the part of the text that it was read from. `depth`: how often that part was unescaped. */
export type Sign = { readonly sign: string; readonly start: number; readonly end: number; readonly depth: number }

/** The last `length` signs are an escape of the code point `code`. */
export type Escape = { readonly length: number; readonly code: number }

// The names are in capitals, because the signs are. Only signs that can be part of a marker or a token, or can hide one, are listed.
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

export function joinLast(signs: readonly Sign[], count: number): string {
  return signs
    .slice(-count)
    .map(({ sign }) => sign)
    .join('')
}

/** The text after the nearest `first`, up to the newest sign. Undefined if `first` is too far away, or if a sign between them ends an escape. */
function joinSince(signs: readonly Sign[], first: string): string | undefined {
  for (let back = 2; back <= longestEscape; back += 1) {
    const sign = signs.at(-back)?.sign
    if (sign === first) return joinLast(signs, back).slice(1)
    if (sign === undefined || !/[A-Z0-9#]/.test(sign)) return undefined
  }
  return undefined
}

function findEntityAtEnd(signs: readonly Sign[]): Escape | undefined {
  const name = joinSince(signs, '&')?.slice(0, -1)
  if (name === undefined) return undefined
  const length = name.length + 2
  if (name.startsWith('#X')) return toEscape(length, readCode(name.slice(2), 16))
  if (name.startsWith('#')) return toEscape(length, readCode(name.slice(1), 10))
  return Object.hasOwn(entities, name) ? toEscape(length, entities[name]?.codePointAt(0)) : undefined
}

function findBracedAtEnd(signs: readonly Sign[]): Escape | undefined {
  const digits = joinSince(signs, '{')?.slice(0, -1)
  if (digits === undefined || !joinLast(signs, digits.length + 4).startsWith('\\U{')) return undefined
  return toEscape(digits.length + 4, readCode(digits, 16))
}

/** HTML reads these names without a semicolon too. */
const bareEntities: readonly (readonly [name: string, sign: string])[] = [
  ['&LT', '<'],
  ['&GT', '>'],
  ['&AMP', '&'],
  ['&QUOT', '"'],
]

const hexDigits = new Set('0123456789ABCDEF')

/**
 * The numeric escape without a semicolon that ends before `next`, such as `&#60` in `&#60b`. Undefined before `&` or a backslash, which may begin the
 * escape of another digit. `next`: the sign that follows; `''` at the end of the text.
 */
export function findNumberBefore(signs: readonly Sign[], next: string): Escape | undefined {
  if (!hexDigits.has(signs.at(-1)?.sign ?? '') || next === '&' || next === '\\' || next === ';') return undefined
  const name = joinSince(signs, '&') ?? ''
  const isHex = name.startsWith('#X')
  if (!name.startsWith('#') || (isHex ? /[0-9A-F]/ : /[0-9]/).test(next)) return undefined
  return toEscape(name.length + 1, isHex ? readCode(name.slice(2), 16) : readCode(name.slice(1), 10))
}

function findBareEntityAtEnd(signs: readonly Sign[]): Escape | undefined {
  const [name = '', sign = ''] = bareEntities.find(([each]) => joinLast(signs, each.length) === each) ?? []
  return toEscape(name.length, sign.codePointAt(0))
}

/** The octal escape of an ASCII character from space on: `\74`, `\074`. */
function findOctalAtEnd(signs: readonly Sign[]): Escape | undefined {
  const [, digits = ''] = /\\(0?[4-7][0-7]|1[0-7][0-7])$/.exec(joinLast(signs, 4)) ?? []
  return toEscape(digits.length + 1, readCode(digits, 8))
}

/** The percent-encoded character that the newest sign completes: `%3C`. Only ASCII, because no sign of a marker needs more than one byte. */
function findPercentAtEnd(signs: readonly Sign[]): Escape | undefined {
  const [, digits = ''] = /%([2-7][0-9A-F])$/.exec(joinLast(signs, 3)) ?? []
  return toEscape(3, readCode(digits, 16))
}

/**
 * The escape that the newest sign completes: `\"`, `\n`, `\x3C`, `\u003C`, `\U0000003C`, `\u{3C}`, `\74`, `\074`, `%3C`, `&lt;`, `&lt`, `&#60;`,
 * `&#x3C;`.
 */
export function findEscapeAtEnd(signs: readonly Sign[], text: string): Escape | undefined {
  const newest = signs.at(-1)?.sign ?? ''
  if (newest === ';') return findEntityAtEnd(signs)
  if (newest === '}') return findBracedAtEnd(signs)
  if (newest === 'T' || newest === 'P') {
    const escape = findBareEntityAtEnd(signs)
    if (escape !== undefined) return escape
  }
  if (hexDigits.has(newest)) {
    const escape = findPercentAtEnd(signs) ?? findOctalAtEnd(signs)
    if (escape !== undefined) return escape
  }
  if (signs.at(-2)?.sign === '\\') {
    if (/["'/`]/.test(newest)) return toEscape(2, newest.codePointAt(0))
    return /[NTRBF]/.test(newest) ? toEscape(2, 0x20) : undefined
  }
  // `\U` is followed by eight digits
  const isLong = (back: number) => signs.at(-back)?.sign === 'U' && text[signs.at(-back)?.start ?? 0] === 'U'
  if (signs.at(-10)?.sign === '\\' && isLong(9)) return toEscape(10, readCode(joinLast(signs, 8), 16))
  if (signs.at(-6)?.sign === '\\' && signs.at(-5)?.sign === 'U') {
    const digits = joinLast(signs, 4)
    // after a `\U`, these may be the first four of eight digits: the highest code point is 0010FFFF
    return isLong(5) && /^00(?:0.|10)$/.test(digits) ? undefined : toEscape(6, readCode(digits, 16))
  }
  if (signs.at(-4)?.sign === '\\' && signs.at(-3)?.sign === 'X') return toEscape(4, readCode(joinLast(signs, 2), 16))
  return undefined
}

/** Removes an escape from the signs. Returns its code point, and the part of the text that it covered. */
export function removeEscape(signs: Sign[], escape: Escape): { code: number; start: number; depth: number } {
  const taken = signs.splice(-escape.length)
  let start = taken[0]?.start ?? 0
  let code = escape.code
  const depth = Math.max(...taken.map((sign) => sign.depth))
  // Text that was escaped several times has a run of 1, 3, 7 … backslashes. A backslash that was itself an escape belongs to the run only if the
  // other backslashes were escapes too: in \u005c\u0075…, it begins an escape of the next depth.
  if (taken[0]?.sign === '\\') {
    for (let top = signs.at(-1); top?.sign === '\\' && top.depth <= depth; top = signs.at(-1)) {
      start = top.start
      signs.pop()
    }
  }
  const before = signs.at(-1)
  const high = before?.sign.charCodeAt(0) ?? 0
  if (before !== undefined && isLowSurrogate(code) && isHighSurrogate(high)) {
    code = (high - 0xd800) * 0x400 + (code - 0xdc00) + 0x10000
    start = before.start
    signs.pop()
  }
  return { code, start, depth: depth + 1 }
}
