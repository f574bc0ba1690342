// A wait for a delivery, as its caller sees it on the hook port. Times are ISO 8601.
import { z } from 'zod'
import { maxAwaitSeconds } from './limits.ts'

export const AwaitBody = z.object({
  key: z
    .string()
    .max(512)
    .regex(/^(?=.*\S)\P{Cc}*$/u, { error: 'a session key without control characters' })
    .describe('The session key of the run.'),
  id: z
    .string()
    .regex(/^[\w.:-]{1,100}$/, { error: '1 to 100 letters, digits, ".", "_", ":" or "-"' })
    .optional(),
  withinSeconds: z.int().min(1).max(maxAwaitSeconds).default(maxAwaitSeconds),
})

export const AwaitResource = z.object({
  state: z.enum(['waiting', 'arrived', 'expired']),
  id: z.string(),
  key: z.string(),
  deliveryId: z.string().nullable().describe('The delivery that came.'),
  expiresAt: z.string(),
})
export type AwaitResource = z.infer<typeof AwaitResource>
