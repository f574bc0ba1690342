// The text that a person sees in an HTML mail. What the mail hides from people must not reach an agent.
import { compile, type DomNode, type FormatCallback } from 'html-to-text'
import { type Look, plainLook, showsText, toLook } from './hidden.ts'

/** More than any letter has; the parser takes a second for a few megabytes. */
const longestInput = 200_000

/** The first element with a style on the way down: all below it is looked at once, and has no style any more when it is written. */
const unlessHidden: FormatCallback = (element, walk, builder) => {
  const look = toLook(takeStyle(element), plainLook)
  if (look === undefined) return
  dropHidden(element, look)
  walk([element], builder)
}

/** Takes out what is hidden in `top`. With a stack of its own: mails nest thousands of elements. */
function dropHidden(top: DomNode, topLook: Look): void {
  const open: [DomNode, Look][] = [[top, topLook]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [element, look] = next
    const isShown = showsText(look)
    // an address without words to click on would be written in their place
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

/** The style of an element, which loses it: its tag decides how it is written. */
function takeStyle({ attribs }: DomNode): string {
  const style = attribs?.['style'] ?? ''
  if (attribs !== undefined) delete attribs['style']
  return style
}

/** The greatest number that Roman numerals can write, and that the converter can. */
const mostRoman = 3_999

/** Numbers as a browser writes them: Roman numerals and letters only where there are such, and no number that is none. */
const numberedList: FormatCallback = (element, walk, builder, options) => {
  const { attribs, children = [] } = element
  const start = Number.parseInt(attribs?.['start'] ?? '1', 10)
  const first = Number.isSafeInteger(start) ? start : 1
  const isWritable = first >= 1 && first + children.length <= mostRoman
  element.attribs = { ...attribs, start: String(first), type: (isWritable && attribs?.['type']) || '1' }
  builtIn(builder, 'orderedList')(element, walk, builder, options)
}

/** A formatter of the library. All of them are among the options. */
function builtIn(builder: Parameters<FormatCallback>[2], name: string): FormatCallback {
  const { [name]: format } = (builder.options as { formatters: Record<string, FormatCallback> }).formatters
  if (format === undefined) throw new TypeError(`html-to-text has no formatter ${name}`)
  return format
}

/** Levels of quotes and lists that are shown as such. Each writes all of its text anew, so their number is bounded. */
const mostLevels = 16
const layers = new Set(['blockquote', 'ol', 'ul'])

function isTooDeep(element: DomNode): boolean {
  let levels = 0
  for (let outer = element.parent; outer !== null && outer !== undefined; outer = outer.parent) {
    if (layers.has(outer.name ?? '')) levels += 1
  }
  return levels >= mostLevels
}

/** As the converter writes it, and as a plain block where it lies too deep. */
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

/** A link in a link is none, as in a browser; and each would look at every word in it. */
const link: FormatCallback = (element, walk, builder, options) => {
  let outer = element.parent
  while (outer !== null && outer !== undefined && outer.name !== 'a') outer = outer.parent
  builtIn(builder, outer === null || outer === undefined ? 'anchor' : 'inline')(element, walk, builder, options)
}

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6']

const convert = compile({
  wordwrap: false,
  // not U+200B: a word that is padded with it is still one word
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
  // deep enough for tables in tables; deeper ones are somebody's attempt to be slow
  limits: { maxDepth: 300, maxChildNodes: 5_000 },
})

/** `isCut`: there was more than is looked at. */
export function toVisibleText(html: string): { text: string; isCut: boolean } {
  const read = html.slice(0, toEnd(html))
  return { text: dropInvisible(convert(read)).trim(), isCut: read.length < html.length }
}

/** More elements in one another than any letter has. The parser moves all that are open for each that is opened. */
const mostOpen = 2_000

/** As far as it is read: to the longest input, which the library would cut with a word on the console, or to what nests too deep. */
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

/** Without the characters that nobody sees: soft hyphen, zero widths, fillers, marks of direction, tags. */
export function dropInvisible(text: string): string {
  return (
    text
      .replace(unseen, '')
      // begun in the middle of a run, the search would take a time that grows with its square
      .replace(/(?<![ \t\u00A0])[ \t\u00A0]+$/gm, '')
      .replace(/\n{3,}/g, '\n\n')
  )
}
