// Signatures out of a header. A malformed entry of a list is stepped over: it must not keep the next one from being tried.
import type { Syntax } from './scheme.ts'

/** No sender rotates through more keys; each is a comparison. */
const most = 100

/** The signatures that count, in their order. Empty: none, or none of the right name. */
export function toSignatures(header: string, syntax: Syntax | undefined): readonly string[] {
  if (syntax === undefined) return header === '' ? [] : [header]
  if ('prefix' in syntax) {
    const { prefix } = syntax
    return header.startsWith(prefix) && header.length > prefix.length ? [header.slice(prefix.length)] : []
  }
  return readEntries(header, syntax, syntax.field)
}

/** The values of every entry of a name. */
export function readEntries(header: string, syntax: Exclude<Syntax, { prefix: string }>, name: string): string[] {
  const values: string[] = []
  for (const entry of header.split(syntax.separator, most)) {
    const at = entry.indexOf(syntax.joint)
    if (at < 0 || entry.slice(0, at).trim() !== name) continue
    const value = entry.slice(at + 1).trim()
    if (value !== '') values.push(value)
  }
  return values
}
