import { describe, expect, test } from 'vitest'
import type { Stage } from './store.ts'
import { newDelivery, parked } from './stage.ts'

const minuteMs = 60_000

export function describeCounts(stage: () => Stage): void {
  describe('counts of a store', () => {
    test('tally() counts deliveries by minute, hook and present state, from a moment on', async () => {
      const { store, clock } = stage()
      const start = Math.ceil(clock() / minuteMs) * minuteMs
      const at = (minutes: number, ms = 0) => start + minutes * minuteMs + ms
      const fixed = newDelivery({ at: at(2), ...parked() })
      const rows = [
        newDelivery({ at: at(0) }),
        newDelivery({ at: at(1) }),
        newDelivery({ at: at(1, minuteMs - 1) }),
        newDelivery({ at: at(1, 5), hook: 'stripe' }),
        newDelivery({ at: at(2), ...parked() }),
        fixed,
      ]
      for (const each of rows) await store.append(each)
      await store.drop(fixed.id)
      const all = [
        { at: at(0), hook: 'github', state: 'accepted', count: 1 },
        { at: at(1), hook: 'github', state: 'accepted', count: 2 },
        { at: at(1), hook: 'stripe', state: 'accepted', count: 1 },
        { at: at(2), hook: 'github', state: 'dropped', count: 1 },
        { at: at(2), hook: 'github', state: 'parked', count: 1 },
      ]
      expect(await store.tally({ since: at(0) })).toEqual(all)
      expect(await store.tally({ since: at(0, 1) })).toEqual(all.slice(1))
      expect(await store.tally({ since: at(2, 1) })).toEqual([])
      // the older part and the newer part are all
      expect(await store.tally({ since: at(0), from: rows[4]?.id })).toEqual(all.slice(3))
      expect(await store.tally({ since: at(0), before: rows[4]?.id })).toEqual(all.slice(0, 3))
      expect(await store.tally({ since: at(0), before: 'none' })).toEqual([])
    })

    test('tally() counts deliveries by the hour too', async () => {
      const { store, clock } = stage()
      const start = Math.ceil(clock() / (60 * minuteMs)) * 60 * minuteMs
      for (const minutes of [0, 59, 60, 119]) await store.append(newDelivery({ at: start + minutes * minuteMs }))
      const own = { hook: 'github', state: 'accepted', count: 2 }
      expect(await store.tally({ since: start, every: 'hour' })).toEqual([
        { ...own, at: start },
        { ...own, at: start + 60 * minuteMs },
      ])
    })

    test('countBefore() is the number of deliveries that arrived before one, and 0 for one that the store does not have', async () => {
      const { store, clock } = stage()
      const rows = Array.from({ length: 5 }, () => newDelivery({ at: clock() }))
      for (const each of rows) await store.append(each)
      expect(await Promise.all(rows.map(({ id }) => store.countBefore(id)))).toEqual([0, 1, 2, 3, 4])
      expect(await store.countBefore('none')).toBe(0)
      // what the retention deletes no longer counts
      clock.advance(1_000)
      const newest = newDelivery({ at: clock() })
      await store.append(newest)
      await store.sweep(500)
      expect(await store.countBefore(newest.id)).toBe(0)
    })
  })
}
