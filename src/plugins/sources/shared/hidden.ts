// Finds the text that a style hides from the reader of a mail. Text of at most two pixels, or a hundred pixels outside the page, counts as
// hidden.
import { black, type Colour, isSameColour, readBackground, readColour, white } from './colours.ts'
import { type CssDeclarations, rankDeclarations } from './css.ts'

/** The style that an element inherits or sets. */
export type Appearance = {
  readonly fontPx: number
  /** `visibility`, which a nested element may override. */
  readonly isVisible: boolean
  readonly isTransparent: boolean
  readonly colour: Colour
  /** The colour behind the text. Undefined if it is a picture. */
  readonly background: Colour | undefined
}

export const defaultAppearance: Appearance = {
  fontPx: 16,
  isVisible: true,
  isTransparent: false,
  colour: black,
  background: white,
}

/** Whether text in an element with this style is visible. */
export function isTextVisible({ fontPx, isVisible, isTransparent, colour, background }: Appearance): boolean {
  const isSeen = background === undefined || !isSameColour(colour, background)
  return fontPx > minFontPx && isVisible && !isTransparent && isSeen
}

const minFontPx = 2
const minOpacity = 0.1
const offPagePx = 100
const farOffPx = 5_000

type Style = ReturnType<typeof rankDeclarations>

/** The style of an element inside another one. `styles`: the weakest first. Undefined if nothing in the element is visible. */
export function readAppearance(styles: readonly CssDeclarations[], parent: Appearance): Appearance | undefined {
  if (styles.length === 0) return parent
  const declared = rankDeclarations(styles)
  const fontPx = readFontPx(declared, parent.fontPx)
  if (isHidden(declared, fontPx)) return undefined
  const colour =
    read(declared, '-webkit-text-fill-color', readColour) ?? read(declared, 'color', readColour) ?? parent.colour
  const background =
    read(declared, 'background-color', (value) => (readTransparent(value) === true ? 'none' : readBackground(value))) ??
    'none'
  const hasPicture = read(declared, 'background-image', (value) => /url\(|gradient\(|image/.test(value)) === true
  return {
    fontPx,
    isVisible: read(declared, 'visibility', readVisible) ?? parent.isVisible,
    isTransparent: (read(declared, 'color', readTransparent) ?? parent.isTransparent) && !isTextBackground(declared),
    colour,
    background: hasPicture ? undefined : background === 'none' ? parent.background : background,
  }
}

/** The first value that `parse` accepts: a browser ignores invalid values. */
function read<T>(style: Style, name: string, parse: (value: string) => T | undefined): T | undefined {
  for (const value of style.get(name) ?? []) {
    const parsed = parse(value)
    if (parsed !== undefined) return parsed
  }
  return undefined
}

function isHidden(style: Style, fontPx: number): boolean {
  const isStyle = (name: string, parse: (value: string) => boolean | undefined) => read(style, name, parse) === true
  const readPx = (name: string) => read(style, name, (value) => readLength(value, fontPx))
  const isOffPage = (name: string) => {
    const length = readPx(name)
    return length !== undefined && (length <= -offPagePx || length >= farOffPx)
  }
  const isFarOff = (name: string) => Math.abs(readPx(name) ?? 0) >= farOffPx / 5
  if (isStyle('display', readDisplayNone) || isStyle('content-visibility', (value) => value === 'hidden')) return true
  if (isStyle('mso-hide', (value) => value === 'all')) return true
  if (isStyle('opacity', readFaint) || isStyle('filter', isFilteredOut)) return true
  if (isStyle('clip-path', isClippedAway) || isStyle('-webkit-clip-path', isClippedAway)) return true
  if (isStyle('transform', isTransformedAway) || isStyle('-webkit-transform', isTransformedAway)) return true
  if (isStyle('scale', (value) => isScaledAway(value.split(' '))) || isOffPage('text-indent')) return true
  if (isStyle('translate', (value) => isMovedAway(value.split(' '), fontPx))) return true
  if (['margin-left', 'margin-right', 'margin-top'].some((name) => (readPx(name) ?? 0) <= -farOffPx / 5)) return true
  const position = read(style, 'position', readPosition)
  // a relative position counts from the place where the text would be, which may be far inside the page
  const isAway = position === 'relative' ? isFarOff : isOffPage
  if (position !== undefined && position !== 'static' && ['left', 'right', 'top', 'bottom'].some(isAway)) return true
  if (position === 'absolute' && isStyle('clip', isClippedAway)) return true
  const isCut = ['overflow', 'overflow-x', 'overflow-y'].some((name) =>
    isStyle(name, (value) => /^(?:hidden|clip)/.test(value)),
  )
  const isThin = (side: string) =>
    [side, `max-${side}`].some((name) => (readPx(name) ?? 2) < 2) && (readPx(`min-${side}`) ?? 0) < 2
  return isCut && (isThin('height') || isThin('width'))
}

const displays =
  /^(?:block|inline|flex|grid|table|list-item|flow-root|contents|run-in|ruby|inherit|initial|unset|revert|-\w+-\w)/

// Where a function below returns undefined, the value is invalid, so a browser ignores it.

function readDisplayNone(value: string): boolean | undefined {
  return value === 'none' ? true : displays.test(value) ? false : undefined
}

function readVisible(value: string): boolean | undefined {
  if (value === 'hidden' || value === 'collapse') return false
  return value === 'visible' || value === 'initial' ? true : undefined
}

function readPosition(value: string): 'absolute' | 'relative' | 'static' | undefined {
  if (value === 'absolute' || value === 'fixed') return 'absolute'
  if (/^(?:relative|sticky|-webkit-sticky)$/.test(value)) return 'relative'
  return /^(?:static|inherit|initial|unset)$/.test(value) ? 'static' : undefined
}

function readFaint(value: string): boolean | undefined {
  const [, number = '', percent] = numberPattern.exec(value) ?? []
  if (number === '' || !['', '%'].includes(percent ?? '')) return undefined
  return Number(number) / (percent === '%' ? 100 : 1) < minOpacity
}

function isFilteredOut(value: string): boolean {
  return parseCalls(value).some(({ name, words }) => name === 'opacity' && readFaint(words[0] ?? '') === true)
}

/** A colour without an alpha value is opaque. */
function readTransparent(value: string): boolean | undefined {
  if (value === 'transparent') return true
  if (/^#[\da-f]+$/.test(value)) {
    if (value.length === 5) return value.endsWith('0')
    if (value.length === 9) return Number.parseInt(value.slice(7), 16) / 255 < minOpacity
    return value.length === 4 || value.length === 7 ? false : undefined
  }
  const [call] = parseCalls(value)
  if (call !== undefined) {
    const hasShare = /^(?:rgba?|hsla?|hwb|(?:ok)?l(?:ab|ch))$/.test(call.name) && call.words.length > 3
    return hasShare && readFaint(call.words[3] ?? '') === true
  }
  return value === 'initial' || readColour(value) !== undefined ? false : undefined
}

/** Whether the letters are transparent because they show a picture or a gradient. */
function isTextBackground(style: Style): boolean {
  return ['background-clip', '-webkit-background-clip'].some((name) => style.get(name)?.[0] === 'text')
}

/** Whether the visible shape has no area: `inset(50%)`, `circle(0)`, a polygon on one line, or `rect(0 0 0 0)` of the older `clip`. */
function isClippedAway(value: string): boolean {
  const [{ name, words } = { name: '', words: [] }] = parseCalls(value)
  const px = words.map((word) => readLength(word, defaultAppearance.fontPx))
  if (name === 'inset') {
    const [top = 0, right = top, bottom = top, left = right] = words.slice(0, 4).map((word) => toInsetPercent(word))
    return top + bottom >= 100 || left + right >= 100
  }
  if (name === 'circle' || name === 'ellipse') return px[0] === 0 || (name === 'ellipse' && px[1] === 0)
  const isThin = (from = 0, to = 2) => to - from < 2
  if (name === 'rect') return isThin(px[0], px[2] ?? Infinity) || isThin(px[3], px[1] ?? Infinity)
  if (name !== 'polygon') return false
  const corners = px.filter((length) => length !== undefined)
  return [0, 1].some((axis) => new Set(corners.filter((_, index) => index % 2 === axis)).size === 1)
}

/** How far an inset moves an edge, in percent: a thousand pixels count as 100 %. */
function toInsetPercent(word: string): number {
  return word.endsWith('%') ? Number.parseFloat(word) : (readLength(word, defaultAppearance.fontPx) ?? 0) / 10
}

function isTransformedAway(value: string): boolean {
  return parseCalls(value).some(({ name, words }) => {
    if (name === 'scale' || name === 'scale3d') return isScaledAway(words)
    if (name === 'scalex' || name === 'scaley') return isScaledAway(words.slice(0, 1))
    if (name === 'matrix') return isScaledAway([words[0] ?? '', words[3] ?? '']) && Number(words[1]) === 0
    if (name === 'rotatex' || name === 'rotatey') return /^-?(?:90deg|270deg|0?\.25turn|100grad)$/.test(words[0] ?? '')
    return name.startsWith('translate') && isMovedAway(words, defaultAppearance.fontPx)
  })
}

function isScaledAway(words: readonly string[]): boolean {
  return words.slice(0, 2).some((word) => {
    const [, number = '', unit] = numberPattern.exec(word) ?? []
    return number !== '' && Math.abs(Number(number)) / (unit === '%' ? 100 : 1) < minOpacity
  })
}

function isMovedAway(words: readonly string[], fontPx: number): boolean {
  return words.some((word) => Math.abs(readLength(word, fontPx) ?? 0) >= farOffPx / 5)
}

/** The size in `font-size`, or the first length in `font`. */
function readFontPx(style: Style, parentPx: number): number {
  const size = (value: string) => fontWords.get(value) ?? readLength(value, parentPx, parentPx)
  const ofFont = (value: string) =>
    value
      .split(' ')
      .map((word) => word.split('/')[0] ?? '')
      .filter((word) => !/^[1-9]\d*$/.test(word))
      .map(size)
      .find((px) => px !== undefined)
  return read(style, 'font-size', size) ?? read(style, 'font', ofFont) ?? parentPx
}

const fontWords = new Map([
  ['xx-small', 9],
  ['x-small', 10],
  ['small', 13],
  ['medium', 16],
  ['large', 18],
  ['x-large', 24],
  ['xx-large', 32],
  ['initial', 16],
])

const numberPattern = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)([a-z]*|%)$/
const unitPx = new Map([
  ['px', 1],
  ['pt', 4 / 3],
  ['pc', 16],
  ['in', 96],
  ['cm', 37.8],
  ['mm', 3.78],
  ['rem', 16],
  ...['vw', 'vh', 'vmin', 'vmax'].map((unit) => [unit, 10] as const),
])

/** A length in pixels. A percentage is a part of `wholePx`. Undefined if the text is no length: only 0 needs no unit. */
function readLength(value: string, fontPx: number, wholePx = offPagePx): number | undefined {
  const bare = value.startsWith('calc(') && value.endsWith(')') ? value.slice(5, -1).trim() : value
  const [, digits = '', unit = ''] = numberPattern.exec(bare) ?? []
  if (digits === '') return undefined
  const number = Number(digits)
  if (unit === '') return number === 0 ? 0 : undefined
  if (unit === '%') return (number * wholePx) / 100
  if (unit === 'em') return number * fontPx
  if (unit === 'ex' || unit === 'ch') return (number * fontPx) / 2
  const one = unitPx.get(unit)
  return one === undefined ? undefined : number * one
}

/** Parses calls such as `scale(0, 1) rotate(3deg)` into names with their arguments. */
function parseCalls(value: string): { readonly name: string; readonly words: readonly string[] }[] {
  return value.split(')').flatMap((part) => {
    const open = part.indexOf('(')
    if (open < 0) return []
    const words = part.slice(open + 1).split(/[ ,/]/)
    return [{ name: part.slice(0, open).trim(), words: words.filter((word) => word !== '') }]
  })
}
