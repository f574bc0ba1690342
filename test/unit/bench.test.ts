// The parts of the bench that compute what it reports.
import { describe, expect, test } from 'vitest'
import { compareLedger } from '../bench/battery/ledger.ts'
import { parseOptions } from '../bench/options.ts'
import { createSchedule } from '../bench/schedule.ts'
import { computeQuantile } from '../bench/statistics.ts'

describe('the open loop', () => {
  test('a request is due at its time, not when somebody looks', () => {
    const schedule = createSchedule({ perSecond: 500, seconds: 1, beginsAt: 100 })
    expect(schedule.take(99.9)).toEqual([])
    expect(schedule.take(100)).toEqual([100])
    // a pause of ten milliseconds hides no request, and each keeps its time
    expect(schedule.take(110.5)).toEqual([102, 104, 106, 108, 110])
    expect(schedule.take(110.5)).toEqual([])
  })

  test('each request is due once, at the end all of them, and none after it', () => {
    const schedule = createSchedule({ perSecond: 300, seconds: 2, beginsAt: 0 })
    const times = Array.from({ length: 700 }, (_, index) => schedule.take(index * 3)).flat()
    expect(times.length).toBe(schedule.total)
    expect(schedule.total).toBe(600)
    expect(times[599]).toBeCloseTo((599 * 1_000) / 300, 9)
    expect([schedule.isDone, schedule.take(1e9)]).toEqual([true, []])
  })

  test('a schedule with requests left is not done', () => {
    const schedule = createSchedule({ perSecond: 10, seconds: 1, beginsAt: 0 })
    schedule.take(899)
    expect(schedule.isDone).toBe(false)
    schedule.take(900)
    expect(schedule.isDone).toBe(true)
  })
})

describe('a quantile', () => {
  const thousand = Array.from({ length: 1_000 }, (_, index) => 1_000 - index)

  test.each([
    [0.5, 501],
    [0.99, 991],
    [0.999, 1_000],
    [1, 1_000],
  ])('%d of the numbers from 1 to 1000, in any order, is %d', (share, value) => {
    expect(computeQuantile(thousand, share)).toBe(value)
  })

  test('one slow answer in a thousand is the p99.9, and not the p99', () => {
    const answers = [...Array.from({ length: 999 }, () => 1), 500]
    expect([computeQuantile(answers, 0.99), computeQuantile(answers, 0.999)]).toEqual([1, 500])
  })

  test('without values there is no quantile', () => {
    expect(computeQuantile([], 0.5)).toBeNaN()
  })
})

describe('the ledger', () => {
  test('nothing is lost or twice if each answer has its row', () => {
    expect(compareLedger(['a', 'b'], ['b', 'a'])).toEqual({ lost: 0, twice: 0 })
  })

  test('an answer without a row is lost', () => {
    expect(compareLedger(['a', 'b'], ['a'])).toEqual({ lost: 1, twice: 0 })
  })

  test('a row without an answer is twice', () => {
    expect(compareLedger(['a'], ['a', 'b'])).toEqual({ lost: 0, twice: 1 })
  })

  test('one row for the answers to two requests is a loss, which equal sums would hide', () => {
    expect(compareLedger(['a', 'a'], ['a', 'b'])).toEqual({ lost: 1, twice: 1 })
  })
})

test('--only load chooses every row of the battery, and --only L6 one', () => {
  const chosen = (only: string) => {
    const options = parseOptions(['--only', only])
    return options === 'help' ? [] : options.probes.map(({ name }) => name)
  }
  expect(chosen('load')).toEqual(['L1', 'L2', 'L3', 'L4', 'L5', 'L6', 'L8', 'L9', 'L10', 'L12', 'L13'])
  expect(chosen('L6')).toEqual(['L6'])
})
