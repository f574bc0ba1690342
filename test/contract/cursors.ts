import { describe, expect, test } from 'vitest'
import { keyed, newDelivery, newEvent, newJob } from './stage.ts'
import type { Stage } from './store.ts'

export function describeCursors(stage: () => Stage): void {
  const move = (from: string | undefined, to: string, name = 'gmail/a@example.com') => ({ name, from, to })

  describe('appendAll', () => {
    test('appendAll stores all deliveries and sets the cursor', async () => {
      const { store, clock } = stage()
      const deliveries = [1, 2].map(() => newDelivery({ at: clock(), jobs: [newJob()] }))
      expect(await store.cursor('gmail/a@example.com')).toBeUndefined()
      expect(await store.appendAll(deliveries, move(undefined, '7'))).toEqual([{ kind: 'stored' }, { kind: 'stored' }])
      for (const { id, jobs } of deliveries) {
        expect(await store.delivery(id)).toMatchObject({ jobs: [{ id: jobs[0]?.id, state: 'queued' }] })
      }
      expect(await store.cursor('gmail/a@example.com')).toBe('7')
      expect(await store.cursor('gmail')).toBeUndefined()
    })

    test('appendAll sets its cursor even without deliveries, and no other cursor', async () => {
      const { store } = stage()
      expect(await store.appendAll([], move(undefined, '1'))).toEqual([])
      await store.appendAll([], move(undefined, '9', 'other'))
      await store.appendAll([], move('1', '2'))
      expect([await store.cursor('gmail/a@example.com'), await store.cursor('other')]).toEqual(['2', '9'])
    })

    test('appendAll moves the cursor only from its current value, and otherwise stores nothing', async () => {
      const { store, clock } = stage()
      await store.appendAll([], move(undefined, '1'))
      for (const from of [undefined, '0']) {
        const late = newDelivery({ at: clock(), ...keyed('k'), jobs: [newJob()] })
        expect(await store.appendAll([late], move(from, '2'))).toBe('moved')
        expect(await store.delivery(late.id)).toBeUndefined()
      }
      expect(await store.cursor('gmail/a@example.com')).toBe('1')
      const both = await Promise.all(['2', '3'].map((to) => store.appendAll([], move('1', to))))
      expect(both.filter((each) => each === 'moved')).toHaveLength(1)
      expect(await store.appendAll([], move('1', '4', 'other'))).toBe('moved')
    })

    test('appendAll stores no duplicates of stored deliveries or of each other, and sets the cursor', async () => {
      const { store, clock } = stage()
      const known = newDelivery({ at: clock(), ...keyed('a') })
      await store.append(known)
      const [again, fresh] = [
        newDelivery({ at: clock(), ...keyed('a', 'hash-2') }),
        newDelivery({ at: clock(), ...keyed('b'), jobs: [newJob()] }),
      ]
      const twin = newDelivery({ at: clock(), ...keyed('b'), jobs: [newJob()] })
      expect(await store.appendAll([again, fresh, twin], move(undefined, '7'))).toMatchObject([
        { kind: 'duplicate', first: { deliveryId: known.id } },
        { kind: 'stored' },
        { kind: 'duplicate', first: { deliveryId: fresh.id } },
      ])
      expect(await store.delivery(twin.id)).toBeUndefined()
      expect((await store.counts()).jobs.queued).toBe(1)
      expect(await store.cursor('gmail/a@example.com')).toBe('7')
    })

    test('appendAll is atomic: if one delivery cannot be stored, none is, and the cursor is unchanged', async () => {
      const { store, clock } = stage()
      const taken = newJob()
      const known = newDelivery({ at: clock(), ...keyed('a'), jobs: [taken] })
      await store.appendAll([known], move(undefined, '7'))
      const good = newDelivery({ at: clock(), ...keyed('b'), jobs: [newJob({ events: [newEvent()] })] })
      const bad = newDelivery({ at: clock(), jobs: [taken] })
      const all = store.appendAll([good, bad], move('7', '8'))
      await expect(all).rejects.toMatchObject({ code: 'store-unavailable' })
      expect(await store.delivery(good.id)).toBeUndefined()
      expect(await store.answered({ hook: 'github', key: 'b' })).toBeUndefined()
      expect(await store.events({ limit: 9 })).toEqual([])
      expect(await store.cursor('gmail/a@example.com')).toBe('7')
      expect(await store.appendAll([good], move('7', '8'))).toEqual([{ kind: 'stored' }])
    })

    test('appendAll rejects two deliveries with the same id', async () => {
      const { store, clock } = stage()
      const one = newDelivery({ at: clock() })
      await expect(store.appendAll([one, one], move(undefined, '8'))).rejects.toMatchObject({
        code: 'store-unavailable',
      })
      expect(await store.delivery(one.id)).toBeUndefined()
    })

    test('appendAll sets a cursor that no sweep deletes', async () => {
      const { store, clock } = stage()
      await store.appendAll([newDelivery({ at: clock() })], move(undefined, '7'))
      await store.sweep(-1)
      expect(await store.cursor('gmail/a@example.com')).toBe('7')
    })
  })
}
