import { describe, expect, test } from 'vitest'
import { beginAwait, readAwait } from '../../src/store/awaits.ts'
import { accepted, newDelivery, newJob, parked, planned } from './stage.ts'
import type { Stage } from './store.ts'

const day = 86_400_000

export function describeAwaits(stage: () => Stage): void {
  describe('a wait for a delivery', () => {
    const name = { hook: 'github', key: 'hook:pr:7', id: 'one' }
    const runOf = (key: string) => newJob({ planned: planned(key), lane: `main/${key}` })

    test('the first delivery of the hook with a run of the key ends it, and no other does', async () => {
      const { store, clock } = stage()
      const arrive = async (hook: string, ...keys: string[]) => {
        const delivery = newDelivery({ hook, at: clock(), jobs: keys.map(runOf) })
        await store.append(delivery)
        return delivery.id
      }
      await arrive('github', 'hook:pr:7')
      const endsAt = clock() + day
      await beginAwait(store, name, endsAt)
      await beginAwait(store, { ...name, id: 'two' }, endsAt + 1)
      await beginAwait(store, { ...name, key: 'hook:pr' }, endsAt)
      for (const [hook, key] of [
        ['github', 'hook:pr:70'],
        ['github', 'hook:pr: 7'],
        ['github/7', 'hook:pr:7'],
        ['gitlab', 'hook:pr:7'],
      ] as const)
        await arrive(hook, key)
      await store.append(newDelivery({ hook: 'github', at: clock(), state: 'skipped' }))
      expect(await readAwait(store, name)).toEqual({ endsAt, deliveryId: undefined })
      const deliveryId = await arrive('github', 'hook:pr:8', 'hook:pr:7')
      await arrive('github', 'hook:pr:7')
      expect(await readAwait(store, name)).toEqual({ endsAt, deliveryId })
      expect(await readAwait(store, { ...name, id: 'two' })).toEqual({ endsAt: endsAt + 1, deliveryId })
      expect(await readAwait(store, { ...name, key: 'hook:pr' })).toEqual({ endsAt, deliveryId: undefined })
      expect(await readAwait(store, { ...name, id: 'three' })).toBeUndefined()
      await beginAwait(store, name, endsAt + day)
      expect(await readAwait(store, name)).toEqual({ endsAt, deliveryId })
    })

    test('deliveries of one call end it once, with the first of them', async () => {
      const { store, clock } = stage()
      await beginAwait(store, name, clock() + day)
      const both = [1, 2].map(() => newDelivery({ hook: 'github', at: clock(), jobs: [runOf('hook:pr:7')] }))
      await store.appendAll(both, { name: 'gmail/a', from: undefined, to: '1' })
      expect(await readAwait(store, name)).toMatchObject({ deliveryId: both[0]?.id })
    })

    test('a parked delivery ends it when its run is stored', async () => {
      const { store, clock } = stage()
      await beginAwait(store, name, clock() + day)
      const late = newDelivery({ at: clock(), ...parked() })
      await store.append(late)
      expect(await readAwait(store, name)).toMatchObject({ deliveryId: undefined })
      await store.settle(late.id, accepted({ jobs: [runOf('hook:pr:7')] }))
      expect(await readAwait(store, name)).toMatchObject({ deliveryId: late.id })
    })

    test('what comes after its end does not end it, and a week later it is forgotten', async () => {
      const { store, clock } = stage()
      await beginAwait(store, name, clock() + day)
      clock.advance(day)
      await store.append(newDelivery({ hook: 'github', at: clock(), jobs: [runOf('hook:pr:7')] }))
      expect(await readAwait(store, name)).toMatchObject({ deliveryId: undefined })
      clock.advance(7 * day - 1_000)
      await store.sweep(99 * day)
      expect(await readAwait(store, name)).toBeDefined()
      clock.advance(2_000)
      await store.sweep(99 * day)
      expect(await readAwait(store, name)).toBeUndefined()
    })
  })
}
