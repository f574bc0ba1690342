import { describe, expect, test } from 'vitest'
import type { Stage } from './store.ts'

const minute = 60_000
const label = 'session:main/hook:a'

export function describeTurns(stage: () => Stage): void {
  describe('the limit of the turns of a session in an hour', () => {
    const start = (jobId: string, given: { label?: string; limit?: number } = {}) =>
      stage().store.startTurn({ jobId, label, limit: 3, ...given })

    test('of sixty turns that start at the same time, exactly as many as the limit start', async () => {
      const { store } = stage()
      const starts = Array.from({ length: 60 }, (_, index) =>
        store.startTurn({ jobId: `job ${index}`, label, limit: 20 }),
      )
      const waits = await Promise.all(starts)
      expect(waits.filter((wait) => wait === undefined)).toHaveLength(20)
      expect(new Set(waits.filter((wait) => wait !== undefined))).toEqual(new Set([60 * minute]))
    })

    test('a turn waits until the oldest of the counted turns started an hour ago', async () => {
      const { clock } = stage()
      for (const id of ['a', 'b', 'c']) {
        expect(await start(id)).toBeUndefined()
        clock.advance(10 * minute)
      }
      expect(await start('d')).toBe(30 * minute)
      clock.advance(30 * minute - 1)
      expect(await start('d')).toBe(1)
      clock.advance(1)
      expect(await start('d')).toBeUndefined()
      expect(await start('e')).toBe(10 * minute)
    })

    test('with a lower limit, a turn waits until fewer turns than that count', async () => {
      const { clock } = stage()
      for (const id of ['a', 'b', 'c']) {
        await start(id)
        clock.advance(10 * minute)
      }
      expect(await start('d', { limit: 1 })).toBe(50 * minute)
    })

    test('a turn that starts again within the hour counts once', async () => {
      const { clock } = stage()
      for (const id of ['a', 'b', 'b', 'a', 'c', 'c']) expect(await start(id)).toBeUndefined()
      expect(await start('d')).toBe(60 * minute)
      clock.advance(60 * minute)
      for (const id of ['a', 'd', 'e']) expect(await start(id)).toBeUndefined()
      expect(await start('b')).toBe(60 * minute)
    })

    test('sessions count separately, even if the label of one begins with that of another', async () => {
      for (const id of ['a', 'b', 'c']) await start(id)
      for (const other of [`${label}b`, 'session:main/hook:', 'session:main/hook:%', 'session:other/hook:a'])
        expect(await start('d', { label: other })).toBeUndefined()
      expect(await start('d')).toBe(60 * minute)
    })

    test('the end of a hold for too many turns frees all turns of its session, and that of a pause frees none', async () => {
      const { store } = stage()
      for (const id of ['a', 'b', 'c']) for (const each of [label, `${label}b`]) await start(id, { label: each })
      await store.unhold({ label, kind: 'pause' })
      expect(await start('d')).toBe(60 * minute)
      await store.unhold({ label, kind: 'turns' })
      for (const id of ['d', 'e', 'f']) expect(await start(id)).toBeUndefined()
      expect(await start('g')).toBe(60 * minute)
      expect(await start('d', { label: `${label}b` })).toBe(60 * minute)
    })

    test('after the clock was set back, turns of the future do not hold a session back', async () => {
      const { clock } = stage()
      for (const id of ['a', 'b', 'c']) await start(id)
      clock.advance(-24 * 60 * minute)
      expect(await start('d')).toBeUndefined()
    })

    test('a sweep keeps the turns of the last hour', async () => {
      const { store, clock } = stage()
      for (const id of ['a', 'b', 'c']) {
        await start(id)
        clock.advance(25 * minute)
      }
      await store.sweep(0)
      expect(await start('d')).toBeUndefined()
      expect(await start('e')).toBe(10 * minute)
    })
  })
}
