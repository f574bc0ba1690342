// Schemas of the exports that integrators' modules must have. They check a module when it is loaded, because the loader does not check its types.
import { z } from 'zod'
import type { SimpleChannelDefinition } from './channel.ts'
import { reservedChannelNames } from './config/channels.ts'
import { toDottedPath, describeIssue } from '../core/model/issue.ts'
import { type PluginKind, type PluginPart, readPluginKind } from './plugin.ts'
import type { Preset } from './preset.ts'
import type { VerifierDefinition } from './proof.ts'
import { plainName } from '../base/names.ts'
import { findNearest, takeStart } from '../base/text.ts'
import { CodeShape, SenderShape } from './sender-shape.ts'
import { aFunction, nonBlank } from '../core/model/values.ts'

/** `channels.<name>` has these keys of its own. */
const channelName = plainName.refine(
  (name) => !reservedChannelNames.includes(name),
  'must not be default, retry, own or last',
)

const VerifierShape = CodeShape.extend({ scheme: plainName, source: nonBlank.optional() })

const aSchema = z.custom<unknown>(isSchema, 'must be a schema with safeParse, such as one of zod')

const PresetShape = z.looseObject({
  name: nonBlank,
  title: nonBlank,
  options: aSchema,
  setup: z
    .looseObject({
      key: z.looseObject({ option: z.enum(['secret', 'publicKey']), from: z.enum(['operator', 'sender']) }).optional(),
      options: z.record(z.string(), z.union([z.string(), z.boolean()])).optional(),
    })
    .optional(),
  verifiers: z.array(VerifierShape).optional(),
  build: aFunction,
})

const ChannelShape = z.looseObject({
  name: channelName.optional(),
  about: nonBlank.optional(),
  options: aSchema.optional(),
  maxChars: z.int().min(100).optional(),
  dedupes: z.boolean().optional(),
  whyNot: aFunction.optional(),
  send: aFunction.optional(),
  create: aFunction.optional(),
  probe: aFunction.optional(),
})
const OwnChannelShape = ChannelShape.extend({ send: aFunction })
const PluginChannelShape = ChannelShape.extend({ name: channelName }).refine(
  ({ send, create }) => (send === undefined) !== (create === undefined),
  'must have send or create, and not both',
)

const RunnerShape = z.looseObject({
  name: plainName,
  about: nonBlank,
  options: aSchema.optional(),
  ready: z.record(z.string(), z.looseObject({})).optional(),
  create: aFunction,
})

const OutboxShape = z.looseObject({
  name: plainName,
  about: nonBlank,
  remembers: z.boolean(),
  options: aSchema,
  create: aFunction,
})

const SourceShape = z.looseObject({
  name: plainName,
  about: nonBlank,
  options: aSchema,
  receives: z.boolean().optional(),
  account: aFunction,
  create: aFunction,
})

const PartsShape = z.looseObject({ mappings: z.array(z.unknown()), maxBodyBytes: z.int().positive().optional() })

export type ParseResult<T> =
  | { readonly ok: true; readonly value: T }
  /** One sentence for each fault. It begins with the path, if there is one. */
  | { readonly ok: false; readonly faults: readonly string[] }

export const safeParsePreset = createParser<Preset>(PresetShape)
export const safeParseVerifier = createParser<VerifierDefinition>(VerifierShape)
export const safeParseChannel = createParser<SimpleChannelDefinition<unknown>>(OwnChannelShape)
/** Parses the result of `build`. Its mappings are parsed one by one. */
export const safeParsePresetParts = createParser<z.infer<typeof PartsShape>>(PartsShape)

const shapes: Readonly<Record<PluginKind, z.ZodType>> = {
  channel: PluginChannelShape,
  runner: RunnerShape,
  outbox: OutboxShape,
  sender: SenderShape,
  source: SourceShape,
}

/** The definitions of a plugin: its default export, or each entry of it. */
export function safeParsePlugin(value: unknown): ParseResult<readonly PluginPart[]> {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  const faults: string[] = []
  const parts = all.flatMap((definition, index) => {
    const kind = readPluginKind(definition)
    const at = Array.isArray(value) ? [index] : []
    if (kind === undefined) faults.push(`${toDottedPath(at)} is not what defineChannel or its like returns`.trim())
    const parsed = kind && shapes[kind].safeParse(definition)
    if (parsed?.success === false) faults.push(...describeIssues(parsed.error, definition, at))
    // as: for the reason in `createParser`
    return parsed?.success === true ? [{ kind, definition } as PluginPart] : []
  })
  if (all.length === 0) faults.push('it is an empty list')
  return faults.length === 0 ? { ok: true, value: parts } : { ok: false, faults }
}

/** The keys of an object schema; an empty list for any other schema. */
export function listKeys(schema: object): string[] {
  return 'shape' in schema && typeof schema.shape === 'object' ? Object.keys(schema.shape ?? {}) : []
}

/** `known`: the keys that the object at the path may have. */
export function describeUnknownKey(at: readonly PropertyKey[], key: string, known: readonly string[]): string {
  const near = findNearest(key, known)
  const others =
    known.length === 0
      ? 'No key is known here: a plugin brings them, by its name in plugins.'
      : `Keys here: ${known.join(', ')}.`
  return `${toDottedPath([...at, key])} is an unknown key. ${near === undefined ? others : `Did you mean ${near}?`}`
}

/** The issues of a failed parse as sentences, each with its path. `known`: the keys of the schema, for a key that it does not know. */
export function describeIssues(
  error: z.ZodError,
  input: unknown,
  at: readonly PropertyKey[] = [],
  known: readonly string[] = [],
): string[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys' && issue.path.length === 0 && known.length > 0) {
      return issue.keys.map((key) => describeUnknownKey(at, takeStart(key, 60), known))
    }
    const path = toDottedPath([...at, ...issue.path])
    const isOwn = issue.message.startsWith('must ')
    return isOwn ? `${path} ${issue.message}`.trim() : describeIssue(issue, input, at)
  })
}

function createParser<T>(shape: z.ZodType): (value: unknown) => ParseResult<T> {
  return (value) => {
    const parsed = shape.safeParse(value)
    // as: the schema checks every property that is called or read. A copy would lose the object's `this`.
    return parsed.success ? { ok: true, value: value as T } : { ok: false, faults: describeIssues(parsed.error, value) }
  }
}

function isSchema(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'safeParse' in value && typeof value.safeParse === 'function'
}
