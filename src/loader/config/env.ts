// `.env` and `${NAME}`. A value never enters a message: it is a secret more often than not.
import { toDottedPath, type ConfigIssue, type ConfigPath } from '../../model/issue.ts'

export type Env = Readonly<Record<string, string | undefined>>

/**
 * Lines of `NAME=value`, `NAME='literal'` or `NAME="with \n escapes"`, with an optional `export` before and a comment
 * behind; ` #` begins a comment in a bare value. One value is one line. `problems` name lines by number.
 */
export function parseEnv(text: string): { values: Env; problems: string[] } {
  // no prototype: a name is data
  const values: Record<string, string> = Object.create(null)
  const problems: string[] = []
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)
  for (const [index, line] of lines.entries()) {
    if (/^\s*(#|$)/.test(line)) continue
    const [, name, rest] = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/.exec(line) ?? []
    const value = rest === undefined ? undefined : toEnvValue(rest.trim())
    if (name === undefined) problems.push(`.env:${index + 1} must be NAME=value.`)
    else if (value === undefined) problems.push(`.env:${index + 1} has an unterminated quote: ${name}.`)
    else values[name] = value
  }
  return { values, problems }
}

function toEnvValue(rest: string): string | undefined {
  if (!/^['"]/.test(rest)) return rest.replace(/(^|\s+)#.*$/, '')
  const [, single, double] = /^(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?$/.exec(rest) ?? []
  const escapes: Record<string, string> = { n: '\n', r: '\r', t: '\t' }
  return single ?? double?.replace(/\\(.)/g, (_, character: string) => escapes[character] ?? character)
}

/** One line of `.env` that `parseEnv` reads back as it was. */
export function toEnvLine(name: string, value: string): string {
  if (/^[A-Za-z0-9_.~+/=-]+$/.test(value)) return `${name}=${value}\n`
  const escapes: Record<string, string> = { '\n': '\\n', '\r': '\\r' }
  return `${name}="${value.replace(/["\\\n\r]/g, (character) => escapes[character] ?? `\\${character}`)}"\n`
}

/** The variables that `hooks.transforms.env` names, as far as they are set. */
export function pickEnv(names: readonly string[], env: Env): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/** A copy whose string leaves have `${NAME}` replaced; `$${` stands for a literal `${`. Leaves with an issue stay as they are. */
export function substituteEnv(
  value: unknown,
  env: Env,
  path: ConfigPath = [],
): { value: unknown; issues: ConfigIssue[] } {
  const issues: ConfigIssue[] = []
  const visit = (node: unknown, at: ConfigPath): unknown => {
    if (typeof node === 'string')
      return toSubstituted(node, env, (rest) => issues.push({ path: at, text: `${toDottedPath(at)} ${rest}` }))
    if (Array.isArray(node)) return node.map((item: unknown, index) => visit(item, [...at, index]))
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([key, item]) => [key, visit(item, [...at, key])]))
  }
  return { value: visit(value, path), issues }
}

function toSubstituted(text: string, env: Env, report: (rest: string) => void): string {
  let isWhole = true
  const refuse = (rest: string): string => {
    isWhole = false
    report(rest)
    return ''
  }
  // one pass from the left: what a variable holds is never looked through again
  const result = text.replace(/\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?/g, (found, name: string | undefined) => {
    if (found === '$${') return '${'
    if (name === undefined) return refuse('contains "${" without a NAME and "}". Write "$${" for a literal "${".')
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    return value ?? refuse(`needs ${name}, which is not set. Set it in the environment or in .env.`)
  })
  return isWhole ? result : text
}
