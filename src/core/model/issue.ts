// Turns schema issues into sentences: the field, what was expected, and the kind of value that was found. A value that may be a secret is not
// shown.
import type { z } from 'zod'
import { describeValueKind } from '../../base/json.ts'
import { findNearest, formatQuantity, takeStart } from '../../base/text.ts'

/** The first issue of a failed parse, e.g. `timeoutSeconds: expected a number above 0, found a string`. */
export function describeFirstIssue(error: z.ZodError, input: unknown): string {
  const issue = error.issues[0]
  return issue === undefined ? 'it does not match the schema' : describeIssue(issue, input)
}

/** `at`: the path of the input. */
export function describeIssue(issue: z.core.$ZodIssue, input: unknown, at: readonly PropertyKey[] = []): string {
  const where = toDottedPath([...at, ...issue.path])
  if (issue.code === 'unrecognized_keys') {
    const keys = issue.keys.map((key) => `"${takeStart(key, 60)}"`).join(', ')
    const fault = issue.keys.length === 1 ? 'is not a known field' : 'are not known fields'
    return `${where === '' ? '' : `${where}: `}${keys} ${fault}`
  }
  const found = readAt(input, issue.path)
  const sentence = `expected ${describeExpectation(issue)}, found ${describeValueKind(found)}`
  return where === '' ? sentence : `${where}: ${sentence}`
}

/**
 * Describes an issue of the configuration. The value is shown only if it is a number out of bounds, or a word that is similar to an allowed word.
 * Any other text may be a secret in the wrong place: a secret is similar to no word.
 */
export function describeConfigIssue(issue: z.core.$ZodIssue, input: unknown): string {
  const found = readAt(input, issue.path)
  if (typeof found === 'number' && (issue.code === 'too_small' || issue.code === 'too_big')) {
    return `${toDottedPath(issue.path)}: expected ${describeExpectation(issue)}, found ${found}`
  }
  if (issue.code !== 'invalid_value' || typeof found !== 'string') return describeIssue(issue, input)
  const near = findNearest(
    found,
    issue.values.filter((value) => typeof value === 'string'),
  )
  if (near === undefined) return describeIssue(issue, input)
  return `${toDottedPath(issue.path)}: expected ${describeExpectation(issue)}, found ${JSON.stringify(found)}. Did you mean ${JSON.stringify(near)}?`
}

const word = '[A-Za-z_]{1,40}'
/** A path or a list of fields whose names are plain words, like the names in a schema. */
const plainPath = new RegExp(String.raw`^${word}(?:\.${word}|\[\d{1,6}\])*$`)
const unknownFields = new RegExp(
  `^(?:(?<where>[^"]*): )?"${word}"(?: is not a known field|(?:, "${word}")+ are not known fields)\\.?$`,
)

/** Matches a sentence about a field that the gateway defines, except `<field>: expected …`. */
const ownFields = /^(?:message|text|model|channel|to|sessionMode): (?!expected )/

/**
 * The message of a `payload-invalid` without names of fields that may be data of a person, such as the key of `{"ada@example.org": 1}`: a
 * path is shown only if each of its names is a plain word.
 */
export function hideFieldNames(message: string): string {
  const [, lead = '', sentence = ''] = /^(The payload does not fit: |The body: )?(.*)$/s.exec(message) ?? []
  const unknown = unknownFields.exec(sentence)
  if (unknown !== null && isPlain(unknown.groups?.['where'])) return message
  if (/ (?:is not a known field|are not known fields)/.test(sentence)) return `${lead}it has a field that is not known.`
  const at = `: ${sentence}`.lastIndexOf(': expected ')
  if (at !== -1) return isPlain(sentence.slice(0, at)) ? message : `${lead}one of its fields: ${sentence.slice(at)}`
  return ownFields.test(sentence) && sentence.length < 200 ? message : `${lead}a field is missing or of the wrong type.`
}

/** The path of the first issue of a ZodError, if each of its names is a plain word. Reading an exception of a module may throw. */
export function findPlainPath(thrown: object): string | undefined {
  const issues: unknown = Reflect.get(thrown, 'issues')
  const first: unknown = Array.isArray(issues) ? issues[0] : undefined
  const path: unknown = typeof first === 'object' && first !== null ? Reflect.get(first, 'path') : undefined
  if (!Array.isArray(path) || path.length > 20) return undefined
  const where = toDottedPath(path.filter((key) => typeof key === 'number' || typeof key === 'string'))
  return plainPath.test(where) ? where : undefined
}

/** `where`: empty for the payload itself. */
function isPlain(where = ''): boolean {
  return where === '' || plainPath.test(where.replace(/: $/, ''))
}

/** Writes a path such as `hooks.mappings[0].match`. */
export function toDottedPath(path: readonly PropertyKey[]): string {
  let text = ''
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`
    else text += text === '' ? String(key) : `.${String(key)}`
  }
  return text
}

function describeExpectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return withArticle(issue.expected)
    case 'invalid_value':
      return `${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map((value) => JSON.stringify(value)).join(', ')}`
    case 'too_small':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `a number ${issue.inclusive === true ? 'of at least' : 'above'} ${issue.minimum}`
        : `at least ${formatSize(issue.minimum, issue.origin)}`
    case 'too_big':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `a number of at most ${issue.maximum}`
        : `at most ${formatSize(issue.maximum, issue.origin)}`
    case 'custom':
      return issue.message === 'must not be blank' ? 'a string that is not blank' : `a value that ${issue.message}`
    default:
      return `another value (${issue.message})`
  }
}

function formatSize(count: number | bigint, origin: string): string {
  return origin === 'array'
    ? formatQuantity(Number(count), 'entry', 'entries')
    : formatQuantity(Number(count), 'character')
}

function withArticle(type: string): string {
  return type === 'record' ? 'an object' : `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type === 'int' ? 'integer' : type}`
}

/** The value at a path of keys and indexes; undefined if there is none. */
export function readAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = Reflect.get(value, key)
  }
  return value
}

export type ConfigPath = readonly (string | number)[]

/**
 * `text` is one whole sentence that begins with the path. It never shows a value that may be a secret. `missingPath`: the path of the section that is
 * missing; absent if the section is there and has a mistake.
 */
export type ConfigIssue = { readonly path: ConfigPath; readonly text: string; readonly missingPath?: ConfigPath }

export function toIssue(path: ConfigPath, rest: string, missingPath?: ConfigPath): ConfigIssue {
  return { path, text: `${toDottedPath(path)} ${rest}`, ...(missingPath && { missingPath }) }
}

/** Reports each name that an earlier entry has too. */
export function findDuplicateIssues(
  names: readonly (string | undefined)[],
  at: (index: number) => ConfigPath,
): ConfigIssue[] {
  return names.flatMap((name, index) => {
    const first = names.indexOf(name)
    if (name === undefined || first === index) return []
    return [toIssue(at(index), `is "${name}", the same as ${toDottedPath(at(first))}. Rename one of them.`)]
  })
}
