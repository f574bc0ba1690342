import { describe, expect, test } from 'vitest'
import { claimOne } from './jobs.ts'
import { newDelivery, newJob } from './stage.ts'
import type { Stage } from './store.ts'

const leaseMs = 30_000

export function describeDue(stage: () => Stage): void {
  describe('nextDueInMs()', () => {
    test('nextDueInMs is the time until the next queued job is due, and undefined if no job is queued', async () => {
      const { store, clock } = stage()
      expect(await store.nextDueInMs()).toBeUndefined()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      expect(await store.nextDueInMs()).toBe(0)
      const held = await claimOne(store)
      expect(await store.nextDueInMs()).toBeUndefined()
      await store.report(held, { outcome: { kind: 'retry', afterMs: 7000, error: 'busy' } })
      expect(await store.nextDueInMs()).toBe(7000)
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      expect(await store.nextDueInMs()).toBe(0)
    })

    test('nextDueInMs ignores a job that waits for an earlier job of its lane', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ lane: 'a' }), newJob({ lane: 'a' })] }))
      const held = await claimOne(store)
      expect(await store.nextDueInMs()).toBeUndefined()
      await store.report(held, { outcome: { kind: 'done' } })
      expect(await store.nextDueInMs()).toBe(0)
    })
  })

  describe('dueForMs()', () => {
    test('dueForMs is the time since the first due job became due, and undefined if no job is due', async () => {
      const { store, clock } = stage()
      expect(await store.dueForMs()).toBeUndefined()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      clock.advance(5)
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      expect(await store.dueForMs()).toBe(5)
      const held = await claimOne(store)
      expect(await store.dueForMs()).toBe(0)
      await store.claim({ limit: 9, leaseMs })
      expect(await store.dueForMs()).toBeUndefined()
      await store.report(held, { outcome: { kind: 'release' } })
      expect(await store.dueForMs()).toBe(0)
    })

    test('dueForMs counts from the time at which a job became due or was queued again, not from its place in the queue', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      const early = await claimOne(store)
      clock.advance(5)
      for (const _ of [1, 2]) await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      clock.advance(5)
      await store.report(early, { outcome: { kind: 'release' } })
      expect(await store.dueForMs()).toBe(5)
    })

    test('dueForMs includes a retry as soon as it is due, before any claim', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      await store.report(await claimOne(store), { outcome: { kind: 'retry', afterMs: 500, error: 'busy' } })
      expect(await store.dueForMs()).toBeUndefined()
      clock.advance(700)
      expect(await store.dueForMs()).toBe(200)
    })

    test('dueForMs ignores a job that waits for an earlier job of its lane', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ lane: 'a' }), newJob({ lane: 'a' })] }))
      const held = await claimOne(store)
      expect(await store.dueForMs()).toBeUndefined()
      await store.report(held, { outcome: { kind: 'done' } })
      expect(await store.dueForMs()).toBe(0)
    })
  })
}
