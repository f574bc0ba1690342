import { describe, expect, test } from 'vitest'
import type { ClaimedJob, Step } from '../../src/model/job.ts'
import type { Store } from '../../src/store/store.ts'
import type { Stage } from './store.ts'
import { newDelivery, newEvent, newJob, planned } from './stage.ts'

const leaseMs = 30_000

export async function claimOne(store: Store): Promise<ClaimedJob> {
  const [job] = await store.claim({ limit: 1, leaseMs })
  if (!job) throw new Error('nothing is due')
  return job
}

const buildStep = (at: number): Step => ({ name: 'run', state: 'done', at, result: 'All good' })

export function describeJobs(stage: () => Stage): void {
  describe('claim()', () => {
    test('claim() leases due jobs in arrival order, up to the limit, and no job twice', async () => {
      const { store, clock } = stage()
      const jobs = [newJob(), newJob(), newJob()]
      await store.append(newDelivery({ at: clock(), jobs: jobs.slice(0, 2) }))
      await store.append(newDelivery({ at: clock(), jobs: jobs.slice(2) }))
      const first = await store.claim({ limit: 2, leaseMs })
      expect(first.map(({ id }) => id)).toEqual([jobs[0]?.id, jobs[1]?.id])
      expect(first[0]).toMatchObject({
        state: 'running',
        attempts: 0,
        lockedUntil: clock() + leaseMs,
        planned: planned(),
      })
      expect((await store.claim({ limit: 2, leaseMs })).map(({ id }) => id)).toEqual([jobs[2]?.id])
      expect(await store.claim({ limit: 2, leaseMs })).toEqual([])
    })

    test('a claim that begins during an append finds the appended jobs if claimsAppended() is true', async () => {
      const { store, clock } = stage()
      const job = newJob({ lane: 'lane' })
      const later = newJob({ lane: 'lane' })
      const appending = store.append(newDelivery({ at: clock(), jobs: [job, later] }))
      const claiming = store.claim({ limit: 2, leaseMs })
      await appending
      const claimed = await claiming
      if (!store.claimsAppended()) claimed.push(...(await store.claim({ limit: 2, leaseMs })))
      // only the first job of the lane, and only once
      expect(claimed.map(({ id, planned: plan }) => [id, plan])).toEqual([[job.id, job.planned]])
      expect(await store.claim({ limit: 2, leaseMs })).toEqual([])
    })

    test('a job that is stored as done is never claimed, and its steps and events are stored', async () => {
      const { store, clock } = stage()
      const steps: Step[] = [{ name: 'event', state: 'done', at: clock() }]
      const delivery = newDelivery({ at: clock(), jobs: [newJob({ state: 'done', steps, events: [newEvent()] })] })
      await store.append(delivery)
      expect(await store.claim({ limit: 2, leaseMs })).toEqual([])
      expect((await store.delivery(delivery.id))?.jobs).toMatchObject([{ state: 'done', steps }])
      expect(await store.events({ limit: 9 })).toMatchObject([{ text: 'Build failed', deliveryId: delivery.id }])
    })

    test('a claimed job cannot be claimed again until its lease ends, and then has a new fence', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      const first = await claimOne(store)
      clock.advance(leaseMs - 1)
      expect(await store.claim({ limit: 1, leaseMs })).toEqual([])
      clock.advance(1)
      const second = await claimOne(store)
      expect(second.id).toBe(first.id)
      expect(second.fence).not.toBe(first.fence)
    })

    test('a job that is claimed after its lease expired names the fence of that lease, and a released job names no fence', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      const first = await claimOne(store)
      expect(first.lapsedFence).toBeUndefined()
      clock.advance(leaseMs)
      const second = await claimOne(store)
      expect(second.lapsedFence).toBe(first.fence)
      await store.report(second, { outcome: { kind: 'release' } })
      expect((await claimOne(store)).lapsedFence).toBeUndefined()
    })

    test('an expired lease counts as an attempt and sets the last error, and the report that ends the job counts as another one', async () => {
      const { store, clock } = stage()
      const job = newJob({ lane: 'a' })
      await store.append(newDelivery({ at: clock(), jobs: [job] }))
      await claimOne(store)
      clock.advance(leaseMs)
      const again = await claimOne(store)
      expect(again).toMatchObject({ attempts: 1, lastError: expect.stringMatching(/died, or lost its lease/) })
      await store.report(again, { outcome: { kind: 'done' } })
      expect(await store.job(job.id)).toMatchObject({ attempts: 2 })
    })

    test('a worker that lost its lease cannot report, and the worker that has the lease can', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), jobs: [newJob()] })
      await store.append(delivery)
      const stale = await claimOne(store)
      clock.advance(leaseMs)
      const held = await claimOne(store)
      const done = { steps: [buildStep(clock())], events: [newEvent()], outcome: { kind: 'done' } } as const
      expect(await store.report(stale, done)).toBe(false)
      expect(await store.delivery(delivery.id)).toMatchObject({ jobs: [{ state: 'running', steps: [] }] })
      expect(await store.events({ limit: 9 })).toEqual([])
      expect(await store.report(held, done)).toBe(true)
      // a repeated report succeeds, because the result of a commit can be unknown
      expect(await store.report(held, done)).toBe(true)
      expect(await store.report(stale, done)).toBe(false)
      expect(await store.report(held, { outcome: { kind: 'dead', error: 'no' } })).toBe(false)
      expect(await store.report(held, { steps: [buildStep(clock())] })).toBe(false)
      expect(await store.delivery(delivery.id)).toMatchObject({ jobs: [{ state: 'done', attempts: 2, steps: [{}] }] })
      expect(await store.events({ limit: 9 })).toHaveLength(1)
    })

    test('an extended lease is valid for the new time, and a lost lease cannot be extended', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob(), newJob()] }))
      const [one, two] = await store.claim({ limit: 2, leaseMs })
      if (!one || !two) throw new Error('two jobs were due')
      clock.advance(leaseMs - 1)
      expect(await store.extend([one], leaseMs)).toEqual([one.id])
      clock.advance(leaseMs - 1)
      expect((await store.claim({ limit: 2, leaseMs })).map(({ id }) => id)).toEqual([two.id])
      expect(await store.extend([one, two], leaseMs)).toEqual([one.id])
    })
  })

  describe('report()', () => {
    test('a step is stored with its events and messages, and the lease continues', async () => {
      const { store, clock } = stage()
      const job = newJob({ planned: planned('hook:pr:1') })
      const delivery = newDelivery({ at: clock(), jobs: [job] })
      await store.append(delivery)
      const held = await claimOne(store)
      clock.advance(5)
      const messages = [
        { role: 'user', text: 'Review' },
        { role: 'assistant', text: 'All good' },
      ] as const
      expect(
        await store.report(held, { steps: [buildStep(clock())], events: [newEvent({ trusted: true })], messages }),
      ).toBe(true)
      expect(await store.delivery(job.id)).toMatchObject({ jobs: [{ state: 'running', steps: [buildStep(clock())] }] })
      expect(await store.events({ limit: 9 })).toEqual([
        { ...newEvent({ trusted: true }), at: clock(), deliveryId: delivery.id, consumedAt: undefined },
      ])
      expect(await store.messages({ agentId: 'main', sessionKey: 'hook:pr:1', limit: 9 })).toEqual(
        messages.map((message) => ({ ...message, runId: job.id, at: clock() })),
      )
      expect(await store.sessions({ limit: 9 })).toEqual(
        expect.arrayContaining([
          { agentId: 'main', sessionKey: 'main', updatedAt: clock(), recipient: undefined },
          { agentId: 'main', sessionKey: 'hook:pr:1', updatedAt: clock(), recipient: undefined },
        ]),
      )
    })

    test('a report without an outcome can extend the lease', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      const held = await claimOne(store)
      clock.advance(leaseMs - 1)
      expect(await store.report(held, { steps: [buildStep(1)], leaseMs })).toBe(true)
      clock.advance(leaseMs - 1)
      expect(await store.claim({ limit: 1, leaseMs })).toEqual([])
      clock.advance(1)
      expect(await claimOne(store)).toMatchObject({ steps: [buildStep(1)], lapsedFence: held.fence })
    })

    test('a report about a stored step writes the outcome, but not the step, its events or its messages again', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), jobs: [newJob()] })
      await store.append(delivery)
      const held = await claimOne(store)
      const rows = { events: [newEvent()], messages: [{ role: 'assistant', text: 'All good' }] } as const
      await store.report(held, { steps: [buildStep(1)], ...rows })
      await store.report(held, { steps: [buildStep(2)], ...rows, outcome: { kind: 'done' } })
      expect(await store.delivery(delivery.id)).toMatchObject({ jobs: [{ state: 'done', steps: [buildStep(1)] }] })
      expect(await store.events({ limit: 9 })).toHaveLength(1)
      expect(await store.messages({ agentId: 'main', sessionKey: 'hook:one', limit: 9 })).toHaveLength(1)
    })

    test('a report of several steps stores all of them, and the same report again stores nothing', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), jobs: [newJob()] })
      await store.append(delivery)
      const held = await claimOne(store)
      const steps = [buildStep(1), { name: 'summary', state: 'done', at: 2 }] as const
      await store.report(held, { steps, events: [newEvent()] })
      await store.report(held, { steps, events: [newEvent()] })
      expect((await store.delivery(delivery.id))?.jobs[0]?.steps).toEqual(steps)
      expect(await store.events({ limit: 9 })).toHaveLength(1)
    })

    test('two different steps are both stored, in order', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), jobs: [newJob()] })
      await store.append(delivery)
      const held = await claimOne(store)
      await store.report(held, { steps: [buildStep(1)] })
      await store.report(held, { steps: [{ name: 'summary', state: 'skipped', at: 2, detail: 'an acknowledgement' }] })
      expect((await store.delivery(delivery.id))?.jobs[0]?.steps.map(({ name }) => name)).toEqual(['run', 'summary'])
    })

    test('a retry counts an attempt and is due at its time', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), jobs: [newJob()] })
      await store.append(delivery)
      const runAt = clock() + 2000
      await store.report(await claimOne(store), { outcome: { kind: 'retry', afterMs: 2000, error: 'busy' } })
      expect(await store.delivery(delivery.id)).toMatchObject({
        jobs: [{ state: 'queued', attempts: 1, runAt, lastError: 'busy', lockedUntil: undefined }],
      })
      clock.advance(1999)
      expect(await store.claim({ limit: 1, leaseMs })).toEqual([])
      clock.advance(1)
      expect(await claimOne(store)).toMatchObject({ attempts: 1 })
    })

    test('a claimed job shows for how long it has failed, and for how long it was overdue', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      const first = await claimOne(store)
      expect(first).toMatchObject({ failingForMs: undefined, overdueForMs: 0 })
      await store.report(first, { outcome: { kind: 'retry', afterMs: 2000, error: 'busy' } })
      clock.advance(5000)
      expect(await claimOne(store)).toMatchObject({ failingForMs: 5000, overdueForMs: 3000 })
    })

    test('a release, and a retry with `counted: false`, do not increase the number of attempts', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
      const retry = { kind: 'retry', afterMs: 0, error: 'rate limited', counted: false } as const
      await store.report(await claimOne(store), { outcome: retry })
      const again = await claimOne(store)
      expect(again.attempts).toBe(0)
      await store.report(again, { outcome: { kind: 'release' } })
      expect(await claimOne(store)).toMatchObject({ attempts: 0, lastError: 'rate limited' })
    })

    test('the end of a job counts as an attempt, unless the report says that nothing was tried', async () => {
      const { store, clock } = stage()
      const jobs = [newJob(), newJob(), newJob()] as const
      await store.append(newDelivery({ at: clock(), jobs }))
      const [one, two, three] = await store.claim({ limit: 3, leaseMs })
      if (!one || !two || !three) throw new Error('three jobs were due')
      await store.report(one, { outcome: { kind: 'done' } })
      await store.report(two, { outcome: { kind: 'dead', error: 'no route' } })
      await store.report(three, { outcome: { kind: 'dead', error: 'given up', counted: false } })
      const ended = await Promise.all(jobs.map(({ id }) => store.job(id)))
      expect(ended.map((job) => job?.attempts)).toEqual([1, 1, 0])
      expect(ended[2]).toMatchObject({ state: 'dead', lastError: 'given up' })
    })

    test('a job keeps its newest failed attempts with their times, and a delay or a release does not count as one', async () => {
      const { store, clock } = stage()
      const job = newJob({ lane: 'a' })
      await store.append(newDelivery({ at: clock(), jobs: [job] }))
      const retry = { kind: 'retry', afterMs: 0 } as const
      const began = clock()
      await store.report(await claimOne(store), { outcome: { ...retry, error: 'not yet', isDelay: true } })
      await store.report(await claimOne(store), { outcome: { kind: 'release' } })
      expect(await store.job(job.id)).toMatchObject({ failures: [] })
      await claimOne(store)
      clock.advance(leaseMs)
      for (let n = 1; n <= 12; n += 1) {
        // the first of these claims also counts the lost lease as a failure
        await store.report(await claimOne(store), { outcome: { ...retry, error: `"${n}" ${'ü\n\u0001'.repeat(200)}` } })
        clock.advance(1)
      }
      const { failures } = (await store.job(job.id)) ?? { failures: [] }
      expect(failures).toHaveLength(12)
      // the failure of the lost lease was the oldest, and is dropped
      expect(failures[0]).toEqual({ at: began + leaseMs, error: `"1" ${'ü\n\u0001'.repeat(200)}`.slice(0, 200) })
      expect(failures.at(-1)).toMatchObject({ at: began + leaseMs + 11, error: expect.stringMatching(/^"12" ü\n/) })
      await store.report(await claimOne(store), { steps: [buildStep(1)], outcome: { kind: 'dead', error: 'no route' } })
      const dead = await store.job(job.id)
      expect(dead?.failures).toHaveLength(12)
      expect(dead?.failures.at(-1)).toEqual({ at: began + leaseMs + 12, error: 'no route' })
      // earlier failures stay visible when the job is queued again, and when it is done
      await store.requeue(job.id)
      await store.report(await claimOne(store), { outcome: { kind: 'done' } })
      expect(await store.job(job.id)).toMatchObject({ state: 'done', failures: dead?.failures })
    })

    test('a failed attempt keeps how long the attempts of its turn took, if the report has it', async () => {
      const { store, clock } = stage()
      const job = newJob()
      await store.append(newDelivery({ at: clock(), jobs: [job] }))
      const retry = { kind: 'retry', afterMs: 0, error: 'busy' } as const
      await store.report(await claimOne(store), { outcome: { ...retry, spentMs: 1_500 } })
      await store.report(await claimOne(store), { outcome: retry })
      const at = clock()
      expect((await store.job(job.id))?.failures).toEqual([
        { at, error: 'busy', spentMs: 1_500 },
        { at, error: 'busy' },
      ])
    })

    test('an expired lease is a failed attempt', async () => {
      const { store, clock } = stage()
      const jobs = [newJob({ lane: 'a' }), newJob()]
      await store.append(newDelivery({ at: clock(), jobs }))
      await store.claim({ limit: 2, leaseMs })
      clock.advance(leaseMs)
      const again = await store.claim({ limit: 2, leaseMs })
      const lost = [{ at: clock(), error: expect.stringMatching(/died, or lost its lease/) }]
      expect(again.map(({ failures }) => failures)).toEqual([lost, lost])
    })

    test('a job that is queued again keeps its place before later jobs', async () => {
      const { store, clock } = stage()
      const [early, late] = [newJob(), newJob()]
      await store.append(newDelivery({ at: clock(), jobs: [early, late] }))
      await store.report(await claimOne(store), { outcome: { kind: 'retry', afterMs: 10, error: 'busy' } })
      clock.advance(10)
      expect((await store.claim({ limit: 2, leaseMs })).map(({ id }) => id)).toEqual([early.id, late.id])
    })
  })

  describe('requeue()', () => {
    test('requeue() queues a dead job again with its steps and zero attempts, and no other job', async () => {
      const { store, clock } = stage()
      const [job, other] = [newJob(), newJob()]
      await store.append(newDelivery({ at: clock(), jobs: [job, other] }))
      const held = await claimOne(store)
      await store.report(held, { steps: [buildStep(1)], outcome: { kind: 'dead', error: 'no route' } })
      expect(await store.delivery(job.id)).toMatchObject({
        jobs: [{ state: 'dead', attempts: 1, lastError: 'no route' }, {}],
      })
      expect(await store.requeue(other.id)).toBe(false)
      expect(await store.requeue('nobody')).toBe(false)
      expect(await store.requeue(job.id)).toBe(true)
      expect(await store.requeue(job.id)).toBe(false)
      const again = await claimOne(store)
      expect(again).toMatchObject({ id: job.id, attempts: 0, steps: [buildStep(1)] })
      expect(again.fence).not.toBe(held.fence)
    })
  })
}
