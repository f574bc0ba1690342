// A reply's Markdown in another writing. The text is a model's, who may have read an attacker's: nothing in it becomes active
// but what a flavour writes itself. HTML and pictures are shown as text and as links, never interpreted.
import { Lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import { isDisguised, toAddress } from './addresses.ts'

/** How a channel writes what Markdown means. `plain` is text as it is to be seen; all else is written already. */
export type Flavour = {
  /** `source` is how the reply's own Markdown wrote it, where that is safe as Markdown. */
  text(plain: string, source?: string): string
  strong(inner: string): string
  emphasis(inner: string): string
  strike(inner: string): string
  code(plain: string): string
  block(plain: string, language: string): string
  /** An http, https or mailto address; `inner` may be the address itself. */
  link(inner: string, address: string): string
  heading(inner: string, depth: number): string
  quote(inner: string): string
  readonly bullet: string
  readonly rule: string
}

/** Deeper than people write, and deeper than the lexer can go for as long as an attacker can write. */
const tooDeep = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])){16}/m

export function render(markdown: string, flavour: Flavour): string {
  const written = tooDeep.test(markdown) ? undefined : tryRender(markdown, flavour)
  // what renders to nothing is shown as it was written, rather than sent as an empty message
  return written === undefined || written === '' ? flavour.text(markdown) : written
}

function tryRender(markdown: string, flavour: Flavour): string | undefined {
  try {
    return blocks(new Lexer({ gfm: true }).lex(markdown), flavour, '\n\n')
      .replace(/^\n+/, '')
      .trimEnd()
  } catch (thrown) {
    // too deep after all
    if (thrown instanceof RangeError) return undefined
    throw thrown
  }
}

function blocks(tokens: readonly Token[], flavour: Flavour, between: string): string {
  return tokens
    .map((token) => block(known(token), flavour))
    .filter((written) => written !== '')
    .join(between)
}

function block(token: MarkedToken, flavour: Flavour): string {
  switch (token.type) {
    case 'space':
    case 'checkbox':
      return ''
    case 'heading':
      return flavour.heading(inline(token.tokens, flavour), token.depth)
    case 'paragraph':
      return inline(token.tokens, flavour)
    case 'code':
      return flavour.block(token.text, /^[\w+#.-]{1,32}/.exec(token.lang ?? '')?.[0] ?? '')
    case 'blockquote':
      return flavour.quote(blocks(token.tokens, flavour, '\n\n'))
    case 'list':
      return list(token, flavour)
    case 'table':
      return [token.header, ...token.rows]
        .map((row) => row.map((cell) => inline(cell.tokens, flavour)).join(flavour.text(' | ', ' | ')))
        .join('\n')
    case 'hr':
      return flavour.rule
    case 'html':
    case 'def':
      return flavour.text(token.raw.trim())
    default:
      return inline([token], flavour)
  }
}

function list({ items, ordered, start, loose }: Tokens.List, flavour: Flavour): string {
  const between = loose ? '\n\n' : '\n'
  return items
    .map((item, index) => {
      const marker = ordered ? `${Number(start || 1) + index}.` : flavour.bullet
      const box = item.task ? (item.checked === true ? '[x] ' : '[ ] ') : ''
      const indent = ' '.repeat(marker.length + 1)
      return `${marker} ${box}${blocks(item.tokens, flavour, between).replace(/\n(?!\n|$)/g, `\n${indent}`)}`
    })
    .join(between)
}

function inline(tokens: readonly Token[], flavour: Flavour): string {
  return tokens.map((token) => span(known(token), flavour)).join('')
}

function span(token: MarkedToken, flavour: Flavour): string {
  switch (token.type) {
    case 'text':
      return token.tokens === undefined ? flavour.text(decode(token.text), token.raw) : inline(token.tokens, flavour)
    case 'escape':
      return flavour.text(token.text, token.raw)
    case 'strong':
      return flavour.strong(inline(token.tokens, flavour))
    case 'em':
      return flavour.emphasis(inline(token.tokens, flavour))
    case 'del':
      return flavour.strike(inline(token.tokens, flavour))
    case 'codespan':
      return flavour.code(token.text)
    case 'br':
      return '\n'
    case 'link':
    case 'image':
      return link(token, flavour)
    case 'checkbox':
      return ''
    default:
      return flavour.text(token.raw)
  }
}

function link({ text, href, tokens }: Tokens.Link | Tokens.Image, flavour: Flavour): string {
  const inner = inline(tokens, flavour)
  const address = toAddress(href)
  if (address === undefined) return inner
  if (inner === '') return flavour.link(flavour.text(address), address)
  // text that names another host than the one it leads to
  if (isDisguised(text, address)) return `${inner} (${flavour.link(flavour.text(address), address)})`
  return flavour.link(inner, address)
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: '\u00A0' }

/** The entities that models write. Others are shown as they are written. */
function decode(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (entity, name: string) => entities[name] ?? entity)
}

function known(token: Token): MarkedToken {
  // without extensions the lexer makes no other tokens
  return token as MarkedToken
}
