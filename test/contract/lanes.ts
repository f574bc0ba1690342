import { describe, expect, test } from 'vitest'
import { claimOne } from './jobs.ts'
import type { Stage } from './store.ts'
import { newDelivery, newJob } from './stage.ts'

export function describeLanes(stage: () => Stage): void {
  describe('lanes of jobs', () => {
    /** Stores three jobs of one lane, in arrival order, each in its own delivery. */
    async function storeThreeJobs() {
      const { store, clock } = stage()
      const jobs = [newJob({ lane: 'a' }), newJob({ lane: 'a' }), newJob({ lane: 'a' })] as const
      for (const job of jobs) await store.append(newDelivery({ at: clock(), jobs: [job] }))
      const claimIds = async () => (await store.claim({ limit: 9, leaseMs: 1000 })).map(({ id }) => id)
      return { store, clock, jobs, claimIds }
    }

    test('jobs of one lane are claimed one at a time, in arrival order', async () => {
      const { store, jobs, claimIds } = await storeThreeJobs()
      for (const job of jobs) {
        const held = await claimOne(store)
        expect(held.id).toBe(job.id)
        expect(await claimIds()).toEqual([])
        await store.report(held, { outcome: { kind: 'done' } })
      }
      expect(await claimIds()).toEqual([])
    })

    test('a clock that was set back delays no job that was never tried, with or without a lane', async () => {
      const { store, clock, jobs, claimIds } = await storeThreeJobs()
      const other = newJob()
      const held = await claimOne(store)
      await store.append(newDelivery({ at: clock(), jobs: [other] }))
      clock.advance(-3_600_000)
      expect(await claimIds()).toEqual([other.id])
      await store.report(held, { outcome: { kind: 'done' } })
      expect(await claimIds()).toEqual([jobs[1].id])
    })

    test('a clock that was set back by years does not delay a retry for years, with or without a lane', async () => {
      const { store, clock, jobs, claimIds } = await storeThreeJobs()
      const other = newJob()
      await store.append(newDelivery({ at: clock(), jobs: [other] }))
      const yearMs = 31_536_000_000
      clock.advance(yearMs)
      const held = await store.claim({ limit: 9, leaseMs: 30_000 })
      const retry = { kind: 'retry', afterMs: 2_000, error: 'busy' } as const
      for (const job of held) await store.report(job, { outcome: retry })
      expect(await claimIds()).toEqual([])
      clock.advance(-yearMs)
      expect(await claimIds()).toEqual([jobs[0].id, other.id])
    })

    test('a busy lane holds up neither other lanes nor jobs without a lane', async () => {
      const { store, clock, jobs, claimIds } = await storeThreeJobs()
      const others = [newJob({ lane: 'b' }), newJob(), newJob()]
      await store.append(newDelivery({ at: clock(), jobs: others }))
      expect(await claimIds()).toEqual([jobs[0].id, ...others.map(({ id }) => id)])
    })

    test('two jobs of one delivery in one lane do not run at the same time', async () => {
      const { store, clock } = stage()
      const jobs = [newJob({ lane: 'a' }), newJob({ lane: 'a' })]
      await store.append(newDelivery({ at: clock(), jobs }))
      expect(await store.claim({ limit: 9, leaseMs: 1000 })).toHaveLength(1)
    })

    test('while a job waits for its retry, no other job of its lane is claimed', async () => {
      const { store, clock, jobs, claimIds } = await storeThreeJobs()
      await store.report(await claimOne(store), { outcome: { kind: 'retry', afterMs: 500, error: 'busy' } })
      expect(await claimIds()).toEqual([])
      clock.advance(500)
      expect(await claimIds()).toEqual([jobs[0].id])
    })

    test('a released job is first in its lane again', async () => {
      const { store, jobs, claimIds } = await storeThreeJobs()
      await store.report(await claimOne(store), { outcome: { kind: 'release' } })
      expect(await claimIds()).toEqual([jobs[0].id])
    })

    test('a job whose lease expired is first in its lane again', async () => {
      const { clock, jobs, claimIds } = await storeThreeJobs()
      expect(await claimIds()).toEqual([jobs[0].id])
      clock.advance(1000)
      expect(await claimIds()).toEqual([jobs[0].id])
    })

    test('after a dead job, the next job of its lane can be claimed', async () => {
      const { store, jobs, claimIds } = await storeThreeJobs()
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no route' } })
      expect(await claimIds()).toEqual([jobs[1].id])
    })

    test('when a job leaves its lane, the next job of the lane can be claimed, and the first one continues', async () => {
      const { store, clock, jobs, claimIds } = await storeThreeJobs()
      const held = await claimOne(store)
      const step = { name: 'run', state: 'done', at: clock() } as const
      expect(await store.report(held, { steps: [step], leavesLane: true })).toBe(true)
      expect(await claimIds()).toEqual([jobs[1].id])
      await store.report(held, { outcome: { kind: 'retry', afterMs: 500, error: 'busy' } })
      expect(await claimIds()).toEqual([])
      clock.advance(500)
      expect(await claimIds()).toEqual([jobs[0].id])
      expect(await store.job(jobs[0].id)).toMatchObject({ state: 'running', steps: [step] })
    })

    test('a job that left its lane for a retry delays no other job, and has no lane when it is queued again', async () => {
      const { store, clock, jobs, claimIds } = await storeThreeJobs()
      const retry = { kind: 'retry', afterMs: 500, error: 'busy' } as const
      await store.report(await claimOne(store), { leavesLane: true, outcome: retry })
      expect(await claimIds()).toEqual([jobs[1].id])
      clock.advance(500)
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'gone' } })
      await store.requeue(jobs[0].id)
      expect(await claimIds()).toContain(jobs[0].id)
    })

    test('after a dropped job, the next job of its lane can be claimed', async () => {
      const { store, jobs, claimIds } = await storeThreeJobs()
      const record = await store.delivery(jobs[0].id)
      expect(await store.drop(record?.deliveryId ?? '')).toBe(true)
      expect(await claimIds()).toEqual([jobs[1].id])
    })

    test('a dropped job in the middle of a lane does not change the order of the other jobs', async () => {
      const { store, jobs, claimIds } = await storeThreeJobs()
      const held = await claimOne(store)
      const record = await store.delivery(jobs[1].id)
      await store.drop(record?.deliveryId ?? '')
      expect(await claimIds()).toEqual([])
      await store.report(held, { outcome: { kind: 'done' } })
      expect(await claimIds()).toEqual([jobs[2].id])
    })

    test('a requeued job comes before later jobs of its lane, once no later job runs', async () => {
      const { store, jobs, claimIds } = await storeThreeJobs()
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no route' } })
      const second = await claimOne(store)
      expect(second.id).toBe(jobs[1].id)
      await store.requeue(jobs[0].id)
      expect(await claimIds()).toEqual([])
      await store.report(second, { outcome: { kind: 'release' } })
      expect(await claimIds()).toEqual([jobs[0].id])
    })

    test('a requeued job comes before a later job that was not claimed yet', async () => {
      const { store, jobs, claimIds } = await storeThreeJobs()
      const first = await claimOne(store)
      await store.report(first, { outcome: { kind: 'dead', error: 'no route' } })
      await store.requeue(jobs[0].id)
      expect(await claimIds()).toEqual([jobs[0].id])
    })

    const beat = (id: string) =>
      stage().store.addTask({
        id,
        planned: { kind: 'heartbeat', agentId: 'main', sessionKey: 'main', reason: 'wake' },
        lane: 'a',
        standsFor: 'heartbeat/main',
        labels: ['agent:main', 'all'],
      })
    const hold = { kind: 'turns', reason: 'x', author: undefined, forMs: undefined } as const

    test('a task starts before a job of its lane that a hold keeps back, and the job keeps its place before later jobs', async () => {
      const { store, clock } = stage()
      const claimIds = async () => (await store.claim({ limit: 9, leaseMs: 1000 })).map(({ id }) => id)
      const jobs = [newJob({ lane: 'a', labels: ['mapping:x'] }), newJob({ lane: 'a' })] as const
      for (const job of jobs) await store.append(newDelivery({ at: clock(), jobs: [job] }))
      await store.hold({ label: 'mapping:x', ...hold })
      for (const id of ['beat 1', 'beat 2']) {
        await beat(id)
        const [held] = await store.claim({ limit: 9, leaseMs: 1000 })
        expect(held?.id).toBe(id)
        expect(await claimIds()).toEqual([])
        await store.report(held ?? { id, fence: 0 }, { outcome: { kind: 'done' } })
        expect(await claimIds()).toEqual([])
      }
      await beat('beat 3')
      expect(await claimIds()).toEqual(['beat 3'])
      await store.unhold({ label: 'mapping:x', kind: 'turns' })
      expect(await claimIds()).toEqual([])
      clock.advance(1000)
      const [next] = await store.claim({ limit: 9, leaseMs: 1000, only: 'tasks' })
      if (next !== undefined) await store.report(next, { outcome: { kind: 'done' } })
      expect(await claimIds()).toEqual([jobs[0].id])
    })

    test('a task starts before a job of its lane that waits for its next attempt or for a budget, and after one that may start', async () => {
      const { store, clock, jobs } = await storeThreeJobs()
      await beat('beat 1')
      const first = await claimOne(store)
      expect(first.id).toBe(jobs[0].id)
      await store.report(first, { outcome: { kind: 'retry', afterMs: 500, error: 'busy' } })
      const task = await claimOne(store)
      expect(task.id).toBe('beat 1')
      await store.report(task, { outcome: { kind: 'done' } })
      clock.advance(500)
      const again = await claimOne(store)
      expect(again.id).toBe(jobs[0].id)
      const account = { name: 'daily', startsAt: clock(), endsAt: clock() + 3_600_000, limits: { turns: 0 } }
      await store.reserve(again, [{ ...account, limits: { turns: 1 }, most: { nanos: 0, tokens: 0, turns: 1 } }])
      await store.report(again, { outcome: { kind: 'release' } })
      await beat('beat 2')
      expect((await claimOne(store)).id).toBe(jobs[0].id)
      expect(await store.claim({ limit: 9, leaseMs: 1000 })).toEqual([])
    })

    test('a task that a hold of its own keeps back waits, and so does one that waits for its next attempt', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob({ lane: 'a', labels: ['mapping:x'] })] }))
      await store.hold({ label: 'mapping:x', ...hold })
      await store.hold({ label: 'agent:main', ...hold })
      await beat('beat')
      expect(await store.claim({ limit: 9, leaseMs: 1000 })).toEqual([])
      await store.unhold({ label: 'agent:main', kind: 'turns' })
      const task = await claimOne(store)
      await store.report(task, { outcome: { kind: 'retry', afterMs: 500, error: 'busy' } })
      expect(await store.claim({ limit: 9, leaseMs: 1000 })).toEqual([])
      expect(await store.nextDueInMs()).toBe(500)
      clock.advance(500)
      expect((await claimOne(store)).id).toBe('beat')
    })

    test('a new job in an empty lane can be claimed at once', async () => {
      const { store, clock, claimIds } = await storeThreeJobs()
      for (let ended = 0; ended < 3; ended += 1)
        await store.report(await claimOne(store), { outcome: { kind: 'done' } })
      const late = newJob({ lane: 'a' })
      await store.append(newDelivery({ at: clock(), jobs: [late] }))
      expect(await claimIds()).toEqual([late.id])
    })
  })
}
