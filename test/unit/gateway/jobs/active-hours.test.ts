import { describe, expect, test } from 'vitest'
import { findActiveMoment } from '../../../../src/gateway/jobs/agents.ts'

const toTime = (text: string) => Date.parse(text)
const day = { start: '08:00', end: '20:00', timezone: 'Europe/Berlin' }

test('a moment inside the active hours is returned unchanged, and any other moment becomes the next beginning of the hours', () => {
  expect(findActiveMoment(undefined, 7)).toBe(7)
  const noon = toTime('2026-01-05T11:00:00Z')
  expect(findActiveMoment(day, noon)).toBe(noon)
  expect(findActiveMoment(day, toTime('2026-01-05T19:00:30Z'))).toBe(toTime('2026-01-06T07:00:00Z'))
  expect(findActiveMoment(day, toTime('2026-01-05T05:59:59Z'))).toBe(toTime('2026-01-05T07:00:00Z'))
})

test('the first minute of the active hours is active, and the minute at which they end is not', () => {
  const opening = toTime('2026-07-01T06:00:00Z')
  expect(findActiveMoment(day, opening)).toBe(opening)
  expect(findActiveMoment(day, toTime('2026-07-01T18:00:00Z'))).toBe(toTime('2026-07-02T06:00:00Z'))
})

test('active hours may cross midnight or end at midnight', () => {
  const night = { start: '22:00', end: '06:00', timezone: 'UTC' }
  const late = toTime('2026-01-05T23:00:00Z')
  expect(findActiveMoment(night, late)).toBe(late)
  expect(findActiveMoment(night, toTime('2026-01-05T12:00:00Z'))).toBe(toTime('2026-01-05T22:00:00Z'))
  const evening = { start: '18:00', end: '24:00', timezone: 'UTC' }
  const last = toTime('2026-01-05T23:59:59Z')
  expect(findActiveMoment(evening, last)).toBe(last)
})

describe('zones that change their clocks', () => {
  const toBerlin = (start: string, end: string) => ({ start, end, timezone: 'Europe/Berlin' })
  // changes of the clock: 2026-03-29 01:00 UTC, from 02:00 to 03:00; 2026-10-25 01:00 UTC, from 03:00 back to 02:00

  test('after a change of the clocks, active hours begin exactly on time, however short they are', () => {
    for (const asked of ['2026-03-28T12:00:00Z', '2026-03-29T00:50:00Z', '2026-03-29T00:59:59Z']) {
      expect(findActiveMoment(toBerlin('03:00', '03:05'), toTime(asked))).toBe(toTime('2026-03-29T01:00:00Z'))
      expect(findActiveMoment(toBerlin('09:10', '09:11'), toTime(asked))).toBe(toTime('2026-03-29T07:10:00Z'))
    }
    for (const asked of ['2026-10-24T09:00:00Z', '2026-10-25T00:50:00Z', '2026-10-25T00:59:59Z']) {
      expect(findActiveMoment(toBerlin('03:00', '03:05'), toTime(asked))).toBe(toTime('2026-10-25T02:00:00Z'))
      expect(findActiveMoment(toBerlin('09:10', '09:11'), toTime(asked))).toBe(toTime('2026-10-25T08:10:00Z'))
    }
  })

  test('active hours that begin inside a skipped hour begin when that hour ends', () => {
    expect(findActiveMoment(toBerlin('02:30', '03:05'), toTime('2026-03-28T12:00:00Z'))).toBe(
      toTime('2026-03-29T01:00:00Z'),
    )
  })

  test('active hours that are skipped completely begin on the next day', () => {
    expect(findActiveMoment(toBerlin('02:10', '02:20'), toTime('2026-03-28T12:00:00Z'))).toBe(
      toTime('2026-03-30T00:10:00Z'),
    )
  })

  test('active hours that occur twice on a day are active both times', () => {
    const hours = toBerlin('02:10', '02:20')
    expect(findActiveMoment(hours, toTime('2026-10-24T12:00:00Z'))).toBe(toTime('2026-10-25T00:10:00Z'))
    expect(findActiveMoment(hours, toTime('2026-10-25T00:20:00Z'))).toBe(toTime('2026-10-25T01:10:00Z'))
    expect(findActiveMoment(hours, toTime('2026-10-25T01:20:00Z'))).toBe(toTime('2026-10-26T01:10:00Z'))
  })

  test('active hours are exact in zones that change by half an hour or have a quarter-hour offset', () => {
    const island = { start: '02:30', end: '02:33', timezone: 'Australia/Lord_Howe' }
    expect(findActiveMoment(island, toTime('2026-10-03T15:25:00Z'))).toBe(toTime('2026-10-03T15:30:00Z'))
    const mountain = { start: '08:01', end: '08:02', timezone: 'Asia/Kathmandu' }
    expect(findActiveMoment(mountain, toTime('2026-01-05T03:00:00Z'))).toBe(toTime('2026-01-06T02:16:00Z'))
  })
})
