// A JSON parser that keeps the text of numbers. JSON.parse changes 12345678901234567890, and drops the zero of 1.50.
import type { PathStep } from '../base/path-text.ts'

/** `source`: the text of the value, as it is in the payload. */
export type JsonNode =
  | { readonly kind: 'object'; readonly source: string; readonly entries: readonly (readonly [string, JsonNode])[] }
  | { readonly kind: 'array'; readonly source: string; readonly items: readonly JsonNode[] }
  | { readonly kind: 'string' | 'number' | 'word'; readonly source: string }

/** The maximum depth of a value, which bounds the recursion. The gateway refuses deeper bodies. */
const maxDepth = 1_000

/** Parses a text. Undefined if the text is not JSON, or is nested too deep. A key that occurs twice in an object occurs twice in the result. */
export function readJson(text: string): JsonNode | undefined {
  let at = 0
  try {
    // JSON.parse checks the text, so the parser below need not
    JSON.parse(text)
    return readValue(0)
  } catch {
    return undefined
  }

  function readValue(depth: number): JsonNode {
    if (depth > maxDepth) throw new RangeError('The value is nested too deep.')
    skipSpace()
    const start = at
    if (text[at] === '{') {
      const entries: [string, JsonNode][] = []
      readItems('}', () => {
        const key: unknown = JSON.parse(readString())
        skipSpace()
        at += 1
        entries.push([String(key), readValue(depth + 1)])
      })
      return { kind: 'object', source: text.slice(start, at), entries }
    }
    if (text[at] === '[') {
      const items: JsonNode[] = []
      readItems(']', () => items.push(readValue(depth + 1)))
      return { kind: 'array', source: text.slice(start, at), items }
    }
    if (text[at] === '"') return { kind: 'string', source: readString() }
    while (at < text.length && !/[\s,\]}]/.test(text[at] ?? '')) at += 1
    const source = text.slice(start, at)
    return { kind: /^[-\d]/.test(source) ? 'number' : 'word', source }
  }

  function readItems(close: string, readItem: () => void): void {
    at += 1
    skipSpace()
    while (text[at] !== close) {
      readItem()
      skipSpace()
      if (text[at] === ',') at += 1
      skipSpace()
    }
    at += 1
  }

  function readString(): string {
    skipSpace()
    const start = at
    do {
      at = text.indexOf('"', at + 1)
    } while (isEscaped(at))
    at += 1
    return text.slice(start, at)
  }

  function isEscaped(quote: number): boolean {
    let backslashes = 0
    while (text[quote - 1 - backslashes] === '\\') backslashes += 1
    return backslashes % 2 === 1
  }

  function skipSpace(): void {
    while (/\s/.test(text[at] ?? '')) at += 1
  }
}

/** The content of a string. */
export function readText({ source }: JsonNode): string {
  return String(JSON.parse(source))
}

/** The value with line breaks and indents. Numbers and strings keep their original text. */
export function formatJson(node: JsonNode, indent = ''): string {
  const inner = `${indent}  `
  if (node.kind === 'object') {
    const lines = node.entries.map(([key, value]) => `${inner}${JSON.stringify(key)}: ${formatJson(value, inner)}`)
    return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
  }
  if (node.kind === 'array') {
    const lines = node.items.map((value) => `${inner}${formatJson(value, inner)}`)
    return lines.length === 0 ? '[]' : `[\n${lines.join(',\n')}\n${indent}]`
  }
  return node.source
}

/** The keys whose numbers may be times. */
const timeName =
  /(^|_)(at|time|date|timestamp|ts|created|updated|modified|expires|expiry|iat|exp|nbf)$|[a-z](At|Time|Date|Timestamp)$/

/** The moment that a value means: a number of seconds or milliseconds, or a text in ISO 8601. Undefined for any other value. */
export function findTime(name: PathStep | undefined, node: JsonNode): number | undefined {
  if (node.kind === 'string' && /^"\d{4}-\d\d-\d\dT\d\d:\d\d[^"]{0,20}"$/.test(node.source)) {
    const at = Date.parse(readText(node))
    return Number.isNaN(at) ? undefined : at
  }
  if (node.kind !== 'number' || typeof name !== 'string' || !timeName.test(name)) return undefined
  if (/^[1-4]\d{9}(\.\d+)?$/.test(node.source)) return Number(node.source) * 1_000
  return /^[1-4]\d{12}$/.test(node.source) ? Number(node.source) : undefined
}

/** The nodes whose key or value contains the word, and their ancestors. */
export function findNodes(root: JsonNode, word: string): ReadonlySet<JsonNode> {
  const found = new Set<JsonNode>()
  const lower = word.toLowerCase()
  const visit = (node: JsonNode, name: string): boolean => {
    let isFound = name.toLowerCase().includes(lower)
    if (node.kind === 'object') for (const [key, value] of node.entries) isFound = visit(value, key) || isFound
    else if (node.kind === 'array') for (const value of node.items) isFound = visit(value, '') || isFound
    else isFound ||= (node.kind === 'string' ? readText(node) : node.source).toLowerCase().includes(lower)
    if (isFound) found.add(node)
    return isFound
  }
  visit(root, '')
  return found
}
