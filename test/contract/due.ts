import { describe, expect, test } from 'vitest'
import { claimOne } from './jobs.ts'
import { newDelivery, newJob } from './stage.ts'
import type { Stage } from './store.ts'

const leaseMs = 30_000

export function describeDue(stage: () => Stage): void {
  describe('nextRunAt', () => {
    test('is when the next queued job is due, and undefined if no job is queued', async () => {
      const { store, clock } = stage()
      expect(await store.nextRunAt()).toBeUndefined()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      expect(await store.nextRunAt()).toBe(clock())
      const held = await claimOne(store)
      expect(await store.nextRunAt()).toBeUndefined()
      const runAt = clock() + 7000
      await store.report(held, { outcome: { kind: 'retry', runAt, error: 'busy' } })
      expect(await store.nextRunAt()).toBe(runAt)
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      expect(await store.nextRunAt()).toBe(clock())
    })

    test('ignores a job that waits for an earlier job of its lane', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ lane: 'a' }), newJob({ lane: 'a' })] }))
      const held = await claimOne(store)
      expect(await store.nextRunAt()).toBeUndefined()
      await store.report(held, { outcome: { kind: 'done' } })
      expect(await store.nextRunAt()).toBe(clock())
    })
  })

  describe('dueSince', () => {
    test('is when the job that has been due for longest became due, and undefined if no job is due', async () => {
      const { store, clock } = stage()
      expect(await store.dueSince()).toBeUndefined()
      const first = clock()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      clock.advance(5)
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      expect(await store.dueSince()).toBe(first)
      const held = await claimOne(store)
      expect(await store.dueSince()).toBe(first + 5)
      await store.claim({ limit: 9, leaseMs })
      expect(await store.dueSince()).toBeUndefined()
      await store.report(held, { outcome: { kind: 'release' } })
      expect(await store.dueSince()).toBe(clock())
    })

    test('goes by the time a job became due, not by its place: a job that was queued again is due since then', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      const early = await claimOne(store)
      clock.advance(5)
      const second = clock()
      for (const _ of [1, 2]) await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      clock.advance(5)
      await store.report(early, { outcome: { kind: 'release' } })
      expect(await store.dueSince()).toBe(second)
    })

    test('includes a retry as soon as it is due, before any claim', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      const runAt = clock() + 500
      await store.report(await claimOne(store), { outcome: { kind: 'retry', runAt, error: 'busy' } })
      expect(await store.dueSince()).toBeUndefined()
      clock.advance(700)
      expect(await store.dueSince()).toBe(runAt)
    })

    test('ignores a job that waits for an earlier job of its lane', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ lane: 'a' }), newJob({ lane: 'a' })] }))
      const held = await claimOne(store)
      expect(await store.dueSince()).toBeUndefined()
      await store.report(held, { outcome: { kind: 'done' } })
      expect(await store.dueSince()).toBe(clock())
    })
  })
}
