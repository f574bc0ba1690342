import type { KeptQuery } from '../../src/store/queries.ts'
import { describe, expect, test } from 'vitest'
import type { NewDelivery } from '../../src/store/records.ts'
import { accepted, newDelivery, parked, request } from './stage.ts'
import type { Stage } from './store.ts'

export function describeKept(stage: () => Stage): void {
  const readText = async (id: string) => {
    const found = await stage().store.request(id)
    return found && new TextDecoder().decode(found.body)
  }
  const readIds = async (query: KeptQuery) =>
    (await stage().store.keptDeliveries(query)).map(({ deliveryId }) => deliveryId)
  /** Stores `count` deliveries of one mapping, one after the other. */
  async function append(count: number, over: Partial<NewDelivery>): Promise<string[]> {
    const { store, clock } = stage()
    const made = Array.from({ length: count }, (_, index) =>
      newDelivery({ at: clock() + index, request: request(`{"n":${index}}`), ...over }),
    )
    for (const each of made) await store.append(each)
    return made.map(({ id }) => id)
  }

  describe('the ring of kept requests of a mapping', () => {
    test('a ring keeps the newest requests of its mapping, and deletes older requests, but not their deliveries', async () => {
      const [first = '', second = '', third = ''] = await append(3, { ringSize: 2 })
      expect([await readText(first), await readText(second), await readText(third)]).toEqual([
        undefined,
        '{"n":1}',
        '{"n":2}',
      ])
      expect(await stage().store.delivery(first)).toMatchObject({ deliveryId: first, state: 'accepted' })
    })

    test('a ring deletes no request of another mapping, of a delivery without a mapping, or of a delivery without a ring', async () => {
      const [plain = ''] = await append(1, {})
      const [other = ''] = await append(1, { ringSize: 1, mappingId: 'other' })
      const [moved = ''] = await append(1, { ringSize: 1, mappingId: 'other', ringName: 'content:moved' })
      const [nobodys = ''] = await append(1, { ringSize: 1, mappingId: undefined, state: 'skipped' })
      const [, mine = ''] = await append(2, { ringSize: 1 })
      expect(await readIds({ limit: 9 })).toEqual([mine, nobodys, moved, other, plain])
    })

    test('a ring whose size was reduced shrinks with the next request', async () => {
      const five = await append(5, { ringSize: 5 })
      const [newest = ''] = await append(1, { ringSize: 2 })
      expect(await readIds({ limit: 9 })).toEqual([newest, five[4]])
    })

    test('a parked delivery enters its ring when it is settled, and not before', async () => {
      const { store, clock } = stage()
      const [first, second] = [newDelivery({ at: clock(), ...parked() }), newDelivery({ at: clock(), ...parked() })]
      for (const each of [first, second]) await store.append(each)
      await store.settle(first.id, accepted({ request: request('{"again":1}'), ringSize: 1 }))
      expect(await readText(first.id)).toBe('{"again":1}')
      await append(1, { ringSize: 1 })
      expect([await readText(first.id), await readText(second.id)]).toEqual([undefined, '{"a":1}'])
    })

    test('a ring counts a delivery whose request was too large to be kept', async () => {
      const [old = '', large = ''] = [
        ...(await append(1, { ringSize: 1 })),
        ...(await append(1, { ringSize: 1, request: 'too large' })),
      ]
      expect([await readText(old), await readText(large)]).toEqual([undefined, undefined])
      expect(await stage().store.keptDeliveries({ limit: 9 })).toMatchObject([
        { deliveryId: large, request: undefined },
      ])
    })

    test('a ring no longer counts deliveries that a sweep deleted', async () => {
      const { store, clock } = stage()
      await append(3, { ringSize: 2 })
      clock.advance(1_000)
      expect(await store.sweep(0)).toBe(3)
      const [one, two] = await append(2, { ringSize: 2 })
      expect(await readIds({ limit: 9 })).toEqual([two, one])
    })
  })

  describe('keptDeliveries()', () => {
    test('keptDeliveries() lists deliveries with their requests, newest first, except pending ones and those whose request was not to be kept', async () => {
      const { store, clock } = stage()
      const [kept = ''] = await append(1, { source: 'github', event: 'push' })
      await append(1, { request: undefined })
      await append(1, { ...parked({ state: 'pending' }) })
      const waiting = newDelivery({ at: clock(), ...parked() })
      await store.append(waiting)
      const found = await store.keptDeliveries({ limit: 9 })
      expect(found.map(({ deliveryId }) => deliveryId)).toEqual([waiting.id, kept])
      expect(found[1]).toMatchObject({ state: 'accepted', source: 'github', event: 'push', jobs: [] })
      expect(found[1]?.request?.head).toEqual(request().head)
      expect(Object.getPrototypeOf(found[1]?.request?.head.headers)).toBeNull()
    })

    test('keptDeliveries() can continue before a given delivery, and can be filtered by hook, sender, time and mapping', async () => {
      const { clock } = stage()
      const [a = '', b = '', c = ''] = await append(3, {})
      const [other = ''] = await append(1, {
        hook: 'other',
        source: 'stripe',
        mappingId: 'm',
        receivedAt: clock() + 50,
      })
      expect(await readIds({ limit: 2 })).toEqual([other, c])
      expect(await readIds({ limit: 2, before: c })).toEqual([b, a])
      expect(await readIds({ limit: 9, before: 'nobody' })).toEqual([])
      expect(await readIds({ limit: 9, hook: 'other' })).toEqual([other])
      expect(await readIds({ limit: 9, source: 'stripe' })).toEqual([other])
      expect(await readIds({ limit: 9, since: clock() + 2 })).toEqual([other, c])
      expect(await readIds({ limit: 9, mappings: ['m', 'n'] })).toEqual([other])
      expect(await readIds({ limit: 9, mappings: [] })).toEqual([])
    })

    test('a hook with few deliveries finds them in their order among many others, old and new', async () => {
      const { store } = stage()
      const rare: string[] = []
      for (let round = 0; round < 3; round += 1) {
        rare.unshift(...(await append(1, { hook: 'rare' })))
        await append(300, {})
      }
      rare.unshift(...(await append(1, { hook: 'rare' })))
      const [newest = '', ...older] = rare
      expect(await readIds({ limit: 9, hook: 'rare' })).toEqual(rare)
      expect(await readIds({ limit: 2, hook: 'rare', before: newest })).toEqual(older.slice(0, 2))
      const listed = await store.deliveries({ limit: 9, hook: 'rare' })
      expect(listed.map(({ deliveryId }) => deliveryId)).toEqual(rare.toReversed())
      expect(await store.deliveries({ limit: 9, hook: 'rare', state: 'accepted' })).toHaveLength(4)
      expect(await store.deliveries({ limit: 9, hook: 'rare', state: 'parked' })).toEqual([])
    })
  })
}
