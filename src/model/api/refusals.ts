// The answers of the admin API about requests that were refused.
import { z } from 'zod'
import { readonlyList, TriedMapping } from './answers.ts'

export const RefusalFields = z.object({
  requestId: z.string(),
  receivedAt: z.number().describe('Milliseconds since the epoch.'),
  client: z.string(),
  credential: z.string(),
  path: z.string(),
  hook: z.string().optional(),
  nearestHook: z.string().nullable(),
  status: z.number(),
  code: z.string(),
  error: z.string(),
  reason: z.string().describe('The most useful reason, for the operator: the answer to the sender tells less.'),
  trace: readonlyList(TriedMapping),
  signature: z
    .object({
      why: z.string().describe('What the headers look like.'),
      next: z.string().describe('What the operator can do.'),
      config: z.string().nullable().describe('What to paste into hookloom.jsonc.'),
    })
    .nullable()
    .describe('The signature of a sender that no mapping of the hook verifies, guessed from the headers.'),
  proofs: readonlyList(z.object({ name: z.string(), value: z.string() })).describe(
    'The headers in which a signature and its time came, cut. Secrets are left out.',
  ),
  expects: readonlyList(z.string()).describe('The schemes by which a sender of the hook proves itself now.'),
  isStranger: z.boolean().describe('True if the request had no hook token and no mapping tried to verify it.'),
  isKept: z.boolean().describe('True if the request is kept, encrypted: `hookloom retry --refused` verifies it again.'),
  whyNotKept: z.string().optional().describe('Why the request was never kept.'),
  ranAs: z.string().optional().describe('The delivery that the retried request became; absent after a restart.'),
})
export type RefusalFields = z.infer<typeof RefusalFields>
