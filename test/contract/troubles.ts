import { describe, expect, test } from 'vitest'
import { claimOne } from './jobs.ts'
import { newTask } from './tasks.ts'
import type { Stage } from './store.ts'
import { flowJob } from './flow.ts'
import { newDelivery, newJob } from './stage.ts'

export function describeTroubles(stage: () => Stage): void {
  describe('the troubles of a store', () => {
    /** Stores a delivery whose only run fails in this way. */
    async function fail(error: string, kind: 'dead' | 'retry', hook = 'github') {
      const { store, clock } = stage()
      clock.advance(10)
      const job = newJob()
      const delivery = newDelivery({ at: clock(), hook, jobs: [job] })
      await store.append(delivery)
      const outcome = kind === 'dead' ? { kind, error } : { kind, error, afterMs: 60_000 }
      await store.report(await claimOne(store), { outcome })
      return { id: delivery.id, jobId: job.id, at: clock() }
    }

    test('an error with many dead runs hides no older error, and each has its number and its beginning', async () => {
      const { store, clock } = stage()
      expect(await store.troubles({ limit: 9, each: 9 })).toEqual([])
      const old = await fail('the chat is gone', 'dead')
      const many = []
      for (let n = 0; n < 5; n += 1) many.push(await fail('no model', 'dead'))
      const other = await fail('no model', 'dead', 'stripe')
      // neither a success nor a task is a trouble
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ state: 'done' })] }))
      await store.addTask(newTask())
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no model' } })
      const newest = many.at(-1)
      const [gone, no] = [
        {
          state: 'dead',
          error: 'the chat is gone',
          hook: 'github',
          deliveryId: old.id,
          at: old.at,
          count: 1,
          since: old.at,
        },
        { state: 'dead', error: 'no model', hook: 'github', count: 5, since: many[0]?.at },
      ]
      const stripe = { ...no, hook: 'stripe', deliveryId: other.id, at: other.at, count: 1, since: other.at }
      expect(await store.troubles({ limit: 3, each: 1 })).toEqual([
        stripe,
        { ...no, deliveryId: newest?.id, at: newest?.at },
        gone,
      ])
      const all = await store.troubles({ limit: 99, each: 3 })
      expect(all.map(({ deliveryId }) => deliveryId)).toEqual(
        [other, newest, old, many[3], many[2]].map((each) => each?.id),
      )
    })

    test('a failing run is a trouble until it succeeds, is dropped, or is dead; a retried one is none', async () => {
      const { store, clock } = stage()
      const first = await fail('503 from upstream', 'retry')
      const second = await fail('503 from upstream', 'retry')
      const third = await fail('503 from upstream', 'retry')
      const list = async () =>
        (await store.troubles({ limit: 9, each: 9 })).map(({ state, deliveryId }) => [state, deliveryId])
      expect(await list()).toEqual([third, second, first].map(({ id }) => ['queued', id]))
      clock.advance(60_000)
      const claimed = await claimOne(store)
      expect(claimed.id).toBe(first.jobId)
      expect(await list()).toEqual([third, second].map(({ id }) => ['queued', id]))
      await store.report(claimed, { outcome: { kind: 'done' } })
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: '503 from upstream' } })
      await store.drop(third.id)
      expect(await list()).toEqual([['dead', second.id]])
      await store.requeue(second.jobId)
      expect(await list()).toEqual([])
    })

    test('a run whose delivery is deleted is no trouble, and the others with its error keep their number', async () => {
      const { store, clock } = stage()
      await fail('gone', 'dead')
      clock.advance(60_000)
      const kept = await fail('gone', 'dead')
      await store.sweep(30_000)
      const troubles = await store.troubles({ limit: 9, each: 9 })
      expect(troubles.map(({ deliveryId, count }) => [deliveryId, count])).toEqual([[kept.id, 1]])
    })

    test('tryNow() makes the failing runs of a delivery due at once, and no other run', async () => {
      const { store, clock } = stage()
      const first = await fail('503 from upstream', 'retry')
      const second = await fail('503 from upstream', 'retry')
      const dead = await fail('gone', 'dead')
      expect(await store.claim({ limit: 9, leaseMs: 9_000 })).toEqual([])
      expect(await store.tryNow(dead.id)).toEqual([])
      expect(await store.tryNow('none')).toEqual([])
      expect(await store.tryNow(second.id)).toEqual([second.jobId])
      expect((await store.nextDueInMs()) ?? 1).toBeLessThanOrEqual(0)
      // it is due already
      expect(await store.tryNow(second.id)).toEqual([])
      expect((await store.claim({ limit: 9, leaseMs: 9_000 })).map(({ id }) => id)).toEqual([second.jobId])
      clock.advance(60_000)
      expect((await claimOne(store)).id).toBe(first.jobId)
    })

    test('tryNow() of a run in the lane of a session, or with a flow, starts it', async () => {
      const { store, clock } = stage()
      const jobs = [newJob({ lane: 'main/one' }), flowJob({})]
      for (const job of jobs) {
        const delivery = newDelivery({ at: clock(), jobs: [job] })
        await store.append(delivery)
        await store.report(await claimOne(store), { outcome: { kind: 'retry', error: '503', afterMs: 60_000 } })
        expect(await store.claim({ limit: 9, leaseMs: 9_000 })).toEqual([])
        expect(await store.tryNow(delivery.id)).toEqual([job.id])
        const again = await claimOne(store)
        expect(again.id).toBe(job.id)
        await store.report(again, { outcome: { kind: 'done' } })
      }
    })

    test('tryNow() ends a quiet period, and the newest message of a key that gathers still speaks for all', async () => {
      const { store, clock } = stage()
      const flow = { delay: '1h', onNew: 'gather' }
      const deliveries = [flowJob(flow), flowJob(flow), flowJob({ ...flow, key: 'other' })].map((job) =>
        newDelivery({ at: clock(), jobs: [job] }),
      )
      for (const delivery of deliveries) await store.append(delivery)
      expect(await store.claim({ limit: 9, leaseMs: 9_000 })).toEqual([])
      const [first, second] = deliveries
      expect(await store.tryNow(first?.id ?? '')).toEqual([first?.jobs[0]?.id])
      expect((await store.nextDueInMs()) ?? 1).toBeLessThanOrEqual(0)
      const started = await claimOne(store)
      expect(started.id).toBe(second?.jobs[0]?.id)
      await store.report(started, { outcome: { kind: 'done' } })
      expect(await store.claim({ limit: 9, leaseMs: 9_000 })).toEqual([])
      clock.advance(3_600_000)
      expect((await claimOne(store)).id).toBe(deliveries[2]?.jobs[0]?.id)
    })

    test('a delivery with several runs that failed alike is one trouble, and a long error is cut', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), jobs: [newJob(), newJob()] })
      await store.append(delivery)
      const error = 'x'.repeat(2_000)
      for (const end of ['a', 'b'])
        await store.report(await claimOne(store), { outcome: { kind: 'dead', error: `${error}${end}` } })
      expect(await store.troubles({ limit: 9, each: 9 })).toMatchObject([
        { deliveryId: delivery.id, error: error.slice(0, 500), count: 1 },
      ])
    })
  })
}
