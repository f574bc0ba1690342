import { describe, expect, test } from 'vitest'
import { BudgetConfig, findPeriod, toLimits } from '../../../src/model/budgets.ts'
import { formatSpending } from '../../../src/model/spending.ts'
import { toMaxNanos, toTurnNanos } from '../../../src/model/prices.ts'

/** The period at a moment, as ISO times. */
function findPeriodAt(now: string, given: { period: string; timezone?: string }): [string, string] {
  const { startsAt, endsAt } = findPeriod(BudgetConfig.parse({ turns: 1, ...given }), Date.parse(now))
  return [new Date(startsAt).toISOString(), new Date(endsAt).toISOString()]
}

describe('the period of a budget', () => {
  test.each([
    [
      'an hour',
      '2026-11-23T07:59:59.999Z',
      '1h',
      'Asia/Kolkata',
      '2026-11-23T07:00:00.000Z',
      '2026-11-23T08:00:00.000Z',
    ],
    [
      'a day',
      '2026-11-23T22:59:59.999Z',
      '1d',
      'Europe/Berlin',
      '2026-11-22T23:00:00.000Z',
      '2026-11-23T23:00:00.000Z',
    ],
    [
      'the first moment of a day',
      '2026-11-23T23:00:00.000Z',
      '1d',
      'Europe/Berlin',
      '2026-11-23T23:00:00.000Z',
      '2026-11-24T23:00:00.000Z',
    ],
    [
      'a day of 23 hours',
      '2026-03-29T10:00:00.000Z',
      '1d',
      'Europe/Berlin',
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ],
    [
      'a day of 25 hours',
      '2026-10-25T10:00:00.000Z',
      '1d',
      'Europe/Berlin',
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
    ],
    [
      'a day without midnight',
      '2018-11-04T12:00:00.000Z',
      '1d',
      'America/Sao_Paulo',
      '2018-11-04T03:00:00.000Z',
      '2018-11-05T02:00:00.000Z',
    ],
    [
      'a day with midnight twice',
      '2018-02-17T12:00:00.000Z',
      '1d',
      'America/Sao_Paulo',
      '2018-02-17T02:00:00.000Z',
      '2018-02-18T03:00:00.000Z',
    ],
    [
      'a week',
      '2026-11-22T23:30:00.000Z',
      '1w',
      'Europe/Berlin',
      '2026-11-22T23:00:00.000Z',
      '2026-11-29T23:00:00.000Z',
    ],
    [
      'a week with a change of the clocks',
      '2026-03-29T20:00:00.000Z',
      '1w',
      'Europe/Berlin',
      '2026-03-22T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ],
    [
      'a month with a change of the clocks',
      '2026-10-31T12:00:00.000Z',
      '1mo',
      'America/New_York',
      '2026-10-01T04:00:00.000Z',
      '2026-11-01T04:00:00.000Z',
    ],
    [
      'a leap February',
      '2028-02-29T23:59:59.999Z',
      '1mo',
      'UTC',
      '2028-02-01T00:00:00.000Z',
      '2028-03-01T00:00:00.000Z',
    ],
    ['a December', '2026-12-31T12:00:00.000Z', '1mo', 'UTC', '2026-12-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
  ])('a budget period begins and ends at calendar times: %s', (_, now, period, timezone, startsAt, endsAt) => {
    expect(findPeriodAt(now, { period, timezone })).toEqual([startsAt, endsAt])
  })

  test('a period ends where the next one begins, even if the clocks change or a time zone skips a date', () => {
    for (const timezone of ['Europe/Berlin', 'America/St_Johns', 'Pacific/Apia', 'Africa/Cairo']) {
      for (const period of ['1d', '1w', '1mo']) {
        let [, end] = findPeriodAt('2011-12-20T00:00:00.000Z', { period, timezone })
        for (let count = 0; count < 30; count += 1) {
          const [start, next] = findPeriodAt(end, { period, timezone })
          expect(start).toBe(end)
          expect(Date.parse(next)).toBeGreaterThan(Date.parse(end))
          end = next
        }
      }
    }
  })
})

describe('the price of a turn', () => {
  const cost = { input: 3, output: 15, cacheRead: 0.3 }

  test('a turn costs its tokens at their price per million, and cached tokens at the cached price', () => {
    expect(toTurnNanos({ inputTokens: 1_000_000, outputTokens: 0 }, cost)).toBe(3_000_000_000)
    expect(toTurnNanos({ inputTokens: 1_000, outputTokens: 100, cachedInputTokens: 900 }, cost)).toBe(
      100 * 3_000 + 900 * 300 + 100 * 15_000,
    )
  })

  test('a turn without a price costs what its runner reported', () => {
    expect(toTurnNanos({ inputTokens: 5, outputTokens: 5, costUsd: 0.25 }, undefined)).toBe(250_000_000)
    expect(toTurnNanos({ inputTokens: 5, outputTokens: 5 }, undefined)).toBe(0)
  })

  test('no turn costs more than the maximum for its number of tokens, even if they are read from a cache or written to it', () => {
    const dear = { ...cost, cacheWrite: 3.75 }
    const most = toMaxNanos({ input: 1_000, output: 500 }, dear)
    for (const part of [{}, { cachedInputTokens: 1_000 }, { cacheWriteTokens: 1_000 }])
      expect(toTurnNanos({ inputTokens: 1_000, outputTokens: 500, ...part }, dear)).toBeLessThanOrEqual(most)
    expect(most).toBe(1_000 * 3_750 + 500 * 15_000)
  })
})

test('a budget without a limit is refused, and so is an unknown time zone', () => {
  expect(BudgetConfig.safeParse({ period: '1d' }).success).toBe(false)
  expect(BudgetConfig.safeParse({ turns: 1, timezone: 'Europe/Berln' }).success).toBe(false)
})

test('the limits of a budget are only the measures that it names, and dollars become nanos', () => {
  expect(toLimits(BudgetConfig.parse({ usd: 0.1, turns: 5 }))).toEqual({ nanos: 100_000_000, turns: 5 })
})

test('an amount is shown in its unit, and a fraction of a cent is not shown as zero', () => {
  expect([
    formatSpending('nanos', 20_000_000_000),
    formatSpending('nanos', 1_234_567),
    formatSpending('nanos', 1),
    formatSpending('nanos', 999_900_000),
    formatSpending('nanos', 499_960_000),
    formatSpending('tokens', 1),
    formatSpending('turns', 3),
  ]).toEqual(['$20.00', '$0.00123', '$0.000000001', '$1.00', '$0.50', '1 token', '3 turns'])
})
