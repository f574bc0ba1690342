// The answers of the admin API about things that an operator controls: pauses, budgets, senders and tokens. Times are ISO 8601.
import { z } from 'zod'
import { readonlyList, WaitEnd } from './answers.ts'

/** A hold, which keeps runs back. `what`: its label, such as `mapping:github` or `all`. `by`: null if the gateway made it. */
export const PauseFields = z.object({
  what: z.string(),
  kind: z
    .string()
    .describe(
      "`pause`: an operator's. `turns`: too many turns in an hour. `provider`: a provider asked to wait. `budget`: a budget is used up.",
    ),
  by: z.string().nullable(),
  reason: z.string().nullable(),
  since: z.string(),
  until: z.string().nullable().describe('Null: until somebody resumes it.'),
})
export type PauseFields = z.infer<typeof PauseFields>

/** Dollars, tokens or turns of a budget in its present period. Null: the budget does not limit them. `raised` is part of `limit`. */
export const MeasureFields = z.object({
  limit: z.number().nullable(),
  raised: z.number(),
  spent: z.number(),
  reserved: z.number().describe('The amount that the turns that run now may use.'),
  left: z.number().nullable(),
})
export type MeasureFields = z.infer<typeof MeasureFields>

/** `waiting`: the number of runs that wait for the budget. `endsAt`: when the budget resets. */
export const BudgetFields = z.object({
  name: z.string(),
  period: z.string(),
  timezone: z.string(),
  startsAt: z.string(),
  endsAt: z.string(),
  waiting: z.number(),
  usd: MeasureFields,
  tokens: MeasureFields,
  turns: MeasureFields,
})
export type BudgetFields = z.infer<typeof BudgetFields>

/** A sender with at least one accepted request. The facts are at most a minute old. */
export const SenderFields = z.object({
  hook: z.string(),
  source: z.string().nullable().describe('Null, like `sourceName`, for a sender that is not recognised.'),
  sourceName: z.string().nullable(),
  since: z.string().describe('The time of its first accepted request. `lastAt`: the time of its last one.'),
  lastAt: z.string(),
  requests: z.number(),
  usualMs: z
    .number()
    .nullable()
    .describe('The mean time between two requests in milliseconds; null if too little is known.'),
  silentSince: z
    .string()
    .nullable()
    .describe('Since when no request has come, if the operator was told; null if the sender is not silent.'),
  refused: readonlyList(
    z.object({
      code: z.string(),
      status: z.number(),
      since: z.string(),
      lastAt: z.string(),
      acceptedAt: z.string().nullable(),
      count: z.number(),
      why: z.string(),
      requestId: z.string(),
    }),
  ).describe(
    'The requests that are refused now, by cause. `why`: the first reason, without a word of the request. `acceptedAt`: the first accepted request since the last refused one, or null.',
  ),
})
export type SenderFields = z.infer<typeof SenderFields>

/**
 * Items that need a person, all for one reason. `waiting`: runs that a pause or a budget keeps back; `count` does not include them. `ids`: those of the newest deliveries, or of the refused requests, at most 200. `since`: the time of the
 * oldest item. It stays until the item succeeds, until its sender is accepted again, or until somebody ends it.
 */
export const AttentionGroup = z.object({
  kind: z.enum(['parked', 'dead', 'failing', 'refused', 'silent', 'waiting']),
  title: z.string().describe('The error of the newest item.'),
  code: z.string().nullable(),
  place: z.string().nullable().describe('`<file>:<line>`.'),
  hooks: readonlyList(z.string()),
  count: z.number(),
  since: z.string(),
  at: z.string().describe('The time of the newest item that needs a person.'),
  ids: readonlyList(z.string()),
  waitEnd: WaitEnd.optional(),
})
export type AttentionGroup = z.infer<typeof AttentionGroup>

export const AttentionFields = z.object({ count: z.number(), groups: readonlyList(AttentionGroup) })
export type AttentionFields = z.infer<typeof AttentionFields>

/** A token with few rights, without the token itself. */
export const TokenFields = z.object({
  name: z.string(),
  from: z.enum(['configuration', 'store']),
  may: readonlyList(z.string()).describe('Such as `send:deploy`, `runs` or `read`.'),
  createdAt: z.string().nullable().describe('Null for a token of the configuration.'),
  expiresAt: z.string().nullable().describe('Null: it never expires.'),
  expired: z.boolean(),
})
export type TokenFields = z.infer<typeof TokenFields>

const count = z.number().int()
const nextOfPart = 'A call works for a few seconds. If this is given, call again with it as `after`.'

export const RetriedParked = z.object({
  settled: count,
  stillParked: count,
  next: z.string().optional().describe(nextOfPart),
})
export const DroppedParked = z.object({ dropped: count, next: z.string().optional().describe(nextOfPart) })
export const RetriedRefused = z.object({
  ran: count,
  repeated: count,
  stillRefused: count,
  reasons: readonlyList(z.object({ reason: z.string(), count })),
  next: z.number().optional().describe(nextOfPart),
})
export const DroppedRefused = z.object({ dropped: count, next: z.number().optional().describe(nextOfPart) })

export const CancelledFields = z.object({
  runs: readonlyList(z.object({ runId: z.string(), state: z.enum(['cancelled', 'ending']) })),
})

export type CancelledFields = z.infer<typeof CancelledFields>

/** A test alert. `detail`: where it went and its id there, or why it failed. It may name the recipient. */
export const TestAlertFields = z.object({
  jobId: z.string(),
  state: z.enum(['running', 'delivered', 'failed']),
  detail: z.string(),
})
export type TestAlertFields = z.infer<typeof TestAlertFields>

/** `running`: the act has not ended; ask again with GET. */
export const RecoverFields = z.object({
  running: z.boolean(),
  reports: readonlyList(
    z.object({
      sender: z.string(),
      hook: z.string(),
      remembers: z.boolean().describe('False: the sender keeps no list of its deliveries.'),
      missing: count,
      recovered: count,
      failed: count,
      gone: count,
      refused: count,
      begins: z.boolean(),
      problem: z.string().nullable(),
    }),
  ),
})

/** A value that a transform has set with `context.state`. */
export const StateValueFields = z.object({
  module: z.string(),
  key: z.string(),
  value: z.unknown(),
  setAt: z.string(),
  until: z.string(),
})
