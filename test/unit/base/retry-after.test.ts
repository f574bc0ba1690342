import { describe, expect, test } from 'vitest'
import { readRetryAfterMs } from '../../../src/base/http.ts'

const now = Date.parse('2026-01-01T00:00:00Z')

describe('readRetryAfterMs', () => {
  test.each([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': ' 1.5 ' }, 1_500],
    [{ 'retry-after': '0.65' }, 650],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' }, 60_000],
    [{ 'retry-after': 'Wed, 31 Dec 2025 23:59:00 GMT' }, 0],
    [{ 'retry-after': '7', 'retry-after-ms': '250' }, 250],
    [{ 'retry-after': '7', 'retry-after-ms': 'soon' }, 7_000],
  ])('the headers %o ask for a wait of %s ms', (headers: Record<string, string>, ms) => {
    expect(readRetryAfterMs(new Headers(headers), now)).toBe(ms)
  })

  test.each([{ 'retry-after': 'soon' }, { 'retry-after': '-5' }, { 'retry-after': '' }, {}])(
    'the headers %o ask for no wait',
    (headers: Record<string, string>) => {
      expect(readRetryAfterMs(new Headers(headers), now)).toBeUndefined()
    },
  )

  test('the date in a Retry-After header is compared with the clock of the server that wrote it', () => {
    const headers = new Headers({
      'retry-after': 'Wed, 21 Oct 2015 07:28:30 GMT',
      date: 'Wed, 21 Oct 2015 07:28:00 GMT',
    })
    expect(readRetryAfterMs(headers, now)).toBe(30_000)
  })
})
