// A run as the caller that started it sees it on the hook port. Times are ISO 8601.
import { z } from 'zod'
import { readonlyList, VerdictFields } from './answers.ts'

export const RunResource = VerdictFields.partial().extend({
  runId: z.string(),
  deliveryId: z.string().nullable(),
  state: z.enum(['queued', 'running', 'done', 'dead', 'superseded', 'cancelled', 'expired']),
  waits: z.string().nullable().describe('Why a queued run waits, as a sentence.'),
  reason: z.string().nullable().describe('Why it ended without a result.'),
  createdAt: z.string(),
  attempts: z.number(),
  steps: readonlyList(
    z.object({ name: z.string(), state: z.string(), startedAt: z.string(), at: z.string() }),
  ).describe('The steps that are recorded.'),
  receipts: readonlyList(
    z.object({
      step: z.string().describe('The step that sends it: one for each recipient.'),
      part: z.number(),
      channel: z.string(),
      state: z.string(),
      messageId: z.string().nullable().describe('The id of the message at its provider.'),
      at: z.string().nullable(),
    }),
  ).describe('The messages of the reply, without their text and recipient.'),
  usage: z
    .object({ inputTokens: z.number(), outputTokens: z.number(), costUsd: z.number().optional() })
    .nullable()
    .describe('Null: the runner reported none.'),
  reply: z
    .string()
    .nullable()
    .optional()
    .describe('The reply of the agent, only if the mapping says `"result": "text"`.'),
})
export type RunResource = z.infer<typeof RunResource>

/** The body of every refusal, on both ports. */
export const Refused = z.object({
  ok: z.literal(false),
  error: z.string().describe('One sentence for people.'),
  code: z.string().describe('The code of the problem, such as `unauthorized`.'),
})
