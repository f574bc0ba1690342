// A reply as text and ranges, for channels that know no markup (Signal).
import { plainText } from './markup.ts'
import { render, type Markup } from './markdown.ts'

export type Style = 'BOLD' | 'ITALIC' | 'STRIKETHROUGH' | 'MONOSPACE'

/** `start` and `length` in UTF-16 units of the text. */
export type StyleRange = { readonly start: number; readonly length: number; readonly style: Style }

const styles: readonly Style[] = ['BOLD', 'ITALIC', 'STRIKETHROUGH', 'MONOSPACE']
/** Code points that are no characters and never will be (Unicode, 23.7): one that opens a style and one that ends it. */
const firstMark = 0xfdd0
const marks = /[\uFDD0-\uFDD7]/g

function mark(style: Style, inner: string): string {
  const opening = firstMark + 2 * styles.indexOf(style)
  return `${String.fromCharCode(opening)}${inner}${String.fromCharCode(opening + 1)}`
}

const marked: Markup = {
  ...plainText,
  strong: (inner) => mark('BOLD', inner),
  emphasis: (inner) => mark('ITALIC', inner),
  strike: (inner) => mark('STRIKETHROUGH', inner),
  code: (plain) => mark('MONOSPACE', plain),
  block: (plain) => mark('MONOSPACE', plain),
  heading: (inner) => mark('BOLD', inner),
}

export function toStyled(markdown: string): { readonly text: string; readonly ranges: readonly StyleRange[] } {
  const written = render(markdown.replace(marks, ''), marked)
  const starts = new Map<Style, number[]>(styles.map((style) => [style, []]))
  const ranges: StyleRange[] = []
  let text = ''
  let at = 0
  for (const { 0: found, index } of written.matchAll(marks)) {
    text += written.slice(at, index)
    at = index + 1
    const place = found.charCodeAt(0) - firstMark
    const style = styles[Math.floor(place / 2)]
    const open = style === undefined ? undefined : starts.get(style)
    if (style === undefined || open === undefined) continue
    if (place % 2 === 0) {
      open.push(text.length)
      continue
    }
    const start = open.pop()
    if (start !== undefined && start < text.length) ranges.push({ start, length: text.length - start, style })
  }
  return { text: text + written.slice(at), ranges }
}
