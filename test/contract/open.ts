import { describe, expect, test } from 'vitest'
import { accepted, newDelivery, parked, request } from './stage.ts'
import type { Stage } from './store.ts'

export function describeOpen(stage: () => Stage): void {
  describe('openDeliveries()', () => {
    test('openDeliveries() returns the request of a delivery unchanged', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), ...parked() }))
      const [open] = await store.openDeliveries({ limit: 10 })
      expect(open?.request?.head).toEqual(request().head)
      expect(Object.getPrototypeOf(open?.request?.head.headers)).toBeNull()
      expect(Object.keys(open?.request?.head.headers ?? {})).toContain('__proto__')
      expect([...(open?.request?.body ?? [])]).toEqual([...request().body])
    })

    test('openDeliveries() lists pending and parked deliveries in the order in which they were stored, up to the limit, and no others', async () => {
      const { store, clock } = stage()
      // the times do not decide the order: the clock of a gateway may be behind or ahead
      const first = newDelivery({ at: clock() + 90_000, ...parked() })
      const second = newDelivery({ at: clock() - 90_000, ...parked({ state: 'pending' }) })
      const third = newDelivery({ at: clock() - 1, ...parked() })
      for (const each of [first, second, newDelivery({ at: clock() }), third]) await store.append(each)
      const readOpenIds = async (limit: number, query: { state?: 'parked'; waitsFor?: string; after?: string } = {}) =>
        (await store.openDeliveries({ limit, ...query })).map(({ deliveryId }) => deliveryId)
      expect(await readOpenIds(10)).toEqual([first.id, second.id, third.id])
      expect(await readOpenIds(1)).toEqual([first.id])
      expect(await readOpenIds(10, { state: 'parked' })).toEqual([first.id, third.id])
      expect(await readOpenIds(10, { waitsFor: 'github.ts' })).toEqual([first.id, second.id, third.id])
      expect(await readOpenIds(10, { after: second.id })).toEqual([third.id])
    })

    test('waitedFor() returns the names that deliveries wait for, each of them once', async () => {
      const { store, clock } = stage()
      expect(await store.waitedFor()).toEqual([])
      for (const waitsFor of ['b.ts', 'mapping:', 'a.ts', 'b.ts', undefined]) {
        await store.append(newDelivery({ at: clock(), ...parked({ waitsFor }) }))
      }
      expect(await store.waitedFor()).toEqual(['a.ts', 'b.ts', 'mapping:'])
      const [open] = await store.openDeliveries({ limit: 1, waitsFor: 'a.ts' })
      await store.settle(open?.deliveryId ?? '', accepted())
      expect(await store.waitedFor()).toEqual(['b.ts', 'mapping:'])
    })

    test('openDeliveries() can continue after any delivery, whatever its state', async () => {
      const { store, clock } = stage()
      const [first, second, last, other] = [1, 2, 3, 4].map(() => newDelivery({ at: clock(), ...parked() }))
      if (!last || !first || !second || !other) throw new Error('four were made')
      for (const each of [first, second, last]) await store.append(each)
      await store.append({ ...other, waitsFor: 'other.ts' })
      const readOpenIds = async (query: { limit: number; after: string; waitsFor?: string }) =>
        (await store.openDeliveries(query)).map(({ deliveryId }) => deliveryId)
      expect(await readOpenIds({ limit: 1, after: first.id })).toEqual([second.id])
      await store.settle(second.id, accepted())
      expect(await readOpenIds({ limit: 9, after: second.id })).toEqual([last.id, other.id])
      expect(await readOpenIds({ limit: 9, after: first.id, waitsFor: 'github.ts' })).toEqual([last.id])
      expect(await store.countParkedFor('github.ts')).toBe(2)
      expect(await store.countParkedFor('gone.ts')).toBe(0)
      expect(await readOpenIds({ limit: 9, after: other.id })).toEqual([])
      expect(await readOpenIds({ limit: 9, after: 'nobody' })).toEqual([])
    })

    test('openDeliveries() leaves out deliveries that one of the given generations or transforms parked', async () => {
      const { store, clock } = stage()
      const buildParked = (generation: string, transformHash?: string) => parked({ generation, transformHash })
      const twice = newDelivery({ at: clock(), ...buildParked('g1', 'h1') })
      const broken = newDelivery({ at: clock(), ...buildParked('g1') })
      const pending = newDelivery({ at: clock(), ...buildParked('g9', 'h9'), state: 'pending' })
      for (const each of [twice, broken, pending]) await store.append(each)
      await store.settle(twice.id, buildParked('g2', 'h2'))
      const readOpenIds = async (...notFailedBy: string[]) =>
        (await store.openDeliveries({ limit: 9, notFailedBy })).map(({ deliveryId }) => deliveryId)
      expect(await readOpenIds()).toEqual([twice.id, broken.id, pending.id])
      expect(await readOpenIds('g1')).toEqual([pending.id])
      expect(await readOpenIds('g2')).toEqual([broken.id, pending.id])
      expect(await readOpenIds('h1')).toEqual([broken.id, pending.id])
      expect(await readOpenIds('h2', 'else')).toEqual([broken.id, pending.id])
      // the pending delivery was never parked; a name matches only as a whole
      expect(await readOpenIds('g9', 'h9', 'h', 'g')).toEqual([twice.id, broken.id, pending.id])
      for (let count = 0; count < 200; count += 1)
        await store.settle(twice.id, buildParked(`later-${count}`, `hash-${count}`))
      expect(await readOpenIds('later-190')).toEqual([broken.id, pending.id])
    })

    test('openDeliveries() can be filtered by module, by state and by id', async () => {
      const { store, clock } = stage()
      const a = newDelivery({ at: clock(), ...parked({ waitsFor: 'a.ts' }) })
      const b = newDelivery({ at: clock(), ...parked({ waitsFor: 'b.ts' }) })
      const c = newDelivery({ at: clock(), ...parked({ state: 'pending', waitsFor: 'a.ts' }) })
      for (const each of [a, b, c]) await store.append(each)
      const readOpenIds = async (query: { waitsFor?: string; state?: 'pending' | 'parked'; id?: string }) =>
        (await store.openDeliveries({ limit: 10, ...query })).map(({ deliveryId }) => deliveryId)
      expect(await readOpenIds({ waitsFor: 'a.ts' })).toEqual([a.id, c.id])
      expect(await readOpenIds({ waitsFor: 'a.ts', state: 'parked' })).toEqual([a.id])
      expect(await readOpenIds({ state: 'pending' })).toEqual([c.id])
      expect(await readOpenIds({ id: b.id })).toEqual([b.id])
      expect(await readOpenIds({ id: b.id, waitsFor: 'a.ts' })).toEqual([])
    })
  })
}
