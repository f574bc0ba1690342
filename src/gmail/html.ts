// The visible text of an HTML mail. Text that the mail hides from people must not reach an agent.
import { compile, type DomNode, type FormatCallback } from 'html-to-text'
import { type Look, plainLook, showsText, toLook } from './hidden.ts'

/** More than a real mail has; the parser needs a second for a few megabytes. */
const longestInput = 200_000

/** Handles the first element with a style on the way down: everything below it is checked once and loses its style. */
const unlessHidden: FormatCallback = (element, walk, builder) => {
  const look = toLook(takeStyle(element), plainLook)
  if (look === undefined) return
  dropHidden(element, look)
  walk([element], builder)
}

/** Removes the hidden elements in `top`. It uses an explicit stack, because mails nest thousands of elements. */
function dropHidden(top: DomNode, topLook: Look): void {
  const open: [DomNode, Look][] = [[top, topLook]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [element, look] = next
    const isShown = showsText(look)
    // for a link without text, its address would be written
    if (!isShown && element.attribs !== undefined) delete element.attribs['href']
    const kept: DomNode[] = []
    for (const child of element.children ?? []) {
      if (child.type === 'text') {
        if (isShown || (child.data ?? '').trim() === '') kept.push(child)
        continue
      }
      const style = takeStyle(child)
      const childLook = style === '' ? look : toLook(style, look)
      if (childLook === undefined) continue
      kept.push(child)
      open.push([child, childLook])
    }
    if (element.children !== undefined) element.children = kept
  }
}

/** Takes the style from an element, so that only its tag decides how it is written. */
function takeStyle({ attribs }: DomNode): string {
  const style = attribs?.['style'] ?? ''
  if (attribs !== undefined) delete attribs['style']
  return style
}

/** The greatest number that the converter can write in Roman numerals. */
const mostRoman = 3_999

/** List numbers as a browser writes them, only within the range of each numbering. */
const numberedList: FormatCallback = (element, walk, builder, options) => {
  const { attribs, children = [] } = element
  const start = Number.parseInt(attribs?.['start'] ?? '1', 10)
  const first = Number.isSafeInteger(start) ? start : 1
  const isWritable = first >= 1 && first + children.length <= mostRoman
  element.attribs = { ...attribs, start: String(first), type: (isWritable && attribs?.['type']) || '1' }
  builtIn(builder, 'orderedList')(element, walk, builder, options)
}

/** A formatter of the library; the options contain all of them. */
function builtIn(builder: Parameters<FormatCallback>[2], name: string): FormatCallback {
  const { [name]: format } = (builder.options as { formatters: Record<string, FormatCallback> }).formatters
  if (format === undefined) throw new TypeError(`html-to-text has no formatter ${name}`)
  return format
}

/** Levels of quotes and lists that are shown as such. Each level copies its text, so their number is bounded. */
const mostLevels = 16
const layers = new Set(['blockquote', 'ol', 'ul'])

function isTooDeep(element: DomNode): boolean {
  let levels = 0
  for (let outer = element.parent; outer !== null && outer !== undefined; outer = outer.parent) {
    if (layers.has(outer.name ?? '')) levels += 1
  }
  return levels >= mostLevels
}

/** Written by the converter, or as a plain block if it is nested too deep. */
function upToLevels(format: FormatCallback): FormatCallback {
  return (element, walk, builder, options) => {
    if (isTooDeep(element)) builtIn(builder, 'block')(element, walk, builder, {})
    else format(element, walk, builder, options)
  }
}

const bulletList: FormatCallback = (element, walk, builder, options) =>
  builtIn(builder, 'unorderedList')(element, walk, builder, options)
const quote: FormatCallback = (element, walk, builder, options) =>
  builtIn(builder, 'blockquote')(element, walk, builder, options)

/** A link inside a link is plain text, as in a browser. */
const link: FormatCallback = (element, walk, builder, options) => {
  let outer = element.parent
  while (outer !== null && outer !== undefined && outer.name !== 'a') outer = outer.parent
  builtIn(builder, outer === null || outer === undefined ? 'anchor' : 'inline')(element, walk, builder, options)
}

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6']

const convert = compile({
  wordwrap: false,
  // not U+200B: a word with it inside is still one word
  whitespaceCharacters: ' \t\r\n\f',
  formatters: {
    unlessHidden,
    numberedList: upToLevels(numberedList),
    bulletList: upToLevels(bulletList),
    quote: upToLevels(quote),
    link,
  },
  selectors: [
    { selector: '[hidden]', format: 'skip' },
    { selector: '[style]', format: 'unlessHidden' },
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

/** `isCut`: the input was longer than the limit. */
export function toVisibleText(html: string): { text: string; isCut: boolean } {
  const read = html.slice(0, toEnd(html))
  return { text: dropInvisible(convert(read)).trim(), isCut: read.length < html.length }
}

/** Deeper nesting than a real mail has. For each new element the parser moves all open ones. */
const mostOpen = 2_000

/** The part that is read: up to the longest input, which the library would cut with a console message, or up to the deepest nesting. */
function toEnd(html: string): number {
  let open = 0
  for (const { 1: slash, index } of html
    .slice(0, longestInput)
    .matchAll(/<(\/?)(?!(?:br|img|hr|meta|link|wbr|input|col|li|p|td|tr|th)\b)[a-z]/gi)) {
    open = Math.max(0, open + (slash === '' ? 1 : -1))
    if (open > mostOpen) return index
  }
  return longestInput
}

const unseen =
  /\u034F|[\u00AD\u061C\u115F\u1160\u180E\u200B\u200C\u200E\u200F\u202A-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\u{E0000}-\u{E007F}]/gu

/** Removes invisible characters: soft hyphen, zero widths, fillers, direction marks, tags. */
export function dropInvisible(text: string): string {
  return (
    text
      .replace(unseen, '')
      // if it started in the middle of a run, the search would take quadratic time
      .replace(/(?<![ \t\u00A0])[ \t\u00A0]+$/gm, '')
      .replace(/\n{3,}/g, '\n\n')
  )
}
