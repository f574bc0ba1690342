// Writes the Markdown of a reply in the markup of a channel. The model may have read an attacker's text, so only markup that is written
// here becomes active. HTML and pictures are shown as text and links, never interpreted.
import type { TextFormat } from '../../../model/channel.ts'
import { Lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import { isMisleading, toSafeHref, toAddressWithoutUser, foldForReading } from './links.ts'
import { decodeEntities, removeBidiControls } from './entities.ts'

/** How a channel writes the elements of Markdown. `plain` is visible text; `inner` is already markup of the channel. */
export type Markup = {
  /** `source`: its Markdown, as it was in the reply. */
  text(plain: string, source?: string): string
  /** A whole message without markup. Default: `text`. */
  plain?(text: string): string
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

/** Escapes the signs of Markdown in a text. */
export function escapeMarkdown(plain: string): string {
  return plain.replace(/[[\]!*_`~\\|]/g, '\\$&')
}

/** Matches a line in 16 nested quotes or lists. People write nothing deeper, and the lexer can still parse this depth. */
const tooDeep = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])){16}/m

// The lexer searches the rest of the text for the end of each delimiter, and copies a paragraph for each of its lines. Without these bounds, its
// work would grow with the square of the length of the text. With them, the work grows with the length.
const delimiter = /[\\<![*_]|[`~]+/g
/** The maximum number of delimiters in one paragraph, item or cell. */
const maxDelimiters = 600
/** The maximum length of an address. Browsers do not accept a longer one. */
const maxAddressChars = 2_048
/** The maximum number of lines without a blank line. */
const maxLines = 2_000

/** Shows a text beyond the bounds as plain text. */
class BoundedLexer extends Lexer {
  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    const isBounded =
      Array.from(source.matchAll(delimiter)).length <= maxDelimiters &&
      Array.from(source.matchAll(/[^\s<]+/g)).every(([word]) => word.length <= maxAddressChars)
    if (isBounded) return super.inlineTokens(source, tokens)
    // HTML is shown, never interpreted
    tokens.push({ type: 'html', raw: source, text: source, inLink: false, inRawBlock: false, block: false })
    return tokens
  }
}

function isTooLong(markdown: string): boolean {
  let lines = 0
  for (const line of markdown.split('\n')) {
    lines = line.trim() === '' ? 0 : lines + 1
    if (lines > maxLines) return true
  }
  return false
}

/** Writes a text in the markup of a channel. */
export function render(reply: string, markup: Markup, format: TextFormat = 'markdown'): string {
  const markdown = removeBidiControls(reply)
  if (format === 'plain') return (markup.plain ?? markup.text)(breakAddresses(markdown))
  const written = tooDeep.test(markdown) || isTooLong(markdown) ? undefined : tryRender(markdown, markup)
  // if nothing of a reply is visible, its source is sent, because an empty message cannot be sent
  return written === undefined || written === '' ? markup.text(breakUsers(markdown)) : written
}

/** Undefined if the lexer throws, at a deep nesting and at some quotes in lists: such a reply is sent as it is, and not lost. */
function tryRender(markdown: string, markup: Markup): string | undefined {
  try {
    return renderBlocks(new BoundedLexer({ gfm: true }).lex(markdown), markup, '\n\n')
      .replace(/^\n+/, '')
      .trimEnd()
  } catch {
    return undefined
  }
}

function renderBlocks(tokens: readonly Token[], markup: Markup, between: string): string {
  return tokens
    .map((token) => renderBlock(toMarkedToken(token), markup))
    .filter((written) => written !== '')
    .join(between)
}

function renderBlock(token: MarkedToken, markup: Markup): string {
  switch (token.type) {
    case 'space':
    case 'checkbox':
      return ''
    case 'heading':
      return markup.heading(renderInline(token.tokens, markup), token.depth)
    case 'paragraph':
      return renderInline(token.tokens, markup)
    case 'code':
      return markup.block(token.text, /^[\w+#.-]{1,32}/.exec(token.lang ?? '')?.[0] ?? '')
    case 'blockquote':
      return markup.quote(renderBlocks(token.tokens, markup, '\n\n'))
    case 'list':
      return renderList(token, markup)
    case 'table':
      return [token.header, ...token.rows]
        .map((row) => row.map((cell) => renderInline(cell.tokens, markup)).join(markup.text(' | ', ' | ')))
        .join('\n')
    case 'hr':
      return markup.rule
    case 'html':
    case 'def':
      return markup.text(breakUsers(token.raw.trim()))
    default:
      return renderInline([token], markup)
  }
}

function renderList({ items, ordered, start, loose }: Tokens.List, markup: Markup): string {
  const between = loose ? '\n\n' : '\n'
  return items
    .map((item, index) => {
      const marker = ordered ? `${(start === '' ? 1 : start) + index}.` : markup.bullet
      const box = item.task ? (item.checked === true ? '[x] ' : '[ ] ') : ''
      const indent = ' '.repeat(marker.length + 1)
      return `${marker} ${box}${renderBlocks(item.tokens, markup, between).replace(/\n(?!\n|$)/g, `\n${indent}`)}`
    })
    .join(between)
}

/** A text as it is read, and its Markdown; or what is written already. */
type Part = { readonly text: string; readonly source: string } | string

/** Texts that follow each other are written as one: in `[a]![(b](x)`, the text of the picture becomes the target of a link if each is written alone. */
function renderInline(tokens: readonly Token[], markup: Markup): string {
  let written = ''
  let [text, source] = ['', '']
  for (const part of [...toParts(tokens, markup), '']) {
    if (typeof part !== 'string') {
      text += part.text
      source += part.source
      continue
    }
    // an address that the parts made, and that the lexer did not see, would take in the code or the link after it
    const breakLast = (plain: string) => (/^\S/.test(part) ? plain.replace(/(?<!\S)\S+$/, breakAddresses) : plain)
    if (text !== '') written += markup.text(breakLast(breakUsers(text)), breakLast(breakUsers(source)))
    ;[text, source] = ['', '']
    // after an exclamation mark, a link would be a remote picture
    written += written.endsWith('!') && part.startsWith('[') ? `\u200B${part}` : part
  }
  return written
}

function toParts(tokens: readonly Token[], markup: Markup): Part[] {
  return tokens.flatMap((token, at) => {
    const span = toMarkedToken(token)
    if (span.type !== 'link' && span.type !== 'image') return toSimpleParts(span, markup)
    const neighbours = [tokens.slice(Math.max(0, at - 1), at), tokens.slice(at + 1, at + 2)] as const
    const [before, after] = neighbours.map(readVisibleText)
    return toLinkParts(span, markup, [before ?? '', after ?? ''])
  })
}

function toSimpleParts(token: MarkedToken, markup: Markup): readonly Part[] {
  switch (token.type) {
    case 'text':
      return token.tokens === undefined ? [readText(token.raw, token.text)] : toParts(token.tokens, markup)
    case 'escape':
      return [{ text: token.text, source: token.raw }]
    case 'strong':
      return [markup.strong(renderInline(token.tokens, markup))]
    case 'em':
      return [markup.emphasis(renderInline(token.tokens, markup))]
    case 'del':
      return [markup.strike(renderInline(token.tokens, markup))]
    case 'codespan':
      return [markup.code(token.text)]
    case 'br':
      return ['\n']
    case 'checkbox':
      return []
    default:
      return [{ text: token.raw, source: escapeMarkdown(token.raw) }]
  }
}

/** A chat that decodes entities would read more in the source than was checked here. */
function readText(raw: string, text: string): Part {
  const decoded = decodeEntities(raw)
  return decoded === raw ? { text, source: raw } : { text: decoded, source: escapeMarkdown(decoded) }
}

/** Breaks all addresses, of pages and of mail, because chats turn them into links. */
function breakAddresses(plain: string): string {
  return plain.replace(/[a-z]:(?=[/\\]{2})|mailto:|www(?=\.)|@/gi, '$&\u200B')
}

/** Breaks addresses with a user name, because chats turn addresses into links: https://bank.example@evil.example leads to evil.example. */
function breakUsers(plain: string): string {
  return plain.replace(/https?:[/\\]*[^\s/\\?#]+/gi, (start) => start.replaceAll('@', '@\u200B'))
}

/**
 * Writes a link. Its target is shown if its text names another host, or is invisible. `before` and `after` are the visible text next to it: in
 * `bank.example[/login](…)` the link is a part of the name.
 */
function toLinkParts(
  { href, tokens }: Tokens.Link | Tokens.Image,
  markup: Markup,
  [before, after]: readonly [string, string],
): readonly Part[] {
  // a link or a picture inside a link becomes text, so that each text has only one target
  const own = removeLinks(tokens)
  const seen = readVisibleText(own)
  const target = decodeEntities(href)
  const address = toSafeHref(target)
  if (address !== undefined && foldForReading(seen).trim() === '') return [markup.link(markup.text(address), address)]
  const shown = address ?? toAddressWithoutUser(target)
  if (
    shown !== undefined &&
    isMisleading(completeWords(before.slice(-maxNeighbourChars), seen, after.slice(0, maxNeighbourChars)), shown)
  ) {
    return [...toParts(own, markup), ` (${markup.link(markup.text(shown), shown)})`]
  }
  return address === undefined ? toParts(own, markup) : [markup.link(renderInline(own, markup), address)]
}

/** The length of the neighbouring text that is checked: a host name has at most 253 characters. */
const maxNeighbourChars = 300

/** The text, completed to whole words at both ends. */
function completeWords(before: string, seen: string, after: string): string {
  return `${/\S*$/.exec(before)?.[0] ?? ''}${seen}${/^\S*/.exec(after)?.[0] ?? ''}`
}

function removeLinks(tokens: readonly Token[]): readonly Token[] {
  return tokens.flatMap((token) => {
    if (!('tokens' in token) || token.tokens === undefined) return [token]
    const own = removeLinks(token.tokens)
    return token.type === 'link' || token.type === 'image' ? own : [{ ...token, tokens: [...own] }]
  })
}

/** The visible text, without markup. */
function readVisibleText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      if ('tokens' in token && token.tokens !== undefined) return readVisibleText(token.tokens)
      return token.type === 'codespan' || token.type === 'escape' ? String(token.text) : token.raw
    })
    .join('')
}

function toMarkedToken(token: Token): MarkedToken {
  // as: without extensions the lexer has no other tokens
  return token as MarkedToken
}
