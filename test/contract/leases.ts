import { describe, expect, test } from 'vitest'
import type { Lease } from '../../src/store/owners.ts'
import type { Store } from '../../src/store/store.ts'
import type { Stage } from './store.ts'

async function take(store: Store, name = 'mailbox', leaseMs = 1_000): Promise<Lease> {
  const [lease] = await store.lease({ names: [name], leaseMs })
  if (lease === undefined) throw new Error(`${name} is not free`)
  return lease
}

export function describeLeases(stage: () => Stage): void {
  describe('a named lease', () => {
    test('a named lease has one holder until it ends, and then another one with another fence', async () => {
      const { store, clock } = stage()
      const first = await take(store)
      expect(first).toEqual({ name: 'mailbox', fence: expect.any(Number) })
      clock.advance(999)
      expect(await store.lease({ names: ['mailbox'], leaseMs: 1_000 })).toEqual([])
      clock.advance(1)
      expect((await take(store)).fence).not.toBe(first.fence)
    })

    test('if several calls ask for a named lease at the same moment, only one gets it', async () => {
      const { store } = stage()
      const wanted = Array.from({ length: 8 }, () => store.lease({ names: ['mailbox'], leaseMs: 1_000 }))
      expect((await Promise.all(wanted)).flat()).toHaveLength(1)
    })

    test('a named lease is independent of others: a call gets those that are free, each name once', async () => {
      const { store } = stage()
      await take(store, 'b')
      const given = await store.lease({ names: ['c', 'b', 'a', 'c'], leaseMs: 1_000 })
      expect(given.map(({ name }) => name).toSorted()).toEqual(['a', 'c'])
      expect(await store.lease({ names: [], leaseMs: 1_000 })).toEqual([])
    })

    test('a named lease continues while it is extended, and can be extended after it expired', async () => {
      const { store, clock } = stage()
      const held = await take(store)
      clock.advance(900)
      expect(await store.extendLeases([held], 1_000)).toEqual(['mailbox'])
      clock.advance(900)
      expect(await store.lease({ names: ['mailbox'], leaseMs: 1_000 })).toEqual([])
      clock.advance(900)
      expect(await store.extendLeases([held], 1_000)).toEqual(['mailbox'])
      expect(await store.lease({ names: ['mailbox'], leaseMs: 1_000 })).toEqual([])
    })

    test('a named lease that another owner took is neither extended nor ended with the old fence', async () => {
      const { store, clock } = stage()
      const old = await take(store)
      clock.advance(1_000)
      const current = await take(store)
      expect(await store.extendLeases([old], 9_000)).toEqual([])
      await store.endLeases([old])
      expect(await store.lease({ names: ['mailbox'], leaseMs: 1_000 })).toEqual([])
      expect(await store.extendLeases([old, current], 1_000)).toEqual(['mailbox'])
    })

    test('a named lease is free at once when it is ended', async () => {
      const { store } = stage()
      await store.endLeases([await take(store)])
      expect(await take(store)).toMatchObject({ name: 'mailbox' })
    })

    test('a named lease that is held survives a sweep', async () => {
      const { store, clock } = stage()
      await take(store, 'mailbox', 5_000)
      clock.advance(1_000)
      await store.sweep(0)
      expect(await store.lease({ names: ['mailbox'], leaseMs: 1_000 })).toEqual([])
    })
  })
}
