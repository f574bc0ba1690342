// The visible text of an HTML mail. Text that the mail hides from people must not reach an agent.
import { compile, type DomNode, type FormatCallback } from 'html-to-text'
import { removeHidden } from './shown.ts'

/** The maximum number of characters that are read. The parser needs a second for a few megabytes. */
const maxInputChars = 200_000

/** The name of the element around the whole mail. No mail can close it. */
const root = 'hookloom-mail'

/** Writes the whole mail without its hidden text. */
const mail: FormatCallback = (element, walk, builder) => {
  removeHidden(element)
  walk(element.children, builder)
}

/** The greatest number that the converter can write in Roman numerals. */
const maxRoman = 3_999

/** Numbers a list like a browser, but uses digits if a number is too great for Roman numerals or less than 1. */
const numberedList: FormatCallback = (element, walk, builder, options) => {
  const { attribs, children = [] } = element
  const start = Number.parseInt(attribs?.['start'] ?? '1', 10)
  const first = Number.isSafeInteger(start) ? start : 1
  const isWritable = first >= 1 && first + children.length <= maxRoman
  element.attribs = { ...attribs, start: String(first), type: (isWritable && attribs?.['type']) || '1' }
  findBuiltIn(builder, 'orderedList')(element, walk, builder, options)
}

/** A formatter of the library; the options contain all of them. */
function findBuiltIn(builder: Parameters<FormatCallback>[2], name: string): FormatCallback {
  const { [name]: format } = (builder.options as { formatters: Record<string, FormatCallback> }).formatters
  if (format === undefined) throw new TypeError(`html-to-text has no formatter ${name}`)
  return format
}

/** The maximum depth at which quotes and lists are shown as such. It is bounded because each level copies its text. */
const maxLevels = 16
const layers = new Set(['blockquote', 'ol', 'ul'])

function isTooDeep(element: DomNode): boolean {
  let levels = 0
  for (let outer = element.parent; outer !== null && outer !== undefined; outer = outer.parent) {
    if (layers.has(outer.name ?? '')) levels += 1
  }
  return levels >= maxLevels
}

/** Makes a formatter that writes a block with `format`, or without the marks of its quote or list if it is nested too deep. */
function limitLevels(format: FormatCallback): FormatCallback {
  return (element, walk, builder, options) => {
    if (isTooDeep(element)) findBuiltIn(builder, 'block')(element, walk, builder, {})
    else format(element, walk, builder, options)
  }
}

const bulletList: FormatCallback = (element, walk, builder, options) =>
  findBuiltIn(builder, 'unorderedList')(element, walk, builder, options)
const quote: FormatCallback = (element, walk, builder, options) =>
  findBuiltIn(builder, 'blockquote')(element, walk, builder, options)

/** Writes a link. A link inside a link becomes plain text, as in a browser. */
const link: FormatCallback = (element, walk, builder, options) => {
  let outer = element.parent
  while (outer !== null && outer !== undefined && outer.name !== 'a') outer = outer.parent
  findBuiltIn(builder, outer === null || outer === undefined ? 'anchor' : 'inline')(element, walk, builder, options)
}

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6']

const convert = compile({
  wordwrap: false,
  baseElements: { selectors: [root] },
  // without U+200B, which does not separate words
  whitespaceCharacters: ' \t\r\n\f',
  formatters: {
    mail,
    numberedList: limitLevels(numberedList),
    bulletList: limitLevels(bulletList),
    quote: limitLevels(quote),
    link,
  },
  selectors: [
    { selector: root, format: 'mail' },
    ...['img', 'template', 'noscript', 'title', 'object', 'iframe', 'svg', 'select', 'textarea'].map((selector) => ({
      selector,
      format: 'skip',
    })),
    ...headings.map((selector) => ({ selector, format: 'heading', options: { uppercase: false } })),
    { selector: 'ol', format: 'numberedList' },
    { selector: 'ul', format: 'bulletList' },
    { selector: 'blockquote', format: 'quote' },
    { selector: 'a', format: 'link', options: { hideLinkHrefIfSameAsText: true } },
  ],
  // deep enough for tables in tables; deeper nesting is an attack
  limits: { maxDepth: 300, maxChildNodes: 5_000 },
})

const closesRoot = new RegExp(`</?${root}`, 'gi')

/** `isCut`: the end was not read, because the input is too long or nested too deep. */
export function toVisibleText(html: string): { text: string; isCut: boolean } {
  const read = html.slice(0, findEnd(html))
  const whole = `<${root}>${read.replace(closesRoot, '<')}`
  return { text: tidyText(convert(whole)).trim(), isCut: read.length < html.length }
}

/** The maximum depth of open elements. A real mail has fewer, and the parser moves all of them for each new one. */
const maxOpen = 2_000

/** The end of the part that is read: at the maximum length, or where the maximum depth is exceeded. */
function findEnd(html: string): number {
  let open = 0
  for (const { 1: slash, index } of html
    .slice(0, maxInputChars)
    .matchAll(/<(\/?)(?!(?:br|img|hr|meta|link|wbr|input|col|li|p|td|tr|th)\b)[a-z]/gi)) {
    open = Math.max(0, open + (slash === '' ? 1 : -1))
    if (open > maxOpen) return index
  }
  return maxInputChars
}

const unseen =
  /\u034F|[\u00AD\u061C\u115F\u1160\u180E\u200B\u200C\u200E\u200F\u202A-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\u{E0000}-\u{E007F}]/gu

/** Removes invisible characters (soft hyphen, zero widths, fillers, direction marks, tags), blanks at the ends of lines, and all but one of several empty lines. */
export function tidyText(text: string): string {
  return (
    text
      .replace(unseen, '')
      // the search does not start in the middle of a run: otherwise it would take quadratic time
      .replace(/(?<![ \t\u00A0])[ \t\u00A0]+$/gm, '')
      .replace(/\n{3,}/g, '\n\n')
  )
}
