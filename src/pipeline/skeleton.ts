// A text as a reader sees who undoes JSON and HTML escapes, to any depth and in any mixture, and folds every character to
// what it looks like. Each sign knows its place in the text. One pass, linear in the length of the text.
import { foldCodePoint } from './lookalikes.ts'

/** `signs[i]` was read from `text.slice(starts[i], ends[i])`. */
export type Skeleton = { readonly signs: string; readonly starts: readonly number[]; readonly ends: readonly number[] }

/** The last `length` signs are an escape of the code point `code`. */
type Escape = { readonly length: number; readonly code: number }

// In capitals, since the signs are. Only names of signs that a marker or a token can hold, or that hide one.
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

/** Room for `&#x` with many leading zeros. It bounds the look back, and so the whole work. */
const longestEscape = 32

const isHigh = (code: number) => code >= 0xd800 && code <= 0xdbff
const isLow = (code: number) => code >= 0xdc00 && code <= 0xdfff

function toCode(digits: string, radix: 10 | 16): number | undefined {
  if (!(radix === 16 ? /^[0-9A-F]+$/ : /^[0-9]+$/).test(digits)) return undefined
  const code = Number.parseInt(digits, radix)
  return code <= 0x10ffff ? code : undefined
}

function toEscape(length: number, code: number | undefined): Escape | undefined {
  return code === undefined ? undefined : { length, code }
}

function last(signs: readonly string[], count: number): string {
  return signs.slice(signs.length - count).join('')
}

/** The signs behind the nearest `opener`, without the very last sign; undefined when it is not near. */
function lastSince(signs: readonly string[], opener: string): string | undefined {
  for (let back = 2; back <= longestEscape; back += 1) {
    const sign = signs[signs.length - back]
    if (sign === opener) return last(signs, back - 1).slice(0, -1)
    if (sign === undefined || !/[A-Z0-9#]/.test(sign)) return undefined
  }
  return undefined
}

function entityAtEnd(signs: readonly string[]): Escape | undefined {
  const name = lastSince(signs, '&')
  if (name === undefined) return undefined
  const length = name.length + 2
  if (name.startsWith('#X')) return toEscape(length, toCode(name.slice(2), 16))
  if (name.startsWith('#')) return toEscape(length, toCode(name.slice(1), 10))
  return Object.hasOwn(entities, name) ? toEscape(length, entities[name]?.codePointAt(0)) : undefined
}

/** The escape that the newest sign completes: `\\`, `\"`, `\n`, `\x3C`, `\u003C`, `\u{3C}`, `&lt;`, `&#60;`, `&#x3C;`. */
function escapeAtEnd(signs: readonly string[]): Escape | undefined {
  const size = signs.length
  const newest = signs[size - 1]
  if (newest === undefined) return undefined
  if (newest === ';') return entityAtEnd(signs)
  if (newest === '}') {
    const digits = lastSince(signs, '{')
    if (digits === undefined || last(signs, digits.length + 4).slice(0, 3) !== '\\U{') return undefined
    return toEscape(digits.length + 4, toCode(digits, 16))
  }
  if (signs[size - 2] === '\\') {
    // A run of backslashes is one: a text that was escaped several times over has 1, 3, 7 … of them
    if (/[\\"'/`]/.test(newest)) return toEscape(2, newest.codePointAt(0))
    if (/[NTRBF]/.test(newest)) return { length: 2, code: 0x20 }
    return undefined
  }
  if (signs[size - 6] === '\\' && signs[size - 5] === 'U') return toEscape(6, toCode(last(signs, 4), 16))
  if (signs[size - 4] === '\\' && signs[size - 3] === 'X') return toEscape(4, toCode(last(signs, 2), 16))
  return undefined
}

/**
 * The skeleton of a text. An escape is undone as soon as its last sign is there, and what it stands for is the newest sign
 * then, which may itself complete an escape: so `&amp;lt;`, `\u0026lt;` and `\u005cu003c` are all `<`, without a second pass.
 */
export function toSkeleton(text: string): Skeleton {
  const signs: string[] = []
  const starts: number[] = []
  const ends: number[] = []
  // Where the newest sign stands that can begin an escape, or could: far behind it there is nothing to look for
  let opener = -longestEscape
  const known = new Map<number, string>()
  const fold = (code: number): string => {
    if (code < 0x80) return foldCodePoint(code)
    const seen = known.get(code)
    if (seen !== undefined) return seen
    const folded = isHigh(code) ? String.fromCharCode(code) : foldCodePoint(code)
    known.set(code, folded)
    return folded
  }
  /** Takes signs away again; gives back where the first of them started. */
  const drop = (count: number): number => {
    const size = signs.length - count
    const start = starts[size] ?? 0
    signs.length = size
    starts.length = size
    ends.length = size
    opener = size
    return start
  }

  let end = 0
  while (end < text.length) {
    let start = end
    let code = text.codePointAt(start) ?? 0
    end += code > 0xffff ? 2 : 1
    let waiting = fold(code)
    while (waiting !== '') {
      const sign = waiting.charAt(0)
      waiting = waiting.slice(1)
      if (sign === '\\' || sign === '&') opener = signs.length
      signs.push(sign)
      starts.push(start)
      ends.push(end)
      if (signs.length - opener > longestEscape) continue
      const escape = escapeAtEnd(signs)
      if (escape === undefined) continue
      start = drop(escape.length)
      code = escape.code
      const before = signs.at(-1)?.charCodeAt(0) ?? 0
      if (isLow(code) && isHigh(before)) {
        start = drop(1)
        code = (before - 0xd800) * 0x400 + (code - 0xdc00) + 0x10000
      }
      waiting = fold(code) + waiting
    }
  }
  return { signs: signs.join(''), starts, ends }
}
