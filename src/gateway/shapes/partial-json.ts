// Reads the beginning of a JSON text whose end may be cut off, or have other text behind it.
import type { JsonValue } from '../../base/json.ts'

const maxDepth = 12
const atom = /true|false|null|-?\d[\d.eE+-]*/y
const string = /"((?:[^"\\]|\\.)*)("?)/y

/** The value that begins at `from`, as far as the text goes. Undefined if none begins there. Numbers are texts, as they are written. */
export function readPartialJson(text: string, from: number): JsonValue | undefined {
  let at = from
  const skip = () => {
    while (at < text.length && ' \n\r\t,:'.includes(text[at] ?? '')) at += 1
  }
  const readString = (): string | undefined => {
    string.lastIndex = at
    const found = string.exec(text)
    if (found === null) return undefined
    at = string.lastIndex
    return decode(found[1] ?? '')
  }
  const read = (depth: number): JsonValue | undefined => {
    skip()
    const first = text[at]
    if (first === '"') return readString()
    if (depth < maxDepth && first === '{') {
      at += 1
      const entries: [string, JsonValue][] = []
      for (skip(); text[at] === '"'; skip()) {
        const name = readString()
        const value = read(depth + 1)
        if (name === undefined || value === undefined) break
        entries.push([name, value])
      }
      if (text[at] === '}') at += 1
      // fromEntries defines its keys: `__proto__` stays data
      return Object.fromEntries(entries)
    }
    if (depth < maxDepth && first === '[') {
      at += 1
      const items: JsonValue[] = []
      for (skip(); at < text.length && text[at] !== ']'; skip()) {
        const item = read(depth + 1)
        if (item === undefined) break
        items.push(item)
      }
      if (text[at] === ']') at += 1
      return items
    }
    atom.lastIndex = at
    const [word] = atom.exec(text) ?? []
    if (word === undefined) return undefined
    at = atom.lastIndex
    if (word === 'null') return null
    return word === 'true' || word === 'false' ? word === 'true' : word
  }
  return read(0)
}

function decode(written: string): string {
  if (!written.includes('\\')) return written
  try {
    return String(JSON.parse(`"${written}"`))
  } catch {
    // an escape that the end of the text cuts
    return written
  }
}
