// Budgets limit the cost of agent turns in a calendar period. The functions are pure: the clock is an argument.
import { z } from 'zod'
import { type Spending, toNanos } from './spending.ts'
import { plainName } from '../base/names.ts'
import { timezone } from '../core/model/values.ts'
const maxUsd = 1_000_000

export const BudgetConfig = z
  .strictObject({
    usd: z
      .number()
      .positive()
      .max(maxUsd)
      .optional()
      .describe(
        'US dollars that the turns of a period may cost, by `cost` of their models, else as their runner reports it.',
      ),
    tokens: z
      .int()
      .positive()
      .max(Number.MAX_SAFE_INTEGER)
      .optional()
      .describe('Tokens that the turns of a period may use, input and output together.'),
    turns: z.int().positive().max(Number.MAX_SAFE_INTEGER).optional().describe('Turns that may start in a period.'),
    period: z
      .enum(['1h', '1d', '1w', '1mo'])
      .default('1d')
      .describe('Calendar period: 1h, 1d, 1w (begins on Monday) or 1mo. At its end, the budget resets.'),
    timezone: timezone
      .default('UTC')
      .describe('IANA time zone in which days, weeks and months begin, such as Europe/Berlin.'),
  })
  .refine(({ usd, tokens, turns }) => [usd, tokens, turns].some((limit) => limit !== undefined), {
    error: 'must have at least one of usd, tokens and turns',
  })
export type BudgetConfig = z.infer<typeof BudgetConfig>

export const BudgetsConfig = z
  .record(plainName, BudgetConfig)
  .default({})
  .describe('What turns may cost in a calendar period, under the names that agents and mappings use in `budgets`.')

/** The limits of a budget. A measure without a limit is left out. */
export function toLimits({ usd, tokens, turns }: Pick<BudgetConfig, 'usd' | 'tokens' | 'turns'>): Partial<Spending> {
  return {
    ...(usd === undefined ? {} : { nanos: toNanos(usd) }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(turns === undefined ? {} : { turns }),
  }
}

/** `startsAt` is inside, `endsAt` is not: milliseconds since the epoch. */
export type BudgetPeriod = { readonly startsAt: number; readonly endsAt: number }

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** The span in which the start or the end of a period is searched for. No period is longer. */
const longestMs = {
  '1d': 2 * dayMs,
  '1w': 9 * dayMs,
  '1mo': 33 * dayMs,
} as const

/**
 * The calendar period at a moment. Hours begin at full hours of UTC. A day begins at its first moment in the time zone: this is not midnight
 * if the clocks skip midnight on that day. A day may have 23 or 25 hours.
 */
export function findPeriod(
  { period, timezone: zone }: Pick<BudgetConfig, 'period' | 'timezone'>,
  now: number,
): BudgetPeriod {
  if (period === '1h') {
    const startsAt = now - (now % hourMs)
    return { startsAt, endsAt: startsAt + hourMs }
  }
  const readNumber = buildNumberReader(period, zone)
  const current = readNumber(now)
  const max = longestMs[period]
  return {
    startsAt: findFirst(now - max, now, (at) => readNumber(at) >= current),
    endsAt: findFirst(now, now + max, (at) => readNumber(at) > current),
  }
}

/** The first moment after `from` for which the test is true. From this moment on, and at `to`, the test must stay true. */
function findFirst(from: number, to: number, test: (at: number) => boolean): number {
  let [before, after] = [from, to]
  while (after - before > 1) {
    const middle = before + Math.floor((after - before) / 2)
    if (test(middle)) after = middle
    else before = middle
  }
  return after
}

/** Returns a function that reads the number of the period at a moment. The number grows from period to period. */
function buildNumberReader(period: '1d' | '1w' | '1mo', timeZone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('en', { timeZone, year: 'numeric', month: 'numeric', day: 'numeric' })
  return (at) => {
    const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 1, day = 1 } = parts
    if (period === '1mo') return year * 12 + month
    const days = Date.UTC(year, month - 1, day) / dayMs
    // the epoch began on a Thursday
    return period === '1d' ? days : Math.floor((days + 3) / 7)
  }
}
