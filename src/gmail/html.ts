// The text that a person sees in an HTML mail. What the mail hides from people must not reach an agent.
import { compile, type FormatCallback } from 'html-to-text'

/** More than any letter has; the parser takes a second for a few megabytes. */
const longestInput = 200_000

/** A hidden element and all below it say nothing; of a shown one the attributes go, so that its tag decides how it looks. */
const unlessHidden: FormatCallback = (element, walk, builder) => {
  // the library hands out its nodes untyped
  const attributes = element.attribs as Record<string, string>
  if (isHidden(attributes)) return
  element.attribs = Object.fromEntries(
    Object.entries(attributes).filter(([name]) => name !== 'style' && name !== 'width' && name !== 'height'),
  )
  walk([element], builder)
}

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6']

const convert = compile({
  wordwrap: false,
  // not U+200B: a word that is padded with it is still one word
  whitespaceCharacters: ' \t\r\n\f',
  formatters: { unlessHidden },
  selectors: [
    { selector: '[hidden]', format: 'skip' },
    { selector: '[style]', format: 'unlessHidden' },
    ...['img', 'template', 'noscript', 'title', 'object', 'iframe', 'svg', 'select', 'textarea'].map((selector) => ({
      selector,
      format: 'skip',
    })),
    ...headings.map((selector) => ({ selector, format: 'heading', options: { uppercase: false } })),
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true } },
  ],
  // deep enough for tables in tables; deeper ones are somebody's attempt to be slow
  limits: { maxDepth: 300, maxChildNodes: 5_000 },
})

/** `isCut`: there was more than is looked at. */
export function toVisibleText(html: string): { text: string; isCut: boolean } {
  // the library would cut it too, and say so on the console
  const text = convert(html.slice(0, longestInput))
  return { text: dropInvisible(text).trim(), isCut: html.length > longestInput }
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

const hiding: Readonly<Record<string, (value: string) => boolean>> = {
  display: (value) => value.startsWith('none'),
  visibility: (value) => /^(hidden|collapse)/.test(value),
  'font-size': (value) => /^0*\.?0*(px|pt|em|rem|ex|%|$|!)/.test(value) || /^0?\.\d|^1px|^1pt/.test(value),
  opacity: (value) => /^0(\.0\d*)?(%|$|!)/.test(value),
  color: (value) => value.startsWith('transparent'),
  'mso-hide': (value) => value.startsWith('all'),
  'text-indent': (value) => /^-\d{3,}/.test(value),
  left: (value) => /^-\d{3,}/.test(value),
  top: (value) => /^-\d{3,}/.test(value),
  clip: (value) => value.startsWith('rect(0'),
}

function isHidden(attributes: Readonly<Record<string, string>>): boolean {
  if (attributes['hidden'] !== undefined) return true
  const style = toDeclarations(attributes['style'] ?? '')
  const isNothing = (name: string) => /^0(px|pt|em|%|$|!)/.test(style.get(name) ?? '')
  if (style.get('overflow')?.startsWith('hidden') === true) {
    if (['height', 'max-height', 'width', 'max-width'].some(isNothing)) return true
  }
  return [...style].some(([name, value]) => Object.hasOwn(hiding, name) && hiding[name]?.(value) === true)
}

/** Of a name that stands twice, the last one counts, as in a browser. */
function toDeclarations(style: string): Map<string, string> {
  const plain = style.toLowerCase().replace(/\/\*[^]*?\*\//g, '')
  return new Map(
    plain.split(';').flatMap((declaration) => {
      const colon = declaration.indexOf(':')
      return colon < 0 ? [] : [[declaration.slice(0, colon).trim(), declaration.slice(colon + 1).trim()] as const]
    }),
  )
}
