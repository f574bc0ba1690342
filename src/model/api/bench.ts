// The answers of the admin API about hooks and their bench. Times are ISO 8601.
import { z } from 'zod'
import { AnyObject, readonlyList, TriedMapping } from './answers.ts'
import { SenderFields } from './operations.ts'
import { ReplayReport } from './replay.ts'

/** A mapping of a hook. Lists have the order in which mappings are tried. */
const HookMapping = z.object({
  id: z.string(),
  action: z.enum(['wake', 'agent', 'deliver']),
  conditions: z
    .string()
    .nullable()
    .describe('Its conditions besides the path, as JSON, without the values of headers; null if there are none.'),
  scheme: z
    .string()
    .nullable()
    .describe('The scheme by which its sender proves itself; null: the hook token opens it.'),
  template: z.string().nullable().describe('The template of its message or text; null if it has none.'),
  transform: z
    .object({
      module: z.string(),
      file: z.string().nullable(),
      problem: z.string().nullable(),
      shadow: z.string().nullable(),
    })
    .nullable()
    .describe('`file`: absolute. `problem`: why the module does not load. `shadow`: how its shadow differs, in words.'),
  agentId: z.string().nullable().describe('The agent of its turns; null if it has none. Code may choose another one.'),
  model: z.string().nullable().describe('The model of the agent; without one, its runner.'),
  to: readonlyList(z.string()).describe(
    'The channels of its messages or replies, each with the recipient, such as `telegram 42`.',
  ),
  isEditable: z.boolean().describe('Whether `POST /api/mappings` can change its template.'),
  warnings: readonlyList(z.string()).describe(
    'Each names a path of its templates and conditions that no known request has.',
  ),
})

export const HookCounts = z.object({
  deliveries: z.number(),
  parked: z.number(),
  duplicates: z.number(),
  refused: z.number(),
})
export type HookCounts = z.infer<typeof HookCounts>

/** `name`: null for the mappings that take every name. `lastHour`: deliveries by their present state; `duplicates` and `refused` of this gateway. */
export const HookFields = z.object({
  name: z.string().nullable(),
  isBuiltIn: z.boolean(),
  proof: z.object({ token: z.boolean(), schemes: readonlyList(z.string()) }),
  mappings: readonlyList(HookMapping),
  lastHour: HookCounts,
  lastFailure: z
    .object({
      kind: z.enum(['parked', 'dead', 'failing', 'refused']),
      id: z.string(),
      at: z.string(),
      title: z.string(),
    })
    .nullable()
    .describe('The newest delivery, run or refused request that needs a person.'),
  open: z
    .record(z.enum(['parked', 'dead', 'failing', 'refused']), z.number())
    .describe('How many deliveries, runs and refused requests need a person.'),
  day: z
    .object({ since: z.string(), deliveries: readonlyList(z.number()), parked: readonlyList(z.number()) })
    .describe('The deliveries of the last 24 hours by the hour, the oldest first. `since`: counted from this time on.'),
  senders: readonlyList(
    SenderFields.pick({ source: true, sourceName: true, lastAt: true, usualMs: true, silentSince: true }),
  ).describe('Who sent to the hook: see `GET /api/senders`.'),
})
export type HookFields = z.infer<typeof HookFields>

/**
 * `canEdit`: `hookloom dev` runs the gateway, so the page may change the templates of the configuration. `countedSince`: since when the counts of
 * `lastHour` are complete: deliveries are counted in the store, the others since the start of this gateway.
 */
export const HooksFields = z.object({
  hooksUrl: z.string().nullable(),
  dir: z.string().describe('The config directory.'),
  canEdit: z.boolean(),
  countedSince: z.object({ deliveries: z.string(), others: z.string() }),
  hooks: readonlyList(HookFields),
})
export type HooksFields = z.infer<typeof HooksFields>

/** A request with a text as its body. */
export const TypedRequest = z.object({
  hook: z.string().describe('The name of the hook.'),
  headers: z.record(z.string(), z.string()),
  query: z.record(z.string(), z.string()),
  body: z.string(),
})
export type TypedRequest = z.infer<typeof TypedRequest>

/** `kept`: a delivery, whose request is at `GET /api/deliveries/<id>/request`. */
export const SampleFields = z.discriminatedUnion('kind', [
  z.object({ name: z.string(), kind: z.enum(['fixture', 'bundled']), request: TypedRequest }),
  z.object({
    name: z.string(),
    kind: z.literal('kept'),
    deliveryId: z.string(),
    receivedAt: z.string(),
    summary: z.string().describe('The first line of what became of it.'),
  }),
])
export type SampleFields = z.infer<typeof SampleFields>

/** The text of a module of the hook. Only a gateway of `hookloom dev` shows it. */
export const ModuleText = z.object({ module: z.string().describe('As a mapping names it.'), text: z.string() })
export type ModuleText = z.infer<typeof ModuleText>

/** `channel`: null if the text goes nowhere; `problem` says why. */
const TargetFields = z.object({
  channel: z.string().nullable(),
  to: z.string().nullable(),
  problem: z.string().nullable(),
})
export type TargetFields = z.infer<typeof TargetFields>

/** The outcome that a request would have. */
export const TriedFields = z.object({
  isLive: z.boolean().describe('False: a saved file is not live. The request was tried with the files on disk.'),
  source: z.string().nullable(),
  event: z.string().nullable(),
  decision: z.enum(['accept', 'skip', 'park', 'refuse']),
  why: z.string().nullable().describe('The reason for a skip.'),
  mappingId: z.string().nullable(),
  trace: readonlyList(TriedMapping),
  log: readonlyList(z.string()),
  count: z.number().describe('The number of actions. `actions` has the first of them.'),
  actions: readonlyList(
    z.object({ fields: AnyObject, prompt: z.string().nullable(), targets: readonlyList(TargetFields) }),
  ).describe('`prompt`: as the agent would read it; null for an event. `targets`: the recipients of its text now.'),
  response: z
    .object({ status: z.number(), contentType: z.string(), body: z.string() })
    .nullable()
    .describe('The answer to the sender in place of the receipt.'),
  problem: z
    .object({
      code: z.string(),
      status: z.number(),
      detail: z.string(),
      frame: z.string().nullable(),
    })
    .nullable(),
  tookMs: z.number(),
})
export type TriedFields = z.infer<typeof TriedFields>

/** The results of an unsaved template and unsaved conditions for kept requests, the newest first. */
export const TriedDraft = z.object({
  tried: readonlyList(
    z.object({
      deliveryId: z.string(),
      receivedAt: z.string(),
      hook: z.string(),
      source: z.string().nullable(),
      event: z.string().nullable(),
      takenBy: z.string().nullable().describe('The id of the mapping that took the request when it came.'),
      provenBy: z.string().nullable().describe('The id of the mapping whose `verify` the request passed. Null: none.'),
      matches: z.boolean(),
      why: z.string().describe('Why the conditions are true or not.'),
      message: z.string().nullable().describe('A long message is cut. Null: the request does not match, or it fails.'),
      problem: z.string().nullable(),
    }),
  ),
  empty: readonlyList(z.object({ path: z.string(), count: z.number(), near: z.string().nullable() })).describe(
    'Paths of the template that are missing or empty in matching requests. `near`: a similar path that a request has.',
  ),
})
export type TriedDraft = z.infer<typeof TriedDraft>

/** What an unsaved template changes. */
export const DraftReport = z.object({
  report: ReplayReport.describe('Compares the live code with the files on disk and the template.'),
  unread: readonlyList(z.object({ path: z.string(), near: z.string().nullable(), text: z.string() })).describe(
    'Paths of the template that no known request has. `near`: a similar path that requests have. `text`: both in a sentence.',
  ),
})
export type DraftReport = z.infer<typeof DraftReport>

/** The answer of the hook to a request that the page sent. `note`: why it was sent unsigned. */
export const SentFields = z.object({
  status: z.number(),
  body: z.string(),
  deliveryId: z.string().nullable(),
  note: z.string().nullable(),
})
export type SentFields = z.infer<typeof SentFields>

/** A transform that was made, with its types, its first fixture and its mapping. */
export const MadeTransformFields = z.object({ module: z.string(), file: z.string() })
export type MadeTransformFields = z.infer<typeof MadeTransformFields>

/** A template that was saved. `shadowedBy`: an earlier mapping that may take the same requests. */
export const SavedMappingFields = z.object({
  file: z.string(),
  mappingId: z.string(),
  shadowedBy: z.string().nullable(),
})
export type SavedMappingFields = z.infer<typeof SavedMappingFields>
