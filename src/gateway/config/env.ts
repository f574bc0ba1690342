// Reads `.env`, `${NAME}` and `${file:/path}`. A value never enters a message, because most values are secrets.
import { hash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { cut } from '../../base/text.ts'
import { toDottedPath, type ConfigIssue, type ConfigPath } from '../../core/model/issue.ts'

export type Env = Readonly<Record<string, string | undefined>>

/**
 * Parses lines of `NAME=value`, `NAME='literal'` or `NAME="with \n escapes"`, with an optional `export` before the name and an
 * optional comment after the value. ` #` begins a comment in an unquoted value. A value has one line. `problems` have line numbers.
 */
export function parseEnv(text: string): { values: Env; problems: string[] } {
  // without a prototype, because names are data
  const values: Record<string, string> = Object.create(null)
  const problems: string[] = []
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)
  for (const [index, line] of lines.entries()) {
    if (/^\s*(#|$)/.test(line)) continue
    const [, name, rest] = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/s.exec(line) ?? []
    const value = rest === undefined ? undefined : readEnvValue(rest.trim())
    if (name === undefined) problems.push(`.env:${index + 1} must be NAME=value.`)
    else if (value === undefined) problems.push(`.env:${index + 1} has ${describeQuoteFault(rest)}: ${name}.`)
    else values[name] = value
  }
  return { values, problems }
}

function readEnvValue(rest: string): string | undefined {
  if (!/^['"]/.test(rest)) return rest.replace(/(^|\s+)#.*$/s, '')
  const [, single, double] = /^(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?$/s.exec(rest) ?? []
  const escapes: Record<string, string> = { n: '\n', r: '\r', t: '\t' }
  return single ?? double?.replace(/\\(.)/gs, (_, character: string) => escapes[character] ?? character)
}

function describeQuoteFault(rest = ''): string {
  return /^\s*(?:'[^']*'|"(?:[^"\\]|\\.)*")/s.test(rest) ? 'text after the closing quote' : 'an unterminated quote'
}

/** One line of `.env`, from which `parseEnv` reads the same value. */
export function renderEnvLine(name: string, value: string): string {
  if (/^[A-Za-z0-9_.~+/=-]+$/.test(value)) return `${name}=${value}\n`
  const escapes: Record<string, string> = { '\n': '\\n', '\r': '\\r' }
  return `${name}="${value.replace(/["\\\n\r]/g, (character) => escapes[character] ?? `\\${character}`)}"\n`
}

/** The variables that `hooks.transforms.env` names and that are set. */
export function pickEnv(names: readonly string[], env: Env): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = Object.hasOwn(env, name) ? env[name] : undefined
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/**
 * Returns a copy in which `${NAME}` and `${file:/path}` are replaced in all strings; `$${` is a literal `${`. A string with an issue is not changed.
 * `values`: the inserted texts. Each call reads the files again. `isWithoutSecrets`: a variable that is not set
 * and a file that cannot be read get a fixed text, which does not count as a secret.
 */
export function substituteEnv(
  value: unknown,
  env: Env,
  { isWithoutSecrets = false }: { readonly isWithoutSecrets?: boolean | undefined } = {},
): { value: unknown; issues: ConfigIssue[]; values: readonly string[] } {
  const issues: ConfigIssue[] = []
  const values = new Set<string>()
  const visit = (node: unknown, at: ConfigPath): unknown => {
    if (typeof node === 'string')
      return substituteText(node, env, {
        report: (rest) => issues.push({ path: at, text: `${toDottedPath(at)} ${rest}` }),
        noteValue: (text) => values.add(text),
        replaceMissing: isWithoutSecrets ? renderPlaceholder : () => undefined,
      })
    if (Array.isArray(node)) return node.map((item: unknown, index) => visit(item, [...at, index]))
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([key, item]) => [key, visit(item, [...at, key])]))
  }
  return { value: visit(value, []), issues, values: [...values] }
}

type Substitution = {
  readonly report: (rest: string) => void
  readonly noteValue: (value: string) => void
  readonly replaceMissing: (name: string) => string | undefined
}

/** A fixed text in place of a missing value. It is different for each name, because the hook token must differ from the gateway token. */
function renderPlaceholder(name: string): string {
  return `unset-${hash('sha256', name, 'hex').slice(0, 32)}`
}

function substituteText(text: string, env: Env, { report, noteValue, replaceMissing }: Substitution): string {
  let isWhole = true
  const refuse = (rest: string): string => {
    isWhole = false
    report(rest)
    return ''
  }
  // one pass from the left: the value of a variable or a file is not substituted again
  const form = /\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\}|file:([^}]*)\})?/g
  const result = text.replace(form, (found, name: string | undefined, file: string | undefined) => {
    if (found === '$${') return '${'
    if (file !== undefined) {
      const read = readSecret(file)
      if (read.ok) noteValue(read.value)
      return read.ok
        ? read.value
        : (replaceMissing(file) ?? refuse(`needs the file ${JSON.stringify(cut(file, 200))}, ${read.why}`))
    }
    if (name === undefined)
      return refuse('contains "${" without NAME or file:/path and "}". Write "$${" for a literal "${".')
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value !== undefined) noteValue(value)
    return (
      value ?? replaceMissing(name) ?? refuse(`needs ${name}, which is not set. Set it in the environment or in .env.`)
    )
  })
  return isWhole ? result : text
}

/** The maximum number of bytes. A private key in PEM has a few thousand. */
export const maxSecretBytes = 65_536

type SecretResult = { readonly ok: true; readonly value: string } | { readonly ok: false; readonly why: string }

/** The text of a file without its last line break. */
function readSecret(path: string): SecretResult {
  if (!isAbsolute(path)) return { ok: false, why: 'which is not an absolute path. Write "${file:/path/to/secret}".' }
  try {
    const bytes = readRegularFile(path, maxSecretBytes)
    const value = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
    return value === '' ? { ok: false, why: 'which is empty. Write the secret into it.' } : { ok: true, value }
  } catch (error) {
    return { ok: false, why: `which cannot be used: ${describeReadFault(error)}.` }
  }
}

const faults: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'it does not exist',
  EACCES: 'permission denied',
  EISDIR: 'it is not a regular file',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8',
}

/** Why a file cannot be read, as the end of a sentence. */
export function describeReadFault(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code !== '') return faults[code] ?? code
  return error instanceof Error ? error.message : 'it cannot be read'
}

/** Reads only regular files, because the gateway waits for this read: a FIFO or a device could block it without end. */
export function readRegularFile(path: string, maxBytes: number): Uint8Array {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const facts = fstatSync(file)
    if (!facts.isFile()) throw new Error('it is not a regular file')
    if (facts.size > maxBytes) throw new Error(`it has ${facts.size} bytes; the limit is ${maxBytes}`)
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}
