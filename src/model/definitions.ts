// Schemas of the exports that integrators' modules must have. They check a module when it is loaded, because the loader does not check its types.
import { z } from 'zod'
import type { ChannelDefinition } from './channel.ts'
import { toDottedPath, describeIssue } from './config/issue.ts'
import type { Preset } from './preset.ts'
import type { VerifierDefinition } from './verifier.ts'
import { nonBlank, plainName } from './values.ts'

const aFunction = z.custom<unknown>((value) => typeof value === 'function', 'must be a function')
const headerNames = z.array(z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/, 'must be the name of a header'))

const VerifierShape = z.looseObject({
  scheme: plainName,
  source: nonBlank.optional(),
  headers: headerNames,
  secretHeaders: headerNames.optional(),
  minSecretBytes: z.int().positive().optional(),
  verify: aFunction,
  sign: aFunction.optional(),
})

const PresetShape = z.looseObject({
  name: nonBlank,
  title: nonBlank,
  options: z.custom<unknown>(isSchema, 'must be a schema with safeParse, such as one of zod'),
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
  options: z.custom<unknown>(isSchema, 'must be a schema with safeParse, such as one of zod').optional(),
  maxChars: z.int().min(100).optional(),
  dedupes: z.boolean().optional(),
  whyNot: aFunction.optional(),
  send: aFunction,
  probe: aFunction.optional(),
})

const PartsShape = z.looseObject({ mappings: z.array(z.unknown()), maxBodyBytes: z.int().positive().optional() })

type ParseResult<T> =
  | { readonly ok: true; readonly value: T }
  /** One sentence for each fault. It begins with the path, if there is one. */
  | { readonly ok: false; readonly faults: readonly string[] }

export function safeParsePreset(value: unknown): ParseResult<Preset> {
  // as: the schema checks every property that is called or read. A copy would lose the object's `this`.
  return safeParseShape(PresetShape, value, () => value as Preset)
}

export function safeParseVerifier(value: unknown): ParseResult<VerifierDefinition> {
  // as: for the reason in `safeParsePreset`
  return safeParseShape(VerifierShape, value, () => value as VerifierDefinition)
}

export function safeParseChannel(value: unknown): ParseResult<ChannelDefinition<unknown>> {
  // as: for the reason in `safeParsePreset`
  return safeParseShape(ChannelShape, value, () => value as ChannelDefinition<unknown>)
}

/** The result of `build`. Its mappings are parsed one by one. */
export function safeParsePresetParts(value: unknown): ParseResult<z.infer<typeof PartsShape>> {
  return safeParseShape(PartsShape, value, (parts) => parts)
}

/** The issues of a failed parse as sentences, each with its path. */
export function describeIssues(error: z.ZodError, input: unknown, at: readonly PropertyKey[] = []): string[] {
  return error.issues.map((issue) => {
    const path = toDottedPath([...at, ...issue.path])
    const isOwn = issue.message.startsWith('must ')
    return isOwn ? `${path} ${issue.message}`.trim() : describeIssue(issue, input, at)
  })
}

function safeParseShape<Shape, T>(
  shape: z.ZodType<Shape>,
  value: unknown,
  toValue: (parsed: Shape) => T,
): ParseResult<T> {
  const parsed = shape.safeParse(value)
  return parsed.success
    ? { ok: true, value: toValue(parsed.data) }
    : { ok: false, faults: describeIssues(parsed.error, value) }
}

function isSchema(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'safeParse' in value && typeof value.safeParse === 'function'
}
