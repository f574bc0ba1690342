import { expect, test } from 'vitest'
import { toActiveMoment } from '../../src/effects/hours.ts'

const at = (text: string) => Date.parse(text)
const day = { start: '08:00', end: '20:00', timezone: 'Europe/Berlin' }

test('inside the hours any moment is active, outside it is the next opening', () => {
  expect(toActiveMoment(undefined, 7)).toBe(7)
  const noon = at('2026-01-05T11:00:00Z')
  expect(toActiveMoment(day, noon)).toBe(noon)
  expect(toActiveMoment(day, at('2026-01-05T19:00:30Z'))).toBe(at('2026-01-06T07:00:00Z'))
  expect(toActiveMoment(day, at('2026-01-05T05:59:59Z'))).toBe(at('2026-01-05T07:00:00Z'))
})

test('the first minute counts and the last does not', () => {
  const opening = at('2026-07-01T06:00:00Z')
  expect(toActiveMoment(day, opening)).toBe(opening)
  expect(toActiveMoment(day, at('2026-07-01T18:00:00Z'))).toBe(at('2026-07-02T06:00:00Z'))
})

test('hours may go past midnight, and to its end', () => {
  const night = { start: '22:00', end: '06:00', timezone: 'UTC' }
  const late = at('2026-01-05T23:00:00Z')
  expect(toActiveMoment(night, late)).toBe(late)
  expect(toActiveMoment(night, at('2026-01-05T12:00:00Z'))).toBe(at('2026-01-05T22:00:00Z'))
  const evening = { start: '18:00', end: '24:00', timezone: 'UTC' }
  const last = at('2026-01-05T23:59:59Z')
  expect(toActiveMoment(evening, last)).toBe(last)
})
