// The parts of an imported file before they are checked: a configuration without mappings, and the mappings, each with its place in the
// file.
import type { JsonValue } from '../../base/json.ts'
import type { ConfigPath } from '../../core/model/issue.ts'
import { generateToken } from '../scaffold/folder.ts'
import { type Notes, type Secrets, type Section, Variable } from './notes.ts'

export type Fields = Record<string, unknown>

/** `from`: the place of the mapping in the file. */
export type DraftMapping = { readonly from: ConfigPath; readonly mapping: Fields }

export type ImportDraft = {
  readonly config: Fields & { hooks: Fields }
  readonly mappings: readonly DraftMapping[]
  /** The transforms folder, as the imported file names it. */
  readonly transformsDir?: string | undefined
}

export type Tools = {
  readonly notes: Notes
  readonly secrets: Secrets
  /** The home directory, which replaces `~`. */
  readonly home: string
}

/** Unescapes a text from OpenClaw, which writes `$${NAME}` for a literal `${NAME}`. */
export function unescapeText(text: string): string {
  return text.replaceAll(/\$(?=\$\{[A-Z_][A-Z0-9_]*\})/g, '')
}

function unescapeAll(value: JsonValue): JsonValue {
  if (typeof value === 'string') return unescapeText(value)
  if (Array.isArray(value)) return value.map(unescapeAll)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unescapeAll(item)]))
}

/**
 * Escapes the texts of a draft. The imported file may be untrusted, so none of its texts may read a variable or a file. Only a `Variable`,
 * which the import itself made, becomes `${NAME}`. `onText` gets the path of each text that looks like a reference to a variable.
 */
export function escapeTexts(fields: Fields, onText: (path: ConfigPath) => void): Fields {
  const write = (value: unknown, path: ConfigPath): unknown => {
    if (value instanceof Variable) return `\${${value.name}}`
    if (typeof value === 'string') {
      if (/\$\{[A-Z_][A-Z0-9_]*\}/.test(value)) onText(path)
      return value.replaceAll('${', () => '$${')
    }
    if (Array.isArray(value)) return value.map((item: unknown, index) => write(item, [...path, index]))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, write(item, [...path, key])]))
  }
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, write(value, [key])]))
}

/** Copies these keys of a section, as far as it has them. Blank texts and null count as missing. */
export function copyKeys(section: Section, keys: readonly string[]): Fields {
  const pairs = keys.flatMap((key): [string, JsonValue][] => {
    const value = section.take(key)
    if (value === undefined || value === null || (typeof value === 'string' && value.trim() === '')) return []
    return [[key, unescapeAll(value)]]
  })
  return Object.fromEntries(pairs)
}

/**
 * How a secret is stored. `name`: its variable in `.env`. `hasImportedUrl`: the imported file names the URL to which the secret is sent.
 * `minBytes`: a shorter one is replaced by a new one.
 */
type Place = { readonly name: string; readonly hasImportedUrl?: boolean; readonly minBytes?: number }

/** Moves a secret of the section into `.env`, and returns its variable. Undefined if the section has no such secret. */
export function moveSecret(section: Section, key: string, place: Place, tools: Tools): Variable | undefined {
  return moveSecretValue(section.take(key), [...section.path, key], place, tools)
}

/**
 * Moves a value of the imported file, or of a variable that the file defines, into `.env`. Other variables that the file names are not
 * read: an untrusted file could send them to a URL of its author.
 */
export function moveSecretValue(
  value: JsonValue | undefined,
  path: ConfigPath,
  { name, hasImportedUrl = false, minBytes = 0 }: Place,
  { secrets, notes }: Tools,
): Variable | undefined {
  const requireSecret = (asked?: string): Variable => {
    const variable = hasImportedUrl ? secrets.addPlaceholder(name) : secrets.requireVariable(name)
    const from = asked === undefined ? 'is not in the file' : `reads ${asked}, which the file does not bring along`
    if (variable.name !== asked) notes.add(path, `${from}. Put its value into .env as ${variable.name}.`)
    return variable
  }
  const addSecret = (secret: string): Variable => {
    const bytes = Buffer.byteLength(secret)
    if (bytes >= minBytes) return secrets.addValue(name, secret)
    const variable = secrets.addValue(name, generateToken())
    notes.add(
      path,
      `has ${bytes} bytes, and can be guessed: ${variable.name} in .env is a new token. Give it to your senders.`,
    )
    return variable
  }
  if (typeof value === 'string') {
    const text = value.trim()
    if (text === '') return undefined
    // OpenClaw also accepts the bare name of a variable as a reference
    const given = /^[A-Z][A-Z0-9_]*$/.test(text) && secrets.has(text) ? `\${${text}}` : text
    let missing: string | undefined
    const whole = given.replaceAll(/\$\$\{|\$\{([A-Z_][A-Z0-9_]*)\}/g, (_, asked?: string) => {
      if (asked === undefined) return '${'
      const brought = secrets.readTheirs(asked)
      if (brought === undefined) missing ??= asked
      return brought ?? ''
    })
    return missing === undefined ? addSecret(whole) : requireSecret(missing)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { source, id } = value
  if (source !== 'env' || typeof id !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(id)) return requireSecret()
  const brought = secrets.readTheirs(id)
  return brought === undefined ? requireSecret(id) : addSecret(brought)
}
