// The count of the last hour reads few rows, however many pages ask for it.
import { expect, test } from 'vitest'
import { createHourOfStore, type HourOfStore } from '../../../../src/gateway/http/api/hour-of-store.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { NewDelivery } from '../../../../src/store/records.ts'
import { newDelivery, parked } from '../../../contract/stage.ts'

const minuteMs = 60_000
const noon = Date.parse('2026-05-04T12:00:00Z')

/** A store with 5,000 deliveries of the last fifty minutes, and the number of rows and statements that the counts read. */
async function openHour() {
  let now = noon
  const store = createMemoryStore({ clock: () => now })
  const read = { rows: 0, calls: 0 }
  const append = (deliveries: readonly NewDelivery[]) => store.appendAll(deliveries, [])
  const old = Array.from({ length: 5_000 }, (_, n) => newDelivery({ at: noon - 50 * minuteMs + n * 600 }))
  const first = newDelivery({ at: noon - 51 * minuteMs, ...parked() })
  await append([newDelivery({ at: noon - 70 * minuteMs }), first, ...old])
  const hour = createHourOfStore({
    clock: () => now,
    store: {
      stepBack(query) {
        read.calls += 1
        return store.stepBack(query)
      },
      async tally(query) {
        read.calls += 1
        const tallies = await store.tally(query)
        read.rows += count({ tallies })
        return tallies
      },
    },
  })
  return { store, hour, read, append, first, advance: (ms: number) => (now += ms), clock: () => now }
}

const count = ({ tallies }: Pick<HourOfStore, 'tallies'>, state?: string) =>
  tallies.reduce((sum, tally) => sum + (state === undefined || tally.state === state ? tally.count : 0), 0)

test('three pages that ask each five seconds for a minute read the hour twice and not 36 times, and see each new delivery', async () => {
  const { hour, read, append, advance, clock } = await openHour()
  expect(count(await hour())).toBe(5_001)
  for (let round = 1; round < 12; round += 1) {
    advance(5_000)
    await append([newDelivery({ at: clock() })])
    for (let page = 0; page < 3; page += 1) expect(count(await hour())).toBe(5_001 + round)
  }
  expect(read.rows).toBeLessThan(2 * 5_100 + 34 * 112)
  expect(read.calls).toBeLessThan(34 + 2 * 8)
})

test('a burst of new deliveries is counted once, and an old delivery has its new state within half a minute', async () => {
  const { store, hour, read, append, advance, clock, first } = await openHour()
  expect(count(await hour(), 'parked')).toBe(1)
  await append(Array.from({ length: 3_000 }, () => newDelivery({ at: clock() })))
  expect(count(await hour())).toBe(8_001)
  const before = read.rows
  expect(count(await hour())).toBe(8_001)
  expect(read.rows - before).toBeLessThan(200)
  await store.drop(first.id)
  advance(30_000)
  const later = await hour()
  expect([count(later), count(later, 'parked'), count(later, 'dropped')]).toEqual([8_001, 0, 1])
  advance(60 * minuteMs)
  expect(count(await hour())).toBe(0)
})

test('what was counted is not counted again while it cannot change, and equals a count of everything', async () => {
  const { store, hour, read, append, advance, clock, first } = await openHour()
  expect(count(await hour())).toBe(5_001)
  await store.drop(first.id)
  for (const added of [700, 2_500, 40]) {
    advance(30_000)
    await hour()
    await append(Array.from({ length: added }, () => newDelivery({ at: clock(), ...(added === 40 && parked()) })))
    advance(30_000)
    const before = read.rows
    const found = await hour()
    expect(read.rows - before).toBeLessThan(2_100 + added)
    const whole = await createHourOfStore({ store, clock })()
    expect(['accepted', 'parked', 'dropped'].map((state) => count(found, state))).toEqual(
      ['accepted', 'parked', 'dropped'].map((state) => count(whole, state)),
    )
    expect(found.since).toBe(whole.since)
  }
  expect(count(await hour())).toBe(5_001 + 3_240)
})
