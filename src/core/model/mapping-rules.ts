// Reports the parts of a mapping that can never have an effect: a condition that no request fulfils, or a key that its action does not use.
import { trimSlashes } from '../../base/text.ts'
import { credentialHeaders, isSecretHeader, normalizeEscapes } from './delivery.ts'
import { type ConfigIssue, type ConfigPath, toIssue } from './issue.ts'
import { keyRules } from './job-keys.ts'
import { Mapping } from './mapping.ts'

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i
/** Characters that occur in a URL only percent-encoded, or only after its path. */
const outsidePaths = /[^\x21-\x7e]|[?#]/u

/** What stands for any name in the routes of other programs: `jobs/*`, `users/:id`, `users/{id}`. */
const patternInPath = /\*|(?<=^|\/):[A-Za-z_]\w*|\{\w*\}/

/** The name of a hook in the form that the router compares. */
export function normalizeHookName(path: string): string {
  return normalizeEscapes(trimSlashes(path.trim()))
}

export function findConditionIssues({ match }: Mapping, hooksPath: string, at: ConfigPath): ConfigIssue[] {
  return [
    ...findPathIssues(match.path, hooksPath, [...at, 'match', 'path']),
    ...Object.keys(match.headers ?? {}).flatMap((name) => findHeaderIssues(name, [...at, 'match', 'headers', name])),
  ]
}

function findPathIssues(path: string | undefined, hooksPath: string, at: ConfigPath): ConfigIssue[] {
  const name = normalizeHookName(path ?? '')
  const prefix = `${hooksPath.slice(1)}/`
  if (/^https?:\/\//i.test(name)) {
    return [toIssue(at, 'must be the part of the URL after hooks.path, such as "github"; found a whole URL.')]
  }
  if (name.startsWith(prefix)) {
    return [toIssue(at, `must be the part of the URL after hooks.path: write ${quote(name.slice(prefix.length))}.`)]
  }
  const pattern = patternInPath.exec(name)?.[0]
  if (pattern !== undefined) {
    const rest =
      'Write each name into a mapping of its own, or leave out "path": the mapping then takes every name, which is {{path}}.'
    return [toIssue(at, `contains "${pattern}", and names are compared as they are, without patterns. ${rest}`)]
  }
  const odd = outsidePaths.exec(name)?.[0]
  if (odd === undefined) return []
  if (odd === '?' || odd === '#') {
    return [toIssue(at, `contains "${odd}", which ends the path of a URL. Remove it and the text after it.`)]
  }
  const written = name.replace(/[^\x21-\x7e]+/g, encodePercent)
  return [toIssue(at, `contains ${quote(odd)}. Names are compared in their URL-encoded form: write ${quote(written)}.`)]
}

function encodePercent(text: string): string {
  return Buffer.from(text).toString('hex').toUpperCase().replace(/../g, '%$&')
}

function findHeaderIssues(name: string, at: ConfigPath): ConfigIssue[] {
  if (!headerName.test(name)) return [toIssue(at, 'is not a header name.')]
  const isHidden = credentialHeaders.has(name.toLowerCase()) || isSecretHeader(name.toLowerCase())
  return isHidden ? [toIssue(at, 'is a credential, which conditions cannot read. Check the sender with "verify".')] : []
}

// as: these are the keys of the schema that the type is derived from
const keys = Object.keys(Mapping.shape) as readonly (keyof Mapping)[]
const agentKeys = keys.filter((key) => keyRules.get(Mapping.shape[key])?.onlyForAgent)
const literalKeys = keys.filter((key) => keyRules.get(Mapping.shape[key])?.isLiteral)

const whyNoTurn = {
  wake: 'a wake goes to the main session of the default agent',
  deliver: 'a message goes to its channel without an agent',
} as const

export function findKeyUseIssues(mapping: Mapping, at: ConfigPath): ConfigIssue[] {
  const { action } = mapping
  const issues: ConfigIssue[] = []
  const report = (key: keyof Mapping, rest: string) => issues.push(toIssue([...at, key], rest))

  const template = action === 'wake' ? 'textTemplate' : 'messageTemplate'
  const other = action === 'wake' ? 'messageTemplate' : 'textTemplate'
  if (mapping[template] === undefined && mapping[other] !== undefined) {
    report(other, `is not used by the action "${action}". Its template is ${template}.`)
  }
  if (mapping.response !== undefined && mapping.forEach !== undefined) {
    report('response', 'is not used with forEach: the answer then lists all actions. Remove one of the two.')
  }
  for (const key of agentKeys) {
    if (action === 'agent' || mapping[key] === undefined) continue
    if (action === 'deliver' && keyRules.get(Mapping.shape[key])?.alsoForDeliver) continue
    report(key, `is only for the action "agent": ${whyNoTurn[action]}.`)
  }
  if (Array.isArray(mapping.to) && mapping.channel !== 'last')
    report('channel', 'is not used: each entry of "to" names its channel. Remove one of the two.')
  if (mapping.response !== undefined && action === 'deliver' && Array.isArray(mapping.to) && mapping.to.length > 1)
    report('response', 'is not used with several recipients: the answer then lists all actions. Remove one of the two.')
  const { module = '', shadow } = mapping.transform ?? {}
  if (
    shadow !== undefined &&
    (shadow === module || readFolderAndExtension(shadow) !== readFolderAndExtension(module))
  ) {
    const rest = `must be another file of the folder of ${quote(module)}, with the same extension, so that it can take its place.`
    issues.push(toIssue([...at, 'transform', 'shadow'], rest))
  }
  for (const key of literalKeys) {
    const value = mapping[key]
    if (JSON.stringify(value ?? '').includes('{{'))
      report(key, 'must be literal, found a template. A transform can compute it.')
  }
  return issues
}

/** The folder and the extension of a module. */
function readFolderAndExtension(module: string): string {
  const path = module.replace(/^(\.\/+)+/, '')
  return `${path.slice(0, path.lastIndexOf('/') + 1)} ${/\.[^./]*$/.exec(path)?.[0] ?? ''}`
}

function quote(text: string): string {
  return JSON.stringify(text)
}
