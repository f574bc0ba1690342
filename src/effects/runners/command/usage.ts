// Tokens of a turn, from what a command printed about them.
import { z } from 'zod'
import type { JsonObject } from '../../../base/json.ts'
import type { Usage } from '../../../model/job.ts'
import { parsePath, readPath } from '../../../pipeline/path.ts'
import type { UsageFields } from './profiles.ts'

const count = z.number().nonnegative()
/** A turn without a count of both directions has no usage. */
export const PrintedUsage = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count.exactOptional(),
  reasoningTokens: count.exactOptional(),
  costUsd: count.exactOptional(),
})

const kinds = PrintedUsage.keyof().options

export function createUsageReader(fields: UsageFields): (event: JsonObject) => Usage | undefined {
  const sums = kinds.map((kind) => ({ kind, paths: (fields[kind] ?? []).map((path) => parsePath(path)) }))
  return (event) => {
    const counts = sums.flatMap(({ kind, paths }) => {
      const numbers = paths.map((path) => readPath(event, path)).filter((value) => typeof value === 'number')
      return numbers.length === 0 ? [] : [[kind, numbers.reduce((sum, number) => sum + number, 0)]]
    })
    return PrintedUsage.safeParse(Object.fromEntries(counts)).data
  }
}

/** The turn alone, of a command that counts its session from the beginning. A count that fell began anew. */
export function toTurnUsage(total: Usage, before: Usage | undefined): Usage {
  if (before === undefined || kinds.some((kind) => (total[kind] ?? 0) < (before[kind] ?? 0))) return total
  const turn = kinds.flatMap((kind) => {
    const now = total[kind]
    return now === undefined ? [] : [[kind, now - (before[kind] ?? 0)]]
  })
  return PrintedUsage.parse(Object.fromEntries(turn))
}
