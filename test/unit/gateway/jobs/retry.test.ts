import { describe, expect, test } from 'vitest'
import { toRetryMs, chooseRetry } from '../../../../src/gateway/jobs/retry.ts'

const transient = { kind: 'transient', detail: 'busy' } as const
const limited = { kind: 'unavailable', detail: 'slow down' } as const
const day = 86_400_000
const at = { attempts: 0, failingForMs: undefined, overdueForMs: 0, forMs: day, random: 0.5 }

describe('toRetryMs', () => {
  test('the waits between attempts double from two seconds up to a quarter of an hour', () => {
    expect([0, 1, 2, 3].map((attempts) => toRetryMs(attempts, 0.5))).toEqual([2_000, 4_000, 8_000, 16_000])
    expect(toRetryMs(40, 0.5)).toBe(900_000)
  })

  test('the jitter changes a wait by at most a fifth', () => {
    expect(toRetryMs(0, 0)).toBe(1_600)
    expect(toRetryMs(0, 0.999_999)).toBe(2_400)
  })
})

describe('chooseRetry', () => {
  test('a job is tried again after the fourth failure and is dead after the fifth', () => {
    expect(chooseRetry(transient, { ...at, attempts: 3 })).toMatchObject({ kind: 'retry', counted: true })
    expect(chooseRetry(transient, { ...at, attempts: 4 })).toEqual({ kind: 'dead', error: 'busy', status: 'error' })
  })

  test('a permanent failure is final at once and keeps its reason', () => {
    expect(chooseRetry({ kind: 'permanent', detail: 'no key', status: 'timeout' }, at)).toEqual({
      kind: 'dead',
      error: 'no key',
      status: 'timeout',
    })
  })

  test('a rate-limited step waits as long as asked and uses up no attempt', () => {
    expect(chooseRetry({ ...limited, retryAfterMs: 90_000 }, { ...at, attempts: 4 })).toEqual({
      kind: 'retry',
      afterMs: 90_000,
      error: 'slow down',
      counted: false,
    })
  })

  test('a step is dead after a day of rate limits, and not one minute before', () => {
    const late = { ...at, failingForMs: day }
    expect(chooseRetry(limited, { ...late, failingForMs: day - 60_000 })).toMatchObject({
      kind: 'retry',
      counted: false,
    })
    expect(chooseRetry(limited, late)).toEqual({ kind: 'dead', error: 'slow down', status: 'error' })
  })

  test('if the provider names no wait, the pauses grow with the outage up to a quarter of an hour', () => {
    const waits = [0, 3_000, 59_000, 3_600_000].map((failingForMs) => {
      const choice = chooseRetry(limited, { ...at, failingForMs, attempts: 4 })
      return choice.kind === 'retry' ? choice.afterMs : undefined
    })
    expect(waits).toEqual([2_000, 3_000, 59_000, 900_000])
  })

  test('a transient failure is tried again after the usual wait or the requested one, whichever is longer', () => {
    expect(chooseRetry({ ...transient, retryAfterMs: 60_000 }, at)).toMatchObject({ afterMs: 60_000 })
    expect(chooseRetry({ ...transient, retryAfterMs: 1_200 }, at)).toMatchObject({ afterMs: 2_000 })
  })

  test.each([
    [0, 1_000],
    [-5, 1_000],
    [Number.NaN, 2_000],
    [Number.POSITIVE_INFINITY, 2_000],
    [1e15, 86_400_000],
  ])('a requested wait of %d ms becomes a pause of %d ms', (retryAfterMs, waited) => {
    expect(chooseRetry({ ...limited, retryAfterMs }, at)).toMatchObject({ afterMs: waited })
  })
})
