// Renders the Markdown of a reply as elements. The model may have read an attacker's text: HTML stays text, a picture becomes a link, the target
// of a link is visible, and a text that would keep the lexer busy is not rendered as Markdown.
import { Lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import type { ComponentChildren, JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { markUnseen } from './format.ts'
import { LongText } from './text.tsx'

/**
 * The limits of a text that is rendered as Markdown. The lexer searches for the end of each delimiter in its block, and copies a block for each of
 * its lines, so the delimiters and the lines of a block are limited.
 */
const [maxChars, maxDelimiters, maxLines, maxWordChars] = [20_000, 600, 500, 2_048]
const tooDeep = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])){8}/m

function isBounded(text: string): boolean {
  return (
    text.length <= maxChars &&
    !tooDeep.test(text) &&
    text.split(/\n[ \t]*\n/).every((block) => {
      const delimiters = block.match(/[\\<![*_|]|[`~]+/g)?.length ?? 0
      return delimiters <= maxDelimiters && block.split('\n', maxLines + 1).length <= maxLines
    }) &&
    text.split(/\s+/).every((word) => word.length <= maxWordChars)
  )
}

function readTokens(text: string): readonly Token[] | undefined {
  try {
    return isBounded(text) ? new Lexer({ gfm: true }).lex(text) : undefined
  } catch {
    return undefined
  }
}

type MarkdownProps = { readonly text: string; readonly label: string; readonly most?: number }

/**
 * A reply as Markdown, with a button that shows the original text. `most`: only its beginning is shown, whole blocks with together at least so many
 * characters.
 */
export function Markdown({ text, label, most }: MarkdownProps): JSX.Element {
  const tokens = useMemo(() => readTokens(text), [text])
  const [isRaw, setRaw] = useState(false)
  if (most !== undefined) return <Beginning text={text} label={label} most={most} tokens={tokens} />
  if (tokens === undefined) return <LongText text={text} label={label} />
  return (
    <>
      {isRaw ? (
        <LongText text={text} label={label} />
      ) : (
        <div class="markdown" role="group" aria-label={label} tabIndex={0}>
          {tokens.map(renderBlock)}
        </div>
      )}
      <button type="button" class="link" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
        {isRaw ? 'as elements' : 'as it was written'}
      </button>
    </>
  )
}

type BeginningProps = Required<MarkdownProps> & { readonly tokens: readonly Token[] | undefined }

function Beginning({ text, label, most, tokens }: BeginningProps): JSX.Element {
  if (tokens === undefined)
    return <LongText text={text.length > most ? `${text.slice(0, most)}…` : text} label={label} />
  let chars = 0
  const count = tokens.findIndex(({ raw }) => (chars += raw.length) >= most) + 1
  const shown = count === 0 ? tokens : tokens.slice(0, count)
  const isCut = tokens.slice(shown.length).some(({ type }) => type !== 'space')
  return (
    <div class="markdown" role="group" aria-label={label} tabIndex={0}>
      {shown.map(renderBlock)}
      {isCut && <p class="dim">…</p>}
    </div>
  )
}

const renderAll = (tokens: readonly Token[] | undefined) => (tokens ?? []).map(renderInline)

function renderBlock(token: Token, key: number): ComponentChildren {
  // as: without extensions, the lexer returns only these tokens
  const one = token as MarkedToken
  switch (one.type) {
    case 'space':
    case 'def':
    case 'checkbox':
      return null
    case 'heading':
      // no heading element, because the headings of the page have higher levels
      return (
        <p key={key} class="heading">
          {renderAll(one.tokens)}
        </p>
      )
    case 'code':
      return (
        <pre key={key} tabIndex={0}>
          <bdi>{markUnseen(one.text)}</bdi>
        </pre>
      )
    case 'blockquote':
      return <blockquote key={key}>{one.tokens.map(renderBlock)}</blockquote>
    case 'list':
      return renderList(one, key)
    case 'table':
      return renderTable(one, key)
    case 'hr':
      return <hr key={key} />
    case 'paragraph':
      return <p key={key}>{renderAll(one.tokens)}</p>
    default:
      return <p key={key}>{renderInline(token, 0)}</p>
  }
}

function renderList({ ordered, items, start }: Tokens.List, key: number): JSX.Element {
  const drawn = items.map((item, at) => (
    <li key={at}>
      {item.task && (item.checked === true ? '☑ ' : '☐ ')}
      {item.tokens.map((each, index) => (each.type === 'text' ? renderInline(each, index) : renderBlock(each, index)))}
    </li>
  ))
  return ordered ? (
    <ol key={key} start={Number(start) || 1}>
      {drawn}
    </ol>
  ) : (
    <ul key={key}>{drawn}</ul>
  )
}

function renderTable({ header, rows }: Tokens.Table, key: number): JSX.Element {
  return (
    <table key={key}>
      <thead>
        <tr>
          {header.map(({ tokens }, at) => (
            <th scope="col" key={at}>
              {renderAll(tokens)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <tr key={at}>
            {row.map(({ tokens }, column) => (
              <td key={column}>{renderAll(tokens)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function renderInline(token: Token, key: number): ComponentChildren {
  // as: see `renderBlock`
  const one = token as MarkedToken
  switch (one.type) {
    case 'strong':
      return <strong key={key}>{renderAll(one.tokens)}</strong>
    case 'em':
      return <em key={key}>{renderAll(one.tokens)}</em>
    case 'del':
      return <s key={key}>{renderAll(one.tokens)}</s>
    case 'codespan':
      return <code key={key}>{markUnseen(one.text)}</code>
    case 'br':
      return <br key={key} />
    case 'link':
      return <Link key={key} href={one.href} said={one.text} />
    case 'image':
      return <Link key={key} href={one.href} said={`picture: ${one.text}`} />
    case 'escape':
      return markUnseen(one.text)
    case 'text':
      return one.tokens === undefined ? markUnseen(decodeEntities(one.text)) : renderAll(one.tokens)
    default:
      // HTML and unknown tokens stay text
      return markUnseen(token.raw)
  }
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const decodeEntities = (text: string) =>
  text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '')

/**
 * A link to http, https or mailto; any other link stays text. The target is shown next to the words, because the words may name another target.
 */
function Link({ href, said }: { href: string; said: string }): JSX.Element {
  const target = readTarget(href)
  const words = markUnseen(decodeEntities(said))
  if (target === undefined) {
    return (
      <>
        {words} <span class="dim">({markUnseen(href.slice(0, 300))})</span>
      </>
    )
  }
  return (
    <>
      <a href={target} target="_blank" rel="noopener noreferrer nofollow">
        <bdi>{words}</bdi>
      </a>
      {target !== said && (
        <span class="dim"> ({markUnseen(target.length > 300 ? `${target.slice(0, 300)}…` : target)})</span>
      )}
    </>
  )
}

function readTarget(href: string): string | undefined {
  const url = URL.parse(decodeEntities(href))
  return url !== null && /^(?:https?|mailto):$/.test(url.protocol) && url.username === '' && url.password === ''
    ? url.href
    : undefined
}
