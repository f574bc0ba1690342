// The prices of models, and the cost of a turn.
import { z } from 'zod'
import { toNanos } from './spending.ts'
import type { Usage } from './job.ts'
import { nonBlank } from '../core/model/values.ts'

const price = z.number().nonnegative().max(1_000_000)

/** The keys have the same names as in OpenClaw. */
const ModelCost = z.strictObject({
  input: price.describe('US dollars for a million input tokens. 0: the model is free.'),
  output: price.describe('US dollars for a million output tokens, reasoning included.'),
  cacheRead: price.optional().describe('US dollars for a million input tokens from a cache. Default: `input`.'),
  cacheWrite: price.optional().describe('US dollars for a million input tokens written to a cache. Default: `input`.'),
})
type ModelCost = z.infer<typeof ModelCost>

export const ModelConfig = z.strictObject({
  id: nonBlank.describe('Name of the model, as it follows `<provider>/`.'),
  cost: ModelCost.optional().describe('Price of the model. A budget with `usd` needs it.'),
  maxTokens: z
    .int()
    .min(16)
    .max(10_000_000)
    .optional()
    .describe(
      'The maximum number of output tokens of a turn, reasoning included. Under a budget of usd or tokens, the default is 16384.',
    ),
})
export type ModelConfig = z.infer<typeof ModelConfig>

/** The maximum number of output tokens of a turn under a budget whose model sets no limit. */
export const defaultMaxTokens = 16_384

/** A nano is a billionth of a dollar: a price of one dollar for a million tokens is a thousand nanos for one token. */
const toNanosPerToken = (usdPerMillion: number): number => usdPerMillion * 1_000

/**
 * The cost of a turn: by the prices of its model, or without prices as its runner reported it. It is rounded up, so that no sum of turns is too
 * low.
 */
export function toTurnNanos(usage: Usage, cost: ModelCost | undefined): number {
  if (cost === undefined) return Math.ceil(toNanos(usage.costUsd ?? 0))
  const { inputTokens, outputTokens, cachedInputTokens: read = 0, cacheWriteTokens: written = 0 } = usage
  const { input, output, cacheRead = input, cacheWrite = input } = cost
  const fresh = Math.max(0, inputTokens - read - written)
  return Math.ceil(
    fresh * toNanosPerToken(input) +
      read * toNanosPerToken(cacheRead) +
      written * toNanosPerToken(cacheWrite) +
      outputTokens * toNanosPerToken(output),
  )
}

/** The maximum cost of a turn with at most this many tokens. */
export function toMaxNanos(tokens: { readonly input: number; readonly output: number }, cost: ModelCost): number {
  const { input, output, cacheRead = input, cacheWrite = input } = cost
  return Math.ceil(
    tokens.input * toNanosPerToken(Math.max(input, cacheRead, cacheWrite)) + tokens.output * toNanosPerToken(output),
  )
}
