// The answer of GET /api/health. Times are ISO 8601, unless a description says otherwise.
import { z } from 'zod'
import { JobState, readonlyList, State } from './answers.ts'

/** One minute of the last hour. `latencyMs`: the time from the complete body until the delivery is stored. */
export const MinuteFields = z.object({
  at: z.string(),
  deliveries: z.record(z.enum([...State.options, 'duplicate']), z.number()),
  refused: z.number(),
  runs: z.object({ done: z.number(), retried: z.number(), dead: z.number() }),
  reloads: z.object({ live: z.number(), refused: z.number() }),
  latencyMs: z.object({ p50: z.number(), p95: z.number() }).nullable(),
})
export type MinuteFields = z.infer<typeof MinuteFields>

export const ProblemFields = z.object({
  detail: z.string(),
  code: z.string().optional(),
  frame: z.string().optional(),
  module: z.string().optional(),
  since: z.number().optional().describe('Milliseconds since the epoch.'),
  file: z.string().nullable().describe('The absolute path of the module.'),
  line: z.number(),
})
export type ProblemFields = z.infer<typeof ProblemFields>

/** The runs of the gateway that answers. */
export const SlotFields = z.object({
  used: z.number(),
  most: z.number().describe('`agents.defaults.maxConcurrent`.'),
  fullSince: z.string().nullable().describe('Null while a slot is free.'),
  turns: readonlyList(z.object({ jobId: z.string(), since: z.string(), until: z.string() })).describe(
    'The turns whose runner works now. `until`: the time limit.',
  ),
})
export type SlotFields = z.infer<typeof SlotFields>

/** A model, a channel, or a runner whose models are not known here. */
export const OutletFields = z.object({
  kind: z.enum(['model', 'runner', 'channel']),
  name: z.string(),
  lastAt: z.string().nullable().describe('Its last success among the newest deliveries; null if there is none.'),
  failed: z
    .number()
    .describe(
      'The number of deliveries with a dead or failing run of it, whatever their age. `failedId`, `error`: the delivery and the error of the newest.',
    ),
  failedId: z.string().nullable(),
  error: z.string().nullable(),
})
export type OutletFields = z.infer<typeof OutletFields>

/** `read`: the number of newest deliveries that were read. */
export const OutletsFields = z.object({
  heartbeats: z
    .object({
      turns: z.number(),
      uncounted: z.number().describe('The number of turns that reported no tokens.'),
      inputTokens: z.number(),
      outputTokens: z.number(),
    })
    .describe('What the heartbeats of the last 24 hours used.'),
  read: z.number(),
  outlets: readonlyList(OutletFields),
})
export type OutletsFields = z.infer<typeof OutletsFields>

/** A finding of `hookloom doctor`. `severity`: null if nothing is wrong. */
export const FindingFields = z.object({
  name: z.string(),
  severity: z.enum(['warning', 'failure']).nullable(),
  detail: z.string(),
})
export type FindingFields = z.infer<typeof FindingFields>

export const HealthFields = z.object({
  sources: readonlyList(
    z.object({
      name: z.string(),
      account: z.string().nullable(),
      lastGoodAt: z.string().nullable().describe('When it was last read to its end, or had something new.'),
      problems: readonlyList(z.string()),
    }),
  ).describe('What the gateway that answers watches, such as a mailbox. Of several gateways, one watches.'),
  generation: z.string(),
  degraded: z.boolean(),
  held: z.boolean(),
  problems: readonlyList(ProblemFields),
  lastReloadAt: z.string().nullable(),
  lastGoodAt: z.string().nullable(),
  nodes: readonlyList(
    z.object({
      id: z.string(),
      version: z.string(),
      generation: z.string(),
      address: z.string(),
      seenAt: z.string(),
    }),
  ).describe('The gateways on the store.'),
  different: z
    .string()
    .nullable()
    .describe('A sentence that names the gateways whose generations differ; null if all are the same.'),
  withoutChannels: z
    .string()
    .nullable()
    .describe('A sentence about a configuration that cannot deliver replies; null if a channel is configured.'),
  hooksUrl: z.string().nullable().describe('Base of the hooks, with `hooks.path`; null before the port listens.'),
  store: z.object({
    trouble: z.string().nullable(),
    warning: z.string().nullable(),
    waitingBytes: z.number(),
  }),
  deliveries: z.record(State, z.number()),
  jobs: z.record(JobState, z.number()),
  dueSince: z.string().nullable().describe('When the job that has been due for longest became due.'),
  slots: SlotFields,
  lanes: readonlyList(z.object({ lane: z.string(), jobs: z.number(), since: z.string(), running: z.boolean() })),
  minutes: readonlyList(MinuteFields).describe('The last 60 minutes at most.'),
  minutesSince: z
    .object({ deliveries: z.string(), others: z.string() })
    .describe(
      '`deliveries`: counted in the store from this time on. `others`: duplicates, refused requests, runs, reloads and latencies of this gateway, since its start.',
    ),
})
export type HealthFields = z.infer<typeof HealthFields>
