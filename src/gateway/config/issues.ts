// Turns schema issues of the configuration into sentences. Each begins with the path of the key, and says what was expected and which kind
// of value was found. A value that may be a secret is not shown.
import type { z } from 'zod'
import { type ConfigIssue, describeConfigIssue, readAt, toDottedPath } from '../../core/model/issue.ts'
import { describeValueKind } from '../../base/json.ts'
import { findCounterpart } from '../../model/config/openclaw-keys.ts'
import { describeUnknownKey } from '../../model/definitions.ts'
import { listKeysAt, listWordsAt } from './schema.ts'

type SchemaIssue = z.core.$ZodIssue
type UnionIssue = z.core.$ZodIssueInvalidUnion

/** Returns one or more issues, because an object may have several unknown keys. `input` is the parsed value. */
export function toConfigIssues(issue: SchemaIssue, input: unknown): ConfigIssue[] {
  const path = toPath(issue.path)
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => buildUnknownKeyIssue(path, key))
  if (issue.code === 'invalid_union') return buildUnionIssues(issue, input)
  // the messages that the schema defines begin with "must", and say more than a type
  const isOwn = (issue.code === 'custom' || issue.code === 'invalid_format') && issue.message.startsWith('must ')
  return [{ path, text: isOwn ? `${toDottedPath(path)} ${issue.message}` : describeConfigIssue(issue, input) }]
}

function buildUnknownKeyIssue(parent: readonly (string | number)[], key: string): ConfigIssue {
  const path = [...parent, key]
  const counterpart = findCounterpart(path)
  if (counterpart !== undefined) return { path, text: `${toDottedPath(path)} ${counterpart}` }
  return { path, text: describeUnknownKey(parent, key, listKeysAt(parent)) }
}

/**
 * Reports the issues of the first alternative whose kind is that of the value. If there is none, reports one issue with the kinds of all alternatives,
 * or with the words that select one.
 */
function buildUnionIssues(issue: UnionIssue, input: unknown): ConfigIssue[] {
  const fitting = issue.errors.find((branch) => !branch.every(isWrongKind))
  if (fitting !== undefined) {
    return fitting.flatMap((inner) => toConfigIssues({ ...inner, path: [...issue.path, ...inner.path] }, input))
  }
  const path = toPath(issue.path)
  // no alternative was tried: the value of the key that selects one is unknown
  if (issue.errors.length === 0) {
    return [{ path, text: describeConfigIssue({ ...issue, code: 'invalid_value', values: listWordsAt(path) }, input) }]
  }
  const kinds = [...new Set(issue.errors.flatMap((branch) => branch.flatMap(listExpectedKinds)))]
  const expected = kinds.length > 1 ? `${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)}` : kinds.join('')
  const found = readAt(input, path)
  return [{ path, text: `${toDottedPath(path)}: expected ${expected}, found ${describeValueKind(found)}` }]
}

function isWrongKind(issue: SchemaIssue): boolean {
  if (issue.path.length > 0) return false
  return issue.code === 'invalid_union'
    ? issue.errors.every((branch) => branch.every(isWrongKind))
    : issue.code === 'invalid_type'
}

function listExpectedKinds(issue: SchemaIssue): string[] {
  if (issue.code === 'invalid_union') return issue.errors.flatMap((branch) => branch.flatMap(listExpectedKinds))
  if (issue.code !== 'invalid_type') return []
  if (issue.expected === 'null') return ['null']
  return [`${/^[aeio]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`]
}

function toPath(path: readonly PropertyKey[]): (string | number)[] {
  return path.map((key) => (typeof key === 'symbol' ? String(key) : key))
}
