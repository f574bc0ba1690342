import { describe, expect, test } from 'vitest'
import { claimOne } from './jobs.ts'
import type { Stage } from './store.ts'
import { newDelivery, newJob } from './stage.ts'

const pause = { kind: 'pause', reason: 'The provider has an outage.', author: 'ops', forMs: undefined } as const
const cancelled = { state: 'cancelled', reason: 'An operator cancelled it.' } as const

export function describeHolds(stage: () => Stage): void {
  describe('holds and endings', () => {
    /** Stores jobs of three mappings, and one job without a delivery. */
    async function storeJobs() {
      const { store, clock } = stage()
      const jobs = [
        newJob({ labels: ['mapping:a', 'agent:main'], lane: 'x' }),
        newJob({ labels: ['mapping:b', 'agent:main'], lane: 'x' }),
        newJob({ labels: ['mapping:ab', 'agent:main'] }),
      ] as const
      for (const job of jobs) await store.append(newDelivery({ at: clock(), jobs: [job] }))
      await store.addTask({
        id: 'beat',
        planned: { kind: 'heartbeat', agentId: 'main', sessionKey: 'main', reason: 'interval' },
        lane: 'main/main',
        standsFor: 'beat',
      })
      const claimIds = async (limit = 9) => (await store.claim({ limit, leaseMs: 1_000 })).map(({ id }) => id)
      return { store, clock, jobs, claimIds }
    }

    test('a hold holds back the jobs with its label, and no others, until it is removed', async () => {
      const { store, clock, jobs, claimIds } = await storeJobs()
      await store.hold({ label: 'mapping:a', ...pause })
      expect(await store.holds()).toEqual([{ label: 'mapping:a', ...pause, at: clock() }])
      // the second job waits for the first one, which is in the same lane
      expect(await claimIds(1)).toEqual([jobs[2].id])
      expect(await claimIds()).toEqual(['beat'])
      expect((await store.job(jobs[0].id))?.state).toBe('queued')
      expect(await store.unhold({ label: 'mapping:a', kind: 'pause' })).toBe(true)
      expect(await store.unhold({ label: 'mapping:a', kind: 'pause' })).toBe(false)
      expect(await claimIds()).toEqual([jobs[0].id])
    })

    test('a hold on everything holds back the jobs of deliveries, and ends by itself at its time', async () => {
      const { store, clock, jobs, claimIds } = await storeJobs()
      await store.hold({ label: 'all', ...pause, forMs: 500 })
      await store.hold({ label: 'agent:main', ...pause, forMs: 900 })
      expect(await claimIds()).toEqual(['beat'])
      clock.advance(500)
      expect(await claimIds()).toEqual([])
      clock.advance(400)
      expect(await store.holds()).toEqual([])
      expect(await claimIds()).toEqual([jobs[0].id, jobs[2].id])
    })

    test('a queued job that must end is ended at once with the reason, and the next job of its lane runs', async () => {
      const { store, jobs, claimIds } = await storeJobs()
      expect(
        await store.endJob(jobs[0].id, { state: 'superseded', reason: 'A newer one came.', endedBy: jobs[1].id }),
      ).toBe('ended')
      expect(await store.endJob(jobs[0].id, cancelled)).toBeUndefined()
      expect(await store.job(jobs[0].id)).toMatchObject({
        state: 'superseded',
        lastError: 'A newer one came.',
        endedBy: jobs[1].id,
        attempts: 0,
      })
      expect((await store.counts()).jobs).toMatchObject({ superseded: 1, cancelled: 0, queued: 3, done: 0 })
      expect(await claimIds()).toEqual([jobs[1].id, jobs[2].id, 'beat'])
    })

    test('a running job that must end records only what it posted, and its lane is free once its owner reports that it stopped', async () => {
      const { store, jobs, claimIds } = await storeJobs()
      const held = await claimOne(store)
      expect(await store.jobsToEnd()).toEqual([])
      expect(await store.endJob(held.id, cancelled)).toBe('ending')
      expect(await store.endJob(held.id, { ...cancelled, reason: 'Another reason.' })).toBe('ending')
      expect(await store.jobsToEnd()).toEqual([{ id: held.id, fence: held.fence }])
      const post = { part: 0, channel: 'slack', to: 'C1', nonce: 'n', text: 'x', state: 'sent', at: 1 } as const
      const step = { name: 'run', state: 'done', at: 1, result: 'late' } as const
      const events = [{ agentId: 'main', sessionKey: 'main', text: 'late', source: 'x', trusted: false, wakes: true }]
      expect(await store.report(held, { steps: [step], events, posts: [post] })).toBe(false)
      expect((await store.job(held.id))?.state).toBe('running')
      expect(await claimIds()).toEqual([jobs[2].id, 'beat'])
      expect(await store.report(held, { steps: [step], events, outcome: { kind: 'done' } })).toBe(false)
      const ended = await store.job(held.id)
      expect(ended).toMatchObject({ state: 'cancelled', lastError: cancelled.reason, steps: [], posts: [post] })
      expect(await store.jobsToEnd()).toEqual([])
      expect((await store.events({ limit: 9 })).map(({ text }) => text)).toEqual([])
      expect(await claimIds()).toEqual([jobs[1].id])
    })

    test('a job that must end is not started again when its lease expires', async () => {
      const { store, clock, jobs, claimIds } = await storeJobs()
      const held = await claimOne(store)
      await store.endJob(held.id, cancelled)
      clock.advance(60_000)
      expect(await claimIds()).toEqual([jobs[1].id, jobs[2].id, 'beat'])
      expect((await store.job(held.id))?.state).toBe('cancelled')
      expect(await store.report(held, { outcome: { kind: 'done' } })).toBe(false)
    })
  })
}
