import { describe, expect, test } from 'vitest'
import type { NodeInfo } from '../../src/store/owners.ts'
import type { Store } from '../../src/store/store.ts'
import { newDelivery, newJob } from './stage.ts'
import type { Stage } from './store.ts'

const info: NodeInfo = { id: 'host-1', version: '1.2.3', generation: 'g1', address: 'http://127.0.0.1:8790/hooks' }

/** Joins twice, because the two calls may go to two different stores. */
async function join(store: Store, node = info): Promise<void> {
  for (let times = 0; times < 2; times += 1) await store.join(node)
}

export function describeNodes(stage: () => Stage): void {
  describe('a gateway', () => {
    test('a gateway is listed from its join until it leaves, with the values of its last join', async () => {
      const { store, clock } = stage()
      expect(await store.nodes()).toEqual([])
      await join(store)
      expect(await store.nodes()).toEqual([{ ...info, seenAt: clock() }])
      clock.advance(9_000)
      await join(store, { ...info, generation: 'g2' })
      expect(await store.nodes()).toEqual([{ ...info, generation: 'g2', seenAt: clock() }])
      await store.leave('host-1')
      expect(await store.nodes()).toEqual([])
      await join(store)
      expect(await store.nodes()).toMatchObject([info])
    })

    test('each delivery that a gateway stored names that gateway, even after it left, and no other delivery does', async () => {
      const { store, clock } = stage()
      const [before, first, second, third] = [0, 0, 0, 0].map(() => newDelivery({ at: clock(), jobs: [newJob()] }))
      if (!before || !first || !second || !third) throw new Error('four were made')
      await store.append(before)
      await join(store)
      await store.append(first)
      await store.appendAll([second], { name: 'place', from: undefined, to: '1' })
      await store.leave('host-1')
      await join(store, { ...info, id: 'host-2' })
      await store.append(third)
      const readNode = async ({ id }: { id: string }) => (await store.delivery(id))?.node
      expect(await readNode(first)).toBe('host-1')
      expect(await readNode(second)).toBe('host-1')
      expect(await readNode(third)).toBe('host-2')
      expect(await readNode(before)).toBeUndefined()
      expect((await store.deliveries({ limit: 2 })).map(({ node }) => node)).toEqual(['host-1', 'host-2'])
    })

    test('after a sweep, only the gateway that joined since is listed', async () => {
      const { store, clock } = stage()
      await join(store)
      await store.append(newDelivery({ at: clock() }))
      clock.advance(60_000)
      await store.sweep(0)
      await join(store, { ...info, id: 'host-2' })
      expect(await store.nodes()).toMatchObject([{ id: 'host-2' }])
    })
  })
}
