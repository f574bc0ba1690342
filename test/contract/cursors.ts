import { describe, expect, test } from 'vitest'
import { keyed, newDelivery, newEvent, newJob } from './stage.ts'
import type { Stage } from './store.ts'

export function describeCursors(stage: () => Stage): void {
  const toMove = (from: string | undefined, to: string, name = 'gmail/a@example.com') => ({ name, from, to })

  describe('appendAll()', () => {
    test('appendAll stores all deliveries and sets the cursor', async () => {
      const { store, clock } = stage()
      const deliveries = [1, 2].map(() => newDelivery({ at: clock(), jobs: [newJob()] }))
      expect(await store.cursor('gmail/a@example.com')).toBeUndefined()
      expect(await store.appendAll(deliveries, toMove(undefined, '7'))).toEqual([
        { kind: 'stored' },
        { kind: 'stored' },
      ])
      for (const { id, jobs } of deliveries) {
        expect(await store.delivery(id)).toMatchObject({ jobs: [{ id: jobs[0]?.id, state: 'queued' }] })
      }
      expect(await store.cursor('gmail/a@example.com')).toBe('7')
      expect(await store.cursor('gmail')).toBeUndefined()
    })

    test('appendAll sets its cursor even without deliveries, and no other cursor', async () => {
      const { store } = stage()
      expect(await store.appendAll([], toMove(undefined, '1'))).toEqual([])
      await store.appendAll([], toMove(undefined, '9', 'other'))
      await store.appendAll([], toMove('1', '2'))
      expect([await store.cursor('gmail/a@example.com'), await store.cursor('other')]).toEqual(['2', '9'])
    })

    test('appendAll moves the cursor only from its current value, and otherwise stores nothing', async () => {
      const { store, clock } = stage()
      await store.appendAll([], toMove(undefined, '1'))
      for (const from of [undefined, '0']) {
        const late = newDelivery({ at: clock(), ...keyed('k'), jobs: [newJob()] })
        expect(await store.appendAll([late], toMove(from, '2'))).toBe('moved')
        expect(await store.delivery(late.id)).toBeUndefined()
      }
      expect(await store.cursor('gmail/a@example.com')).toBe('1')
      const both = await Promise.all(['2', '3'].map((to) => store.appendAll([], toMove('1', to))))
      expect(both.filter((each) => each === 'moved')).toHaveLength(1)
      expect(await store.appendAll([], toMove('1', '4', 'other'))).toBe('moved')
    })

    test('appendAll skips duplicates of stored deliveries and duplicates in the same call, and sets the cursor', async () => {
      const { store, clock } = stage()
      const known = newDelivery({ at: clock(), ...keyed('a') })
      await store.append(known)
      const [again, fresh] = [
        newDelivery({ at: clock(), ...keyed('a', 'hash-2') }),
        newDelivery({ at: clock(), ...keyed('b'), jobs: [newJob()] }),
      ]
      const twin = newDelivery({ at: clock(), ...keyed('b'), jobs: [newJob()] })
      expect(await store.appendAll([again, fresh, twin], toMove(undefined, '7'))).toMatchObject([
        { kind: 'duplicate', first: { deliveryId: known.id } },
        { kind: 'stored' },
        { kind: 'duplicate', first: { deliveryId: fresh.id } },
      ])
      expect(await store.delivery(twin.id)).toBeUndefined()
      expect((await store.counts()).jobs.queued).toBe(1)
      expect(await store.cursor('gmail/a@example.com')).toBe('7')
    })

    test('appendAll is atomic: if one delivery cannot be stored, no delivery is stored, and the cursor is unchanged', async () => {
      const { store, clock } = stage()
      const taken = newJob()
      const known = newDelivery({ at: clock(), ...keyed('a'), jobs: [taken] })
      await store.appendAll([known], toMove(undefined, '7'))
      const good = newDelivery({ at: clock(), ...keyed('b'), jobs: [newJob({ events: [newEvent()] })] })
      const bad = newDelivery({ at: clock(), jobs: [taken] })
      const all = store.appendAll([good, bad], toMove('7', '8'))
      await expect(all).rejects.toMatchObject({ code: 'store-unavailable' })
      expect(await store.delivery(good.id)).toBeUndefined()
      expect(await store.findAnswer({ hook: 'github', key: 'b' })).toBeUndefined()
      expect(await store.events({ limit: 9 })).toEqual([])
      expect(await store.cursor('gmail/a@example.com')).toBe('7')
      expect(await store.appendAll([good], toMove('7', '8'))).toEqual([{ kind: 'stored' }])
    })

    test('appendAll rejects two deliveries with the same id', async () => {
      const { store, clock } = stage()
      const one = newDelivery({ at: clock() })
      await expect(store.appendAll([one, one], toMove(undefined, '8'))).rejects.toMatchObject({
        code: 'store-unavailable',
      })
      expect(await store.delivery(one.id)).toBeUndefined()
    })

    test('several cursors move together, or none of them moves', async () => {
      const { store, clock } = stage()
      const readValues = async () => Promise.all(['state/a', 'state/b', 'state/c'].map((name) => store.cursor(name)))
      await store.appendAll([], toMove(undefined, '1', 'state/b'))
      const late = newDelivery({ at: clock() })
      const toMoves = (from: string) => [
        toMove(undefined, '2', 'state/c'),
        toMove(from, '2', 'state/b'),
        toMove(undefined, '2', 'state/a'),
      ]
      expect(await store.appendAll([late], toMoves('0'))).toBe('moved')
      expect([await readValues(), await store.delivery(late.id)]).toEqual([[undefined, '1', undefined], undefined])
      expect(await store.appendAll([late], toMoves('1'))).toEqual([{ kind: 'stored' }])
      expect(await readValues()).toEqual(['2', '2', '2'])
      // each call moves both cursors, but in another order
      const both = ['state/a', 'state/b']
      const races = Array.from({ length: 6 }, (_, index) =>
        store.appendAll(
          [],
          (index % 2 ? both : both.toReversed()).map((name) => toMove('2', `3 ${index}`, name)),
        ),
      )
      expect((await Promise.all(races)).filter((each) => each !== 'moved')).toHaveLength(1)
      const [a, b] = await readValues()
      expect(a).toBe(b)
    })

    test('a cursor that moves only with a new delivery does not move with a duplicate', async () => {
      const { store, clock } = stage()
      const toMoveIfStored = (from: string | undefined, to: string) => ({
        ...toMove(from, to, 'state/d'),
        ifStored: true as const,
      })
      await store.appendAll([newDelivery({ at: clock(), ...keyed('a') })], toMoveIfStored(undefined, '1'))
      const again = newDelivery({ at: clock(), ...keyed('a') })
      const other = toMove(undefined, '9', 'other')
      expect(await store.appendAll([again], [toMoveIfStored('1', '2'), other])).toMatchObject([{ kind: 'duplicate' }])
      expect([await store.cursor('state/d'), await store.cursor('other')]).toEqual(['1', '9'])
      expect(
        await store.appendAll([newDelivery({ at: clock(), ...keyed('b') })], toMoveIfStored('1', '2')),
      ).toMatchObject([{ kind: 'stored' }])
      expect(await store.cursor('state/d')).toBe('2')
    })

    test('a sweep does not delete the cursor of a mailbox', async () => {
      const { store, clock } = stage()
      await store.appendAll([newDelivery({ at: clock() })], toMove(undefined, '7'))
      await store.sweep(-1)
      expect(await store.cursor('gmail/a@example.com')).toBe('7')
    })
  })

  describe('settle() with a cursor', () => {
    const name = 'once/a.ts/k'
    const newSettlement = (jobs = [newJob()]) => ({ ...newDelivery({ at: 0 }), state: 'accepted' as const, jobs })

    test('a delivery is settled and a cursor is moved together, or neither is', async () => {
      const { store, clock } = stage()
      const [first, second] = [1, 2].map(() => newDelivery({ at: clock(), state: 'pending' }))
      for (const delivery of [first, second]) if (delivery) await store.append(delivery)
      expect(await store.settle(first?.id ?? '', newSettlement(), { name, from: undefined, to: '9 a' })).toBe(true)
      expect(await store.settle(second?.id ?? '', newSettlement(), { name, from: undefined, to: '9 b' })).toBe('moved')
      expect(await store.delivery(second?.id ?? '')).toMatchObject({ state: 'pending', jobs: [] })
      expect(await store.cursor(name)).toBe('9 a')
      // a second settlement of a delivery moves no cursor
      expect(await store.settle(first?.id ?? '', newSettlement(), { name, from: '9 a', to: '9 c' })).toBe(false)
      expect(await store.cursor(name)).toBe('9 a')
      expect(await store.settle(second?.id ?? '', newSettlement(), { name, from: '9 a', to: '9 b' })).toBe(true)
    })

    test('a sweep deletes the cursors of once keys and of module state whose time is over, and no other cursor', async () => {
      const { store, clock } = stage()
      const values = {
        [name]: `${clock() - 1} a`,
        'state/a.ts\nk': '0 0 ',
        'once/a.ts/l': `${clock() + 60_000} b`,
        oncex: '1 c',
      }
      for (const [key, to] of Object.entries(values)) await store.appendAll([], { name: key, from: undefined, to })
      await store.sweep(0)
      expect(await Promise.all(Object.keys(values).map((key) => store.cursor(key)))).toEqual([
        undefined,
        undefined,
        values['once/a.ts/l'],
        '1 c',
      ])
    })
  })
}
