// The answers of the admin API about kept requests: replays, and fixtures of deliveries.
import { z } from 'zod'
import { readonlyList } from './answers.ts'

/** How an edit changes the outcome of a request. */
export const ReplayClass = z.enum([
  'same',
  'changed',
  'now skipped',
  'now refused',
  'now parks',
  'now works',
  'another mapping',
])
export type ReplayClass = z.infer<typeof ReplayClass>

/**
 * A mapping whose transform has a shadow, and how the outcomes of the two have differed since one of them changed. Each gateway counts for
 * itself, in memory.
 */
export const ShadowFields = z.object({
  mappingId: z.string(),
  module: z.string(),
  shadow: z.string(),
  problem: z.string().nullable().describe('Why the shadow does not run.'),
  since: z.string(),
  runs: z.number(),
  dropped: z.number().describe('Requests that the shadow did not run on, because it has only a tenth of the time.'),
  counts: z.partialRecord(ReplayClass, z.number()),
  differences: readonlyList(
    z.object({
      deliveryId: z.string(),
      receivedAt: z.string(),
      class: ReplayClass,
      path: z.string().describe('The first part of the outcome that differs, such as `actions[0].message`.'),
    }),
  ).describe('The newest 50, newest first.'),
})
export type ShadowFields = z.infer<typeof ShadowFields>

/** A long text begins shortly before the first difference. Null if the field is missing. */
export const ChangeFields = z.object({
  path: z.string(),
  before: z.unknown(),
  after: z.unknown(),
  recorded: z
    .unknown()
    .optional()
    .describe('The value when the request arrived, if the live code now returns another one.'),
})
export type ChangeFields = z.infer<typeof ChangeFields>

/** Requests whose outcomes change at the same paths. The first request is the example. */
export const GroupFields = z.object({
  paths: readonlyList(z.string()),
  count: z.number(),
  percent: z.number(),
  deliveryIds: readonlyList(z.string()).describe('The newest first.'),
  example: z.object({
    deliveryId: z.string(),
    hook: z.string(),
    before: z.string().describe('Both outcomes in one line.'),
    after: z.string(),
    changes: readonlyList(ChangeFields),
  }),
})
export type GroupFields = z.infer<typeof GroupFields>

export const ReplayReport = z.object({
  compared: z
    .enum(['live', 'recorded', 'base'])
    .describe(
      'The base of the comparison. `live`: the serving code. `recorded`: the records, if the edit is already live or no gateway runs. `base`: the config directory, if a recording is replayed; never in an answer of the admin API.',
    ),
  total: z.number(),
  counts: z.record(ReplayClass, z.number()),
  groups: readonlyList(
    GroupFields.extend({
      class: ReplayClass,
    }),
  ).describe('The groups of all classes except `same`, the largest first.'),
  unstable: readonlyList(z.object({ path: z.string(), count: z.number() })).describe(
    'Paths that differ between two runs of the edit. They are not compared.',
  ),
  drift: readonlyList(GroupFields).describe('Differences between the records (`before`) and the live code (`after`).'),
  tooLarge: readonlyList(z.string()).describe('Ids of deliveries whose requests were too large to keep.'),
  notRun: z.number().describe('The number of deliveries that the time limit left out.'),
  problems: readonlyList(
    z.object({
      module: z.string(),
      detail: z.string(),
      frame: z.string().nullable(),
      notCompared: z.number(),
    }),
  ).describe(
    'Modules of the edit that do not load, with the code frame of the reason. They do not go live, so the deliveries that they would park belong to no class: `notCompared` counts them.',
  ),
  deliveries: readonlyList(
    z.object({
      deliveryId: z.string(),
      receivedAt: z.string(),
      hook: z.string(),
      source: z.string().nullable(),
      event: z.string().nullable(),
      class: ReplayClass,
      paths: readonlyList(z.string()),
      unstable: readonlyList(z.string()),
      drift: readonlyList(z.string()),
    }),
  ).describe('The newest first.'),
})
export type ReplayReport = z.infer<typeof ReplayReport>

/** The fixtures of a module whose expectation was replaced, by file name, and those that still fail, with the reason. */
export const UpdatedFixtures = z.object({
  module: z.string(),
  updated: readonlyList(z.string()),
  failing: readonlyList(z.object({ name: z.string(), why: z.string() })),
})
export type UpdatedFixtures = z.infer<typeof UpdatedFixtures>

/** A fixture that was written. `note`: why the code fails on it now. */
export const CapturedFields = z.object({
  file: z.string().describe('Absolute.'),
  module: z.string(),
  deliveryId: z.string(),
  removed: readonlyList(z.string()).describe('The places where secrets were removed, at most 100.'),
  decision: z.string().describe('The expected decision of the fixture.'),
  note: z.string().nullable(),
})
export type CapturedFields = z.infer<typeof CapturedFields>
