// The bodies of the calls of the API, each with its form in words, its limit, and what the audit log shows of it.
import { z } from 'zod'
import { plainName } from '../../base/names.ts'
import { defaultReplays, maxCodeChars, maxReplays } from './limits.ts'
import { Rights } from './rights.ts'

export type CallBody = {
  readonly schema: z.ZodType
  /** What a refusal says about the form. */
  readonly form: string
  /** `request`: the body has a whole request of a sender. */
  readonly maxBytes: number | 'request'
  readonly isOptional?: boolean
  /** The fields that an audit entry shows: never a payload, and never a secret. */
  readonly shown: readonly string[]
  /** A field of which an audit entry shows the hash. */
  readonly hashed?: string
}

const maxTemplateChars = 100_000
const texts = z.record(z.string().max(200), z.string().max(20_000))
const TypedBody = z.strictObject({
  hook: z.string().min(1).max(512),
  headers: texts.default({}),
  query: texts.default({}),
  body: z.string(),
})
const typedForm = {
  form: 'The body must be {"hook": "<name>", "headers": {}, "query": {}, "body": "<text>"}.',
  maxBytes: 'request',
} as const
const Template = z.string().min(1).max(maxTemplateChars)
const SavedTemplate = z.strictObject({ mappingId: z.string().max(500).optional(), template: Template })
const Draft = SavedTemplate.partial({ template: true }).extend({
  code: z.strictObject({ module: z.string().min(1).max(500), text: z.string().max(maxCodeChars) }).optional(),
})

/** A template and conditions that are tried with kept requests. */
export const TryKeptBody = z.strictObject({
  last: z.number().int().min(1).max(maxReplays),
  hook: z.string().max(512).optional(),
  source: z.string().max(512).optional(),
  draft: z.strictObject({ template: Template, match: z.record(z.string(), z.unknown()).default({}) }),
})

/** A draft of a hook that is compared with the live code. */
const DraftReplay = Draft.extend({
  hook: z.string().min(1).max(512),
  last: z.number().int().min(1).max(maxReplays).default(defaultReplays),
})

const FixtureOptions = z.strictObject({ name: z.string().max(200).optional(), module: z.string().max(500).optional() })

export const typedRequest = { ...typedForm, schema: TypedBody, shown: ['hook'] } as const satisfies CallBody
export const tried = {
  ...typedForm,
  schema: z.union([TryKeptBody, TypedBody.extend({ draft: Draft.optional() })]),
  shown: [],
} as const satisfies CallBody
export const draftReplay = { ...typedForm, schema: DraftReplay, shown: [] } as const satisfies CallBody
export const typedFixture = {
  ...typedForm,
  schema: TypedBody.extend(FixtureOptions.shape),
  shown: ['hook', 'name', 'module'],
} as const satisfies CallBody
export const template = {
  ...typedForm,
  schema: SavedTemplate.extend({ hook: z.string().min(1).max(512) }),
  shown: ['mappingId', 'hook'],
} as const satisfies CallBody

export const fixtureOptions = {
  schema: FixtureOptions,
  form: 'The body must be empty, or {"name": "<file name>", "module": "<module>"}, each optional.',
  maxBytes: 4_096,
  isOptional: true,
  shown: ['module', 'name'],
} as const satisfies CallBody

export const editedBody = {
  schema: z.strictObject({ body: z.string() }),
  form: 'The body must be {"body": "<text>"}, or empty to send the same again.',
  maxBytes: 'request',
  isOptional: true,
  shown: [],
  hashed: 'body',
} as const satisfies CallBody

const line = z.string().trim().min(1)
const asked = { what: line, reason: line.optional(), by: line.optional() }
const askedForm = {
  form: 'The body must be JSON such as {"what": "mapping:github", "reason": "The repository moves.", "by": "ada"}, and of a pause also "until", a time such as 2026-01-02T03:04:05Z.',
  maxBytes: 16_384,
} as const
const AskedChange = z.strictObject(asked)

export const askedChange = {
  ...askedForm,
  schema: AskedChange,
  shown: ['what', 'by', 'reason'],
} as const satisfies CallBody
export const askedPause = {
  ...askedForm,
  schema: z.strictObject({ ...asked, until: z.iso.datetime({ offset: true }).optional() }),
  shown: ['what', 'until', 'by', 'reason'],
} as const satisfies CallBody
export const askedCancel = {
  ...askedForm,
  schema: AskedChange.omit({ what: true }),
  isOptional: true,
  shown: ['by', 'reason'],
} as const satisfies CallBody

export const newToken = {
  schema: z.strictObject({ name: plainName, may: Rights, expiresAt: z.iso.datetime({ offset: true }).optional() }),
  form: 'The body must be JSON such as {"name": "ci", "may": ["send:deploy", "runs"], "expiresAt": "2027-01-31T12:00:00Z"}. A right is read, operate, admin, runs, or send:<hook>.',
  maxBytes: 65_536,
  shown: ['name', 'may', 'expiresAt'],
} as const satisfies CallBody

/** A change that a tool of `hookloom mcp --write` made. `what`: the path of a file below the config directory, or one name for several files. */
export const writtenFile = {
  schema: z.object({ what: z.string().min(1).max(1_000), tool: z.string().min(1).max(100) }),
  form: 'The body must have "what" and "tool".',
  maxBytes: 10_000,
  shown: ['what', 'tool'],
} as const satisfies CallBody

/** `key`: the public part of a key, which ends with the id of a token for a key with few rights. */
export const proofQuestion = {
  schema: z.strictObject({ key: z.hex().min(32).max(128), challenge: z.hex().length(64) }),
  form: 'The body must be {"key": "<at least 32 hex digits>", "challenge": "<64 hex digits>"}.',
  maxBytes: 1_024,
  shown: [],
} as const satisfies CallBody
