// What a file becomes before it is checked: a configuration without its mappings, and the mappings with their places in the file.
import type { JsonValue } from '../../base/json.ts'
import type { ConfigPath } from '../../model/issue.ts'
import type { Notes, Secrets, Section } from './notes.ts'

export type Fields = Record<string, unknown>

/** `from`: its place in the file. */
export type DraftMapping = { readonly from: ConfigPath; readonly mapping: Fields }

export type Draft = {
  readonly config: Fields & { hooks: Fields }
  readonly mappings: readonly DraftMapping[]
  /** The folder of the transforms as the file names it. */
  readonly transformsDir?: string | undefined
}

export type Tools = {
  readonly notes: Notes
  readonly secrets: Secrets
  /** The home directory, for `~`. */
  readonly home: string
}

/** A text of OpenClaw: `${NAME}` is a variable if the name is in upper case; every other `${` is literal. */
export function carry(text: string, { secrets }: Tools): string {
  return text.replaceAll(/\$\$\{[A-Z_][A-Z0-9_]*\}|\$\{([A-Z_][A-Z0-9_]*)\}|\$?\$\{/g, (found, name?: string) => {
    if (name !== undefined) return secrets.need(name)
    return found.endsWith('}') ? found : `$${found}`
  })
}

/** A text in which nothing is a variable. */
export function literal(text: string): string {
  return text.replaceAll('${', () => '$${')
}

function carryValue(value: JsonValue, tools: Tools): JsonValue {
  if (typeof value === 'string') return carry(value, tools)
  if (Array.isArray(value)) return value.map((item) => carryValue(item, tools))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, carryValue(item, tools)]))
}

/** The keys that a section has, with the same names. Blank texts and null count as missing. */
export function carryKeys(section: Section, keys: readonly string[], tools: Tools): Fields {
  const pairs = keys.flatMap((key): [string, JsonValue][] => {
    const value = section.take(key)
    if (value === undefined || value === null || (typeof value === 'string' && value.trim() === '')) return []
    return [[key, carryValue(value, tools)]]
  })
  return Object.fromEntries(pairs)
}

/** The reference of a secret. Undefined: the section has none. `name` is the variable for a value that the file shows. */
export function keepSecret(section: Section, key: string, name: string, tools: Tools): string | undefined {
  return toSecret(section.take(key), [...section.path, key], name, tools)
}

export function toSecret(
  value: JsonValue | undefined,
  path: ConfigPath,
  name: string,
  tools: Tools,
): string | undefined {
  const { secrets, notes } = tools
  if (typeof value === 'string') {
    const text = value.trim()
    if (text === '') return undefined
    // OpenClaw also takes the bare name of a variable
    if (/^[A-Z][A-Z0-9_]*$/.test(text) && secrets.has(text)) return secrets.need(text)
    if (/(?<!\$)\$\{[A-Z_][A-Z0-9_]*\}/.test(text)) return carry(text, tools)
    return secrets.keep(name, text.replaceAll('$${', '${'))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { source, id } = value
  if (source === 'env' && typeof id === 'string' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(id)) return secrets.need(id)
  notes.add(path, `is not in the file. Put its value into .env as ${name}.`)
  return secrets.need(name)
}
