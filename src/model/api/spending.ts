// The answer of the admin API about what runs cost. Times are ISO 8601.
import { z } from 'zod'
import { readonlyList } from './answers.ts'

/** A run, by its delivery. `tokens`: in and out. */
const DearestRun = z.object({ deliveryId: z.string(), usd: z.number().nullable(), tokens: z.number() })
export type DearestRun = z.infer<typeof DearestRun>

/** Runs of one day with the same hook, agent and model. */
export const SpendingRow = z.object({
  day: z.string().describe('When the day begins: `since`, or a multiple of 24 hours later.'),
  hook: z.string().nullable().describe('Null for heartbeats.'),
  agentId: z.string(),
  model: z.string().nullable(),
  runs: z.number(),
  failed: z.number().describe('Dead runs, and those whose last attempt failed.'),
  uncounted: z.number().describe('The runs without a count of tokens: they did not end, or their runner counts none.'),
  inputTokens: z.number(),
  outputTokens: z.number(),
  usd: z.number().nullable().describe('Null: the model has no price, and the runner reported no cost.'),
  dearest: DearestRun.nullable().describe('Null: no run says what it used.'),
})
export type SpendingRow = z.infer<typeof SpendingRow>

export const SpendingFields = z.object({
  since: z.string().describe('Since when everything is counted: as asked, or later if the runs are too many.'),
  deliveries: z.number(),
  failed: z.number().describe('Parked deliveries, and runs that are dead or whose last attempt failed.'),
  waiting: z.number().describe('Pending deliveries, and runs that wait or run.'),
  inputTokens: z.number(),
  outputTokens: z.number(),
  usd: z.number().nullable().describe('The sum of the rows with a price; null if none has one.'),
  budgetUsd: z.number().nullable().describe('The smallest limit in dollars of the budgets with a period of a day.'),
  p95Ms: z
    .number()
    .nullable()
    .describe('95 of 100 runs ended within this time after they were stored: one digit and zeros.'),
  rows: readonlyList(SpendingRow),
})
export type SpendingFields = z.infer<typeof SpendingFields>
