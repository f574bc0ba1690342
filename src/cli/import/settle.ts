// Turns a draft into a configuration that the gateway accepts. Parts that it would refuse are left out and listed with the reason.
import { toMappingParts } from '../../gateway/generation/generation.ts'
import { substituteEnv, type Env } from '../../gateway/config/env.ts'
import { toConfigIssues } from '../../gateway/config/issues.ts'
import { ConfigSchema } from '../../gateway/config/keys.ts'
import { readMappingId } from '../../core/model/mapping.ts'
import { findConfigIssues } from '../../model/config/rules.ts'
import { type ConfigIssue, type ConfigPath, toDottedPath } from '../../core/model/issue.ts'
import { Problem } from '../../core/model/problem.ts'
import { builtInSenders } from '../../gateway/built-in.ts'
import { compileMapping } from '../../core/mapping/compile.ts'
import { type ImportDraft, type DraftMapping, type Fields, escapeTexts } from './draft.ts'
import type { Notes } from './notes.ts'

export type Settled = { readonly config: Fields; readonly mappings: readonly DraftMapping[] }

/** The keys that a mapping can lose: without them, it still matches the same requests and answers in the same chat. */
const optionalKeys = new Set([
  'id',
  'name',
  'wakeMode',
  'messageTemplate',
  'textTemplate',
  'model',
  'thinking',
  'timeoutSeconds',
])
const maxRounds = 1_000
const requiredPaths = new Set(['hooks.token', 'gateway.token'])

/** Leaves out the parts that the gateway would refuse. `env`: the variables that the draft reads. Throws `config-invalid` if the gateway would
 * refuse a required part. */
export function dropRefusedParts(draft: ImportDraft, env: Env, notes: Notes): Settled {
  const onText = (path: ConfigPath) => notes.add(path, 'names a variable, which is plain text here. Write the value.')
  let mappings = draft.mappings.map(({ from, mapping }): DraftMapping => {
    return { from, mapping: escapeTexts(mapping, (path) => onText([...from, ...path])) }
  })
  let config: Fields = escapeTexts(draft.config, onText)
  for (let round = 0; round < maxRounds; round += 1) {
    const whole = joinMappings(config, mappings)
    const [issue] = findIssues(whole, env)
    if (issue === undefined) return { config: whole, mappings }
    const { path } = issue
    if (requiredPaths.has(toDottedPath(path)))
      throw new Problem('config-invalid', `The file cannot be taken over: ${issue.text}`)
    const rest = issue.text.slice(toDottedPath(path).length).trim()
    const index = path[0] === 'hooks' && path[1] === 'mappings' ? path[2] : undefined
    const mapping = typeof index === 'number' ? mappings[index] : undefined
    if (mapping === undefined) {
      config = removeKey(config, path)
      notes.add(path, rest.startsWith(':') ? `${rest}. It is left out.` : `${rest} It is left out.`)
      continue
    }
    const [key = ''] = path.slice(3)
    const isKept = path.length === 4 && optionalKeys.has(String(key)) && Object.hasOwn(mapping.mapping, key)
    const { [String(key)]: _left, ...kept } = mapping.mapping
    mappings = mappings.flatMap((other) => {
      if (other !== mapping) return [other]
      return isKept ? [{ from: other.from, mapping: kept }] : []
    })
    const sentence = rest.startsWith(':') ? `${rest}.` : rest
    notes.add(
      [...mapping.from, ...path.slice(3)],
      `${sentence} The ${isKept ? 'key is left out' : 'mapping is not taken over'}.`,
    )
  }
  throw new Problem('config-invalid', 'The file has too many keys that Hookloom does not take. Nothing was written.')
}

function joinMappings(config: Fields, mappings: readonly DraftMapping[]): Fields {
  const hooks = config['hooks']
  const settings = typeof hooks === 'object' && hooks !== null ? hooks : {}
  return { ...config, hooks: { ...settings, mappings: mappings.map(({ mapping }) => mapping) } }
}

function findIssues(whole: Fields, env: Env): readonly ConfigIssue[] {
  const { value, issues } = substituteEnv(whole, env)
  if (issues.length > 0) return issues
  const parsed = ConfigSchema.safeParse(value)
  if (!parsed.success) return parsed.error.issues.flatMap((issue) => toConfigIssues(issue, value))
  const wrong = findConfigIssues(parsed.data)
  if (wrong.length > 0) return wrong
  return parsed.data.hooks.mappings.flatMap((mapping, index) => {
    try {
      compileMapping(
        { ...mapping, id: readMappingId(mapping, index) },
        undefined,
        toMappingParts({ senders: builtInSenders }),
      )
      return []
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const path: ConfigPath = ['hooks', 'mappings', index]
      return [{ path, text: `${toDottedPath(path)} is not valid here: ${error.message}` }]
    }
  })
}

/** A copy without the key. If the key is missing, the innermost existing object of its path is removed instead. Top-level sections stay:
 * throws `config-invalid` if nothing below them can be removed. */
function removeKey(config: Fields, path: ConfigPath): Fields {
  const copy = structuredClone(config)
  for (let length = path.length; length >= 2; length -= 1) {
    const parent = path.slice(0, length - 1).reduce<unknown>(readChild, copy)
    const key = path[length - 1]
    if (typeof parent !== 'object' || parent === null || key === undefined || !Object.hasOwn(parent, key)) continue
    if (Array.isArray(parent)) parent.splice(Number(key), 1)
    else Reflect.deleteProperty(parent, key)
    return copy
  }
  throw new Problem('config-invalid', `The file cannot be taken over: ${toDottedPath(path)} is missing or invalid.`)
}

function readChild(value: unknown, key: string | number): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
}
