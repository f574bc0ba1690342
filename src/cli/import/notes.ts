// Lists the parts that are not imported, and the secrets that move into `.env`. No note shows a secret.
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts'
import { parseEnv, renderEnvLine, type Env } from '../../gateway/config/env.ts'
import { type ConfigPath, toDottedPath } from '../../core/model/issue.ts'
import { findCounterpart } from '../../model/config/openclaw-keys.ts'
import { generateToken } from '../scaffold/folder.ts'
import { generatePlaceholder } from '../scaffold/placeholders.ts'

/** `path`: a key of the imported file. `rest`: the end of a sentence that begins with the key: why it is not imported, and what to do
 * instead. */
export type Note = { readonly path: ConfigPath; readonly rest: string }

export type Notes = {
  add(path: ConfigPath, rest: string): void
  all(): readonly Note[]
}

export function createNotes(): Notes {
  const notes: Note[] = []
  return {
    add: (path, rest) => notes.push({ path, rest }),
    // sorting puts the notes of one mapping together
    all: () =>
      notes.toSorted((one, other) => renderNote(one).localeCompare(renderNote(other), 'en', { numeric: true })),
  }
}

export function renderNote({ path, rest }: Note): string {
  return `${toDottedPath(path)}${rest.startsWith(':') ? '' : ' '}${rest}`
}

/** An object of the imported file. Its keys are read one by one, so that the keys that nobody read can be listed. */
export type Section = {
  readonly path: ConfigPath
  take(key: string): JsonValue | undefined
  /** Opens the section below a key. The section is empty if the key is missing or is not an object. */
  open(key: string): Section
  has(key: string): boolean
  listUnused(): readonly string[]
}

export function openSection(path: ConfigPath, value: JsonValue | undefined): Section {
  const fields: JsonObject = isJsonObject(value) ? value : {}
  const taken = new Set<string>()
  const has = (key: string): boolean => Object.hasOwn(fields, key)
  const take = (key: string): JsonValue | undefined => {
    taken.add(key)
    return has(key) ? fields[key] : undefined
  }
  return {
    path,
    has,
    take,
    open: (key) => openSection([...path, key], take(key)),
    listUnused: () => Object.keys(fields).filter((key) => !taken.has(key)),
  }
}

/** Lists the unused keys of a section: a line for each key that has a counterpart, and one line for all others. */
export function noteUnusedKeys(notes: Notes, { path, listUnused }: Section, why = ''): void {
  const others: string[] = []
  for (const key of listUnused()) {
    const counterpart = findCounterpart([...path, key])
    if (counterpart === undefined) others.push(key)
    else notes.add([...path, key], counterpart)
  }
  const [only] = others
  if (only === undefined) return
  const rest = `no counterpart here${why === '' ? '' : `: ${why}`}.`
  const names = `${others.slice(0, -1).join(', ')} and ${others.at(-1)}`
  if (others.length === 1) notes.add([...path, only], `has ${rest}`)
  else if (path.length === 0) notes.add([names], `have ${rest}`)
  else notes.add(path, `has ${names}, which have ${rest}`)
}

/** A variable that the configuration reads. */
export class Variable {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

export type Secrets = {
  /** Moves a value into `.env`. If the name has another value already, a number is appended to the name. */
  addValue(name: string, value: string): Variable
  /** Makes sure that a variable has a value: from the environment, from `.env`, or from the variables of the imported file, else a
   * placeholder. */
  requireVariable(name: string): Variable
  /** Makes a variable with a placeholder. If the name has a value already, a number is appended to the name. */
  addPlaceholder(name: string): Variable
  /** Sets the variable to a new random token, unless it has a value. */
  requireToken(name: string): Variable
  /** Whether the variable has a value: in the environment, in `.env`, or in the imported file. */
  has(name: string): boolean
  /** The value of a variable that the imported file defines. */
  readTheirs(name: string): string | undefined
  /** The variables to add to `.env`. */
  added(): readonly { readonly name: string; readonly value: string; readonly isPlaceholder: boolean }[]
}

/** `env`: the environment and the `.env` of the config directory. `theirs`: the variables that the imported file defines. */
export function createSecrets(env: Env, theirs: Env): Secrets {
  const added = new Map<string, { value: string; isPlaceholder: boolean }>()
  const read = (name: string): string | undefined =>
    added.get(name)?.value ?? (Object.hasOwn(env, name) ? env[name] : undefined)
  const variables = new Map<string, Variable>()
  /** Returns the same object each time for the same name. */
  const getVariable = (name: string): Variable => {
    const variable = variables.get(name) ?? new Variable(name)
    variables.set(name, variable)
    return variable
  }
  const readTheirs = (name: string): string | undefined => (Object.hasOwn(theirs, name) ? theirs[name] : undefined)
  const add = (name: string, value: string, isPlaceholder: boolean): Variable => {
    for (let count = 1; ; count += 1) {
      const free = count === 1 ? name : `${name}_${count}`
      const there = read(free)
      if (there === undefined) added.set(free, { value, isPlaceholder })
      if (there === undefined || there === value) return getVariable(free)
    }
  }
  const addValue = (name: string, value: string): Variable => add(name, value, false)
  const requireVariable = (name: string): Variable => {
    if (read(name) === undefined) {
      const value = readTheirs(name)
      added.set(name, { value: value ?? generatePlaceholder(), isPlaceholder: value === undefined })
    }
    return getVariable(name)
  }
  return {
    addValue,
    requireVariable,
    addPlaceholder: (name) => add(name, generatePlaceholder(), true),
    requireToken: (name) => (read(name) === undefined ? addValue(name, generateToken()) : getVariable(name)),
    has: (name) => read(name) !== undefined || readTheirs(name) !== undefined,
    readTheirs,
    added: () => [...added].map(([name, entry]) => ({ name, ...entry })),
  }
}

/** The text of `.env` with the new variables at its end. */
export function renderEnvText(text: string | undefined, added: ReturnType<Secrets['added']>): string {
  const start = text ?? '# Secrets of hookloom.jsonc. The environment wins over this file.\n'
  const lines = added.map(({ name, value, isPlaceholder }) =>
    isPlaceholder
      ? `# a placeholder: put the real value here\n${renderEnvLine(name, value)}`
      : renderEnvLine(name, value),
  )
  return [start.replace(/([^\n])$/, '$1\n'), ...lines].join('')
}

export function readEnv(text: string | undefined): Env {
  return parseEnv(text ?? '').values
}

/** The name of a variable for a text: `acme-deploy` becomes `ACME_DEPLOY`, and `4711` becomes `HOOK_4711`. */
export function toVariableName(text: string): string {
  const name = text
    .toUpperCase()
    .replace(/[^A-Z\d]+/g, '_')
    .replace(/^_+|_+$/g, '')
  return /^[A-Z]/.test(name) ? name : `HOOK_${name}`
}
