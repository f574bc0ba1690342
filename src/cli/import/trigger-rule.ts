// Converts a trigger-rule of adnanh/webhook to the proofs and conditions of mappings. Source: the public documentation of webhook.
import { takeStart } from '../../base/text.ts'
import { isJsonObject, type JsonValue } from '../../base/json.ts'
import { credentialHeaders, isSecretHeader } from '../../core/model/delivery.ts'
import { formatPath } from '../../base/path-text.ts'
import type { ConfigPath } from '../../core/model/issue.ts'
import type { VerifyInput } from '../../core/model/verify.ts'
import type { HmacScheme } from '../../model/scheme.ts'
import { builtInSenders } from '../../gateway/built-in.ts'
import type { Tools } from './draft.ts'
import { toVariableName, type Variable } from './notes.ts'

type Scalar = string | number | boolean | Variable

/** One combination of conditions that makes a rule true. Each condition lists the values that it accepts. */
export type Branch = {
  readonly verify?: Omit<VerifyInput, 'secret'> & { readonly secret: Variable }
  /** True: the rule compares a secret that cannot be checked here, so the hook token is required instead. */
  readonly needsToken?: true
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly payload: Readonly<Record<string, readonly Scalar[]>>
}

const maxBranches = 16
const always: Branch = { headers: {}, payload: {} }
const withToken: Branch = { ...always, needsToken: true }

/**
 * The branches of a rule: one for each mapping that the rule needs. Undefined if a part of the rule has no counterpart; a note names the
 * part. No part of a rule is left out, unless the hook token replaces it.
 */
export function convertRule(rule: JsonValue | undefined, at: ConfigPath, tools: Tools): readonly Branch[] | undefined {
  if (rule === undefined || rule === null) return [always]
  const [kind = '', ...more] = isJsonObject(rule) ? Object.keys(rule) : []
  const value = isJsonObject(rule) && more.length === 0 ? rule[kind] : undefined
  const path = [...at, kind]
  if ((kind === 'and' || kind === 'or') && Array.isArray(value)) {
    const parts = value.map((part, index) => convertRule(part, [...path, index], tools))
    const converted = parts.filter((part) => part !== undefined)
    if (converted.length < parts.length) return undefined
    const branches = kind === 'or' ? mergeValues(converted.flat()) : joinAll(converted)
    if (branches === undefined)
      return noteUnsupported(tools, path, 'needs two proofs. Split the hook, or write a verifier.')
    if (branches.length === 0) return noteUnsupported(tools, path, 'is never true.')
    return branches.length <= maxBranches
      ? branches
      : noteUnsupported(
          tools,
          path,
          `is true in ${branches.length} ways. Write a transform that returns null for the rest.`,
        )
  }
  if (kind === 'match' && isJsonObject(value)) {
    const branch = convertMatchRule(value, path, tools)
    return branch && [branch]
  }
  const what = kind === 'not' ? 'has no counterpart in a mapping' : 'is not a known rule'
  return noteUnsupported(tools, path, `${what}. Write a transform that returns null for requests to be left out.`)
}

function noteUnsupported({ notes }: Tools, path: ConfigPath, rest: string): undefined {
  notes.add(path, `${rest} The hook is not taken over.`)
  return undefined
}

/** The branches in which all parts are true. Undefined if a branch would need two proofs. */
function joinAll(parts: readonly (readonly Branch[])[]): readonly Branch[] | undefined {
  let joined: readonly Branch[] = [always]
  for (const part of parts) {
    const next: Branch[] = []
    for (const one of joined) {
      for (const other of part) {
        if (one.verify !== undefined && other.verify !== undefined) return undefined
        const headers = intersect(one.headers, other.headers)
        const payload = intersect(one.payload, other.payload)
        if (headers !== undefined && payload !== undefined) next.push({ ...one, ...other, headers, payload })
      }
    }
    joined = next
    // far more branches than `convertRule` accepts: further parts could multiply them without limit
    if (joined.length > 10 * maxBranches) return joined
  }
  return joined
}

type Values<T> = Readonly<Record<string, readonly T[]>>

/** Both groups of conditions as one. Undefined if no value satisfies both. */
function intersect<T>(one: Values<T>, other: Values<T>): Values<T> | undefined {
  const pairs = new Map(Object.entries(one))
  for (const [key, values] of Object.entries(other)) {
    const both = (pairs.get(key) ?? values).filter((value) => values.includes(value))
    if (both.length === 0) return undefined
    pairs.set(key, both)
  }
  return Object.fromEntries(pairs)
}

/** Branches that differ only in the value of one condition become one branch with a list of values. */
function mergeValues(branches: readonly Branch[]): readonly Branch[] {
  const [first, ...rest] = branches
  const only = first === undefined ? undefined : findOnlyCondition(first)
  if (first === undefined || only === undefined) return branches
  const { where, key } = only
  const all = rest.map(findOnlyCondition)
  if (!all.every((other) => other?.where === where && other.key === key)) return branches
  const values = branches.flatMap((branch) => [...(branch[where][key] ?? [])])
  return [{ ...always, [where]: { [key]: [...new Set(values)] } }]
}

function findOnlyCondition({
  verify,
  needsToken,
  headers,
  payload,
}: Branch): { where: 'headers' | 'payload'; key: string } | undefined {
  const keys = [
    ...Object.keys(headers).map((key) => ({ where: 'headers' as const, key })),
    ...Object.keys(payload).map((key) => ({ where: 'payload' as const, key })),
  ]
  return verify === undefined && needsToken === undefined && keys.length === 1 ? keys[0] : undefined
}

const tokenHint = 'The hook token is asked for instead: send it as "Authorization: Bearer".'
/** Matches the name of a secret. Not every name with `key` is one: `x-event-key` names an event. */
const secretName = /token|secret|passw|api[-_]?key|(?:^|[-_.])auth(?:$|[-_.]|orization)/i

function convertMatchRule(match: { [key: string]: JsonValue }, path: ConfigPath, tools: Tools): Branch | undefined {
  const { notes } = tools
  const type = String(match['type'])
  const parameter = isJsonObject(match['parameter']) ? match['parameter'] : {}
  const [source, name] = [String(parameter['source']), String(parameter['name'] ?? '')]
  const hash = /^payload-(?:hash|hmac)-(sha1|sha256|sha512)$/.exec(type)?.[1]
  if (hash !== undefined)
    return convertSignatureRule(match['secret'], { source, header: name.toLowerCase(), hash }, path, tools)
  if (type === 'ip-whitelist') {
    notes.add(path, 'is for the proxy here: let only these addresses through there.')
    return always
  }
  if (type !== 'value') {
    return noteUnsupported(
      tools,
      path,
      `has the type "${takeStart(type, 40)}", which has no counterpart. Write a transform or a verifier.`,
    )
  }
  const value = match['value']
  if (typeof value !== 'string' || value === '') return noteUnsupported(tools, path, 'has no value.')
  const id = String(path[0])
  switch (source) {
    case 'payload': {
      if (name === '') return noteUnsupported(tools, path, 'names no field of the payload.')
      const field = formatPath(name.split('.'))
      if (!secretName.test(name)) return { ...always, payload: { [field]: listScalars(value) } }
      notes.add(
        path,
        'is a secret in the payload, which proves less than a signature. The hook token is asked for too.',
      )
      return { ...always, payload: { [field]: [tools.secrets.addValue(`${toVariableName(id)}_SECRET`, value)] } }
    }
    case 'header':
      return buildHeaderBranch(name.toLowerCase(), value, path, tools)
    case 'url':
    case 'query':
      if (!secretName.test(name))
        return noteUnsupported(tools, path, 'is a query parameter. Write a transform that reads query.')
      notes.add(path, `is a secret in the URL, which ends up in logs. ${tokenHint}`)
      return withToken
    default:
      if (source === 'request' && name === 'method' && value.toUpperCase() === 'POST') return always
      return noteUnsupported(
        tools,
        path,
        `reads "${takeStart(source, 40)}", which conditions cannot read. Write a transform.`,
      )
  }
}

function buildHeaderBranch(header: string, value: string, path: ConfigPath, { secrets }: Tools): Branch {
  const isCredential = credentialHeaders.has(header) || isSecretHeader(header) || secretName.test(header)
  if (!isCredential) return { ...always, headers: { [header]: [value] } }
  const name = `${toVariableName(String(path[0]))}_SECRET`
  const [, basic] = /^basic +([\w+/=-]+)$/i.exec(header === 'authorization' ? value : '') ?? []
  if (basic !== undefined) {
    return {
      ...always,
      verify: { scheme: 'basic', secret: secrets.addValue(name, Buffer.from(basic, 'base64').toString()) },
    }
  }
  // the scheme of a known sender also reads the event and the delivery id
  const known = builtInSenders.schemes.find(
    (row) => row.kind === 'token' && row.header === header && row.source === header.split('-')[1],
  )
  const bare = header === 'authorization' ? value.replace(/^bearer +/i, '') : value
  const settings = known === undefined ? { scheme: 'token', header } : { scheme: known.id }
  return { ...always, verify: { ...settings, secret: secrets.addValue(name, bare) } }
}

/** The proof for a signature of the raw body. webhook compares signatures in hexadecimal, with or without the prefix `sha256=`. */
function convertSignatureRule(
  secret: JsonValue | undefined,
  { source, header, hash }: { source: string; header: string; hash: string },
  path: ConfigPath,
  tools: Tools,
): Branch | undefined {
  if (source !== 'header' || header === '')
    return noteUnsupported(tools, path, 'does not name the header with the signature.')
  if (typeof secret !== 'string' || secret === '') return noteUnsupported(tools, path, 'has no secret.')
  const kept = tools.secrets.addValue(`${toVariableName(String(path[0]))}_SECRET`, secret)
  const same = builtInSenders.schemes.filter(
    (row) => row.kind === 'hmac' && row.header === header && isBodyHash(row, hash),
  )
  const [only] = same
  if (only !== undefined && same.length === 1) return { ...always, verify: { scheme: only.id, secret: kept } }
  const prefix = header.startsWith('x-hub-signature') ? `${hash}=` : undefined
  if (prefix === undefined) {
    tools.notes.add(
      path,
      `becomes generic-hmac without a prefix. If the sender writes "${hash}=" before the signature, set verify.prefix.`,
    )
  } else {
    tools.notes.add(path, 'becomes generic-hmac. If Hookloom knows the sender, set its scheme instead, such as github.')
  }
  const algorithm = hash === 'sha1' ? 'sha1' : hash === 'sha512' ? 'sha512' : 'sha256'
  const settings = { scheme: 'generic-hmac', header, algorithm } as const
  return { ...always, verify: { ...settings, ...(prefix === undefined ? {} : { prefix }), secret: kept } }
}

function isBodyHash(row: HmacScheme, hash: string): boolean {
  const { algorithm = 'sha256', encoding = 'hex', template = '{body}', timestamp, secretEncoding = 'utf8' } = row
  return algorithm === hash && encoding === 'hex' && template === '{body}' && !timestamp && secretEncoding === 'utf8'
}

/** The values that match. webhook compares texts, so "42" also matches the number. */
function listScalars(value: string): readonly Scalar[] {
  if (value === 'true' || value === 'false') return [value, value === 'true']
  return String(Number(value)) === value && Number.isFinite(Number(value)) ? [value, Number(value)] : [value]
}
