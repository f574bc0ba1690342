// Templates. They are parsed once and rendered in linear time. Text in a value is never rendered again.
import { cut } from '../../base/text.ts'
import { Problem } from '../model/problem.ts'
import { matchAt, type Path, type PathFault, parsePath, readPath, toExcerpt } from '../model/path.ts'
import type { SentValue } from '../../base/json.ts'
import { stringify } from '../../base/sent-json.ts'
import { SentNumber } from '../../base/sent-number.ts'

/** The values that a template can read. */
export type TemplateScope = {
  /** Throws `body-invalid` if the body was left to a transform and is invalid. */
  readonly payload: () => SentValue
  /** The text of a text or XML body; undefined for any other body. Throws `body-invalid`. */
  readonly bodyText?: () => string | undefined
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly path: string
  readonly source: string | undefined
  readonly event: string | undefined
  /** The time of the delivery, ISO 8601. */
  readonly now: () => string
}

export type Template = {
  /** `escape` changes each value, and not the text around it. */
  render(scope: TemplateScope, escape?: (value: string) => string): string
  /** True: it has no placeholder and always renders the same text. */
  readonly isStatic: boolean
  /** True: text that is not blank comes before the first placeholder, so the sender cannot choose the beginning. */
  readonly startsWithLiteral: boolean
  /** Whether a placeholder reads the payload. All others read only the head of the request. */
  readonly readsPayload: boolean
  /** The placeholders of the payload, if all of them are empty and one of them has no default. Otherwise none. */
  listEmpty(scope: TemplateScope): readonly string[]
}

type Read = (scope: TemplateScope) => SentValue | undefined

/**
 * Compiles `Opened by {{sender.login | default: "somebody"}}: {{issue.title | truncate: 80}}`.
 *
 * - `payload.x`, `headers.<name>` (any case), `query.<name>`, and, on their own, `payload` (all of it, as JSON), `path`, `source`,
 *   `event`, `now`. Any other path is read in the payload, including `event.type`; payload fields with one of those names are
 *   `payload.event` and so on. For a text or XML body, `body` is the text. `headers` and `query` need a name: templates never print all of
 *   them. A key with other characters is in brackets and quotes: `fields["System.Title"]`, `query['a[b]']`. In quotes, `|` and `}}` are text.
 * - Missing and null values are empty. Strings stay the same. Numbers, booleans, objects and arrays become JSON, with the
 *   digits of each number as they were sent.
 * - `default: "text"` replaces an empty text. It takes double or single quotes, with `\\ \" \' \n \t`.
 * - `truncate: n` keeps at most n UTF-16 units, the last one an ellipsis if the text was cut, and never half a character.
 *
 * Throws `config-invalid` with the column, what was expected and what was found. Tags of other template languages, such as
 * `{{#if x}}` and `{{else}}`, are such an error: `{{payload.else}}` reads a field with that name.
 */
export function compileTemplate(text: string): Template {
  const reads: ((scope: TemplateScope) => string)[] = []
  const literals: string[] = []
  const fields: { readonly name: string; readonly read: Read; readonly hasDefault: boolean }[] = []
  let at = 0
  for (;;) {
    const open = text.indexOf('{{', at)
    if (open < 0) break
    literals.push(text.slice(at, open))
    const { expression, start, filters, end } = parsePlaceholder(text, open)
    const createFault: PathFault = (index, expected) => faultAt(text, start + index, expected)
    const readHead = readHeadExpression(expression, createFault)
    const read = readHead ?? parsePayloadExpression(expression, createFault)
    if (readHead === undefined) fields.push({ name: expression, read, hasDefault: hasDefault(filters) })
    reads.push(
      filters.reduce<(scope: TemplateScope) => string>(
        (before, filter) => (scope) => filter(before(scope)),
        (scope) => toText(read(scope)),
      ),
    )
    at = end
  }
  const [first = '', ...rest] = [...literals, text.slice(at)]
  return {
    isStatic: reads.length === 0,
    startsWithLiteral: first.trim() !== '',
    readsPayload: fields.length > 0,
    listEmpty(scope) {
      if (fields.every((field) => field.hasDefault)) return []
      return fields.every(({ read }) => toText(read(scope)) === '') ? fields.map(({ name }) => name) : []
    },
    render(scope, escape = (value) => value) {
      let rendered = first
      for (let i = 0; i < reads.length; i += 1) {
        rendered += escape((reads[i]?.(scope) ?? '').toWellFormed()) + (rest[i] ?? '')
      }
      return rendered
    },
  }
}

/** A path in the payload that a placeholder reads. `hasDefault`: a missing value is expected. */
export type ReadPath = { readonly text: string; readonly path: Path; readonly hasDefault: boolean }

/** The paths in the payload that a template reads. `{{body}}` is left out: it may be the whole text. Throws as `compileTemplate` does. */
export function listReadPaths(text: string): ReadPath[] {
  const found: ReadPath[] = []
  for (let open = text.indexOf('{{'); open >= 0;) {
    const { expression, start, filters, end } = parsePlaceholder(text, open)
    const createFault: PathFault = (index, expected) => faultAt(text, start + index, expected)
    if (expression !== 'body' && readHeadExpression(expression, createFault) === undefined) {
      const path = parsePayloadPath(expression, createFault)
      found.push({ text: expression, path, hasDefault: hasDefault(filters) })
    }
    open = text.indexOf('{{', end)
  }
  return found
}

function hasDefault(filters: readonly Filter[]): boolean {
  return filters.some((filter) => filter('') !== '')
}

function toText(value: SentValue | undefined): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  return typeof value === 'object' && !(value instanceof SentNumber) ? stringify(value) : String(value)
}

/** Reads the head of a request; undefined if the expression names a field of the payload. */
function readHeadExpression(expression: string, createFault: PathFault): Read | undefined {
  switch (expression) {
    case 'path':
      return (scope) => scope.path
    case 'source':
      return (scope) => scope.source
    case 'event':
      return (scope) => scope.event
    case 'now':
      return (scope) => scope.now()
  }
  const [, root] = /^(headers|query)(?=$|[.[])/.exec(expression) ?? []
  if (root === undefined) return undefined
  const entry = parseEntryName(expression, root, createFault)
  return root === 'headers' ? readHeader(entry.toLowerCase()) : (scope) => ownText(scope.query, entry)
}

/** The name in `query.ids[]` or `query["ids[]"]`: after a dot, it may have any characters. */
function parseEntryName(expression: string, root: string, createFault: PathFault): string {
  const example = root === 'headers' ? '.x-github-event' : '.topic'
  if (expression[root.length] === '.') {
    const entry = expression.slice(root.length + 1)
    if (entry === '') throw createFault(expression.length, `a name, as in {{${root}${example}}}`)
    return entry
  }
  const [, entry, ...more] = /^\w+\[\s*["']/.test(expression) ? parsePath(expression, createFault) : []
  if (typeof entry === 'string' && more.length === 0) return entry
  const expected = `one of the ${root}, as in {{${root}${example}}} (a payload field: {{payload.${root}}})`
  throw createFault(root.length, expected)
}

function parsePayloadExpression(expression: string, createFault: PathFault): Read {
  const inside = parsePayloadPath(expression, createFault)
  // a field of JSON, or the whole text of a body that has no fields
  if (expression === 'body') return (scope) => scope.bodyText?.() ?? readPath(scope.payload(), inside)
  return (scope) => readPath(scope.payload(), inside)
}

function parsePayloadPath(expression: string, createFault: PathFault): Path {
  const path = parsePath(expression, createFault)
  // not `["payload"]`, which is a field
  return /^payload(?=$|[.[])/.test(expression) ? path.slice(1) : path
}

function readHeader(header: string): Read {
  return (scope) => ownText(scope.headers, header)
}

function ownText(texts: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(texts, key) ? texts[key] : undefined
}

type Placeholder = { expression: string; start: number; filters: Filter[]; end: number }

/** A path ends at a filter or at a brace, but not inside the quotes of a key. */
const pathText = /(?:[^|{}"'[]|\[(?:\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))?)*/sy

/** The placeholder from its `{{` to after its `}}`. */
function parsePlaceholder(text: string, open: number): Placeholder {
  const raw = matchAt(pathText, text, open + 2)?.[0] ?? ''
  const expression = raw.trim()
  let at = open + 2 + raw.length
  const start = open + 2 + (raw.length - raw.trimStart().length)
  const [logic] = /^(?:[#/^>!&]\s*[^\s|]*|else(?: if\b.*)?$)/.exec(expression) ?? []
  if (logic !== undefined) throw toLogicProblem(text, start, logic)
  if (at >= text.length) throw faultAt(text, open, 'a "}}" after this "{{"', 'the end')
  if (expression === '' && text[at] !== '{') throw faultAt(text, at, 'a path, as in {{messages[0].subject}}')
  const filters: Filter[] = []
  while (text[at] === '|') {
    const filter = parseFilter(text, at + 1, (index, expected) => faultAt(text, index, expected))
    filters.push(filter.apply)
    at = filter.end
  }
  if (!text.startsWith('}}', at)) {
    if (at >= text.length) throw faultAt(text, open, 'a "}}" after this "{{"', 'the end')
    const isOpenKey = expression.endsWith('[') && filters.length === 0
    throw faultAt(text, at, isOpenKey ? 'a key that the same quote ends, as in fields["a.b"]' : 'a "|" or a "}}"')
  }
  return { expression, start, filters, end: at + 2 }
}

function faultAt(text: string, index: number, expected: string, came = toExcerpt(text, index)): Problem {
  return toTemplateProblem(text, index, `expected ${expected}, found ${came}.`)
}

function toLogicProblem(text: string, index: number, tag: string): Problem {
  const sentence = `templates have no logic, found ${toExcerpt(tag, 0)}. Write a transform for it.`
  return toTemplateProblem(text, index, sentence)
}

function toTemplateProblem(text: string, index: number, what: string): Problem {
  const before = text.slice(0, index).split('\n')
  const column = `column ${(before.at(-1)?.length ?? 0) + 1}`
  const place = before.length > 1 ? `line ${before.length}, ${column}` : column
  return new Problem('config-invalid', `The template is wrong at ${place}: ${what}`)
}

type Filter = (text: string) => string

const filterName = /\s*([^\s:|{}"']*)\s*/y
const spaces = /\s*/y
const digits = /\d+/y
const quoted = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/sy

/**
 * Parses `default: "n/a"` or `truncate: 500`, and the spaces around it. Throws what `createFault` makes for the index of an error. It takes
 * linear time, because no pattern here can match a text in two ways.
 */
function parseFilter(text: string, from: number, createFault: PathFault): { apply: Filter; end: number } {
  const [before = '', name = ''] = matchAt(filterName, text, from) ?? []
  const nameAt = from + (before.length - before.trimStart().length)
  if (name !== 'default' && name !== 'truncate') throw createFault(nameAt, 'the filter "default" or "truncate"')
  const colon = from + before.length
  const example = name === 'default' ? '"n/a"' : '500'
  if (text[colon] !== ':') throw createFault(colon, `a ":" and an argument, as in ${name}: ${example}`)
  const at = skipSpaces(text, colon + 1)
  if (name === 'truncate') {
    const count = matchAt(digits, text, at)?.[0]
    const limit = Number(count)
    if (count === undefined || limit < 1) throw createFault(at, `a whole number above 0, as in ${name}: ${example}`)
    return { apply: (value) => truncate(value, limit), end: skipSpaces(text, at + count.length) }
  }
  const found = matchAt(quoted, text, at)
  if (found === undefined) throw createFault(at, `a text in quotes, as in ${name}: ${example}`)
  const fallback = unescapeText(found[1] ?? found[2] ?? '', (index) =>
    createFault(at + 1 + index, String.raw`one of \\ \" \' \n \t`),
  )
  return { apply: (value) => (value === '' ? fallback : value), end: skipSpaces(text, at + found[0].length) }
}

function truncate(text: string, limit: number): string {
  // the ellipsis counts too
  return text.length <= limit ? text : cut(text, limit - 1)
}

const escapes = new Map([
  ['n', '\n'],
  ['t', '\t'],
  ['\\', '\\'],
  ['"', '"'],
  ["'", "'"],
])

function unescapeText(text: string, createFault: (index: number) => Problem): string {
  return text.replace(/\\([^])/g, (_, character: string, index: number) => {
    const meant = escapes.get(character)
    if (meant === undefined) throw createFault(index)
    return meant
  })
}

function skipSpaces(text: string, at: number): number {
  return at + (matchAt(spaces, text, at)?.[0].length ?? 0)
}
