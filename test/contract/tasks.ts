import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/id.ts'
import type { Step } from '../../src/model/job.ts'
import type { JobReport, NewTask } from '../../src/store/records.ts'
import { claimOne } from './jobs.ts'
import { newDelivery, newEvent, newJob, noJobs } from './stage.ts'
import type { Stage } from './store.ts'

export function newTask(over: Partial<NewTask> = {}): NewTask {
  const planned = { kind: 'heartbeat', agentId: 'main', sessionKey: 'main', reason: 'interval' } as const
  return { id: newId(), planned, lane: 'main/main', standsFor: 'heartbeat/main', ...over }
}

export function describeTasks(stage: () => Stage): void {
  describe('a task', () => {
    test('a task is claimed and ended like any other job', async () => {
      const { store, clock } = stage()
      const task = newTask()
      expect(await store.addTask(task)).toBe(true)
      const made = {
        id: task.id,
        deliveryId: undefined,
        planned: task.planned,
        attempts: 0,
        createdAt: clock(),
        runAt: clock(),
        lastError: undefined,
        failures: [],
        steps: [],
        posts: [],
      }
      expect(await store.job(task.id)).toEqual({ ...made, state: 'queued', lockedUntil: undefined })
      expect(await store.nextDueInMs()).toBe(0)
      const held = await claimOne(store)
      expect(held).toMatchObject({ ...made, state: 'running', fence: expect.any(Number) })
      const step: Step = { name: 'run', state: 'done', at: clock() }
      const events = [newEvent({ text: 'it ran' })]
      expect(await store.report(held, { steps: [step], events, outcome: { kind: 'done' } })).toBe(true)
      expect(await store.job(task.id)).toMatchObject({ state: 'done', attempts: 1, steps: [step] })
      expect(await store.events({ limit: 9 })).toMatchObject([{ text: 'it ran', deliveryId: undefined }])
      expect((await store.counts()).jobs).toEqual({ ...noJobs, done: 1 })
    })

    test('a task stored together with a delivery does not belong to it, and stays when the delivery is dropped', async () => {
      const { store, clock } = stage()
      const run = newJob()
      const plan = { kind: 'status', agentId: 'main', sessionKey: 'a', runId: run.id, channel: 'github' } as const
      const task = newJob({
        planned: { ...plan, commit: 'acme/app@0123456', name: 'review' },
        lane: 'status/a',
        standsFor: 'status/one',
      })
      const delivery = newDelivery({ at: clock(), jobs: [run, task] })
      await store.append(delivery)
      expect((await store.delivery(delivery.id))?.jobs.map(({ id }) => id)).toEqual([run.id])
      expect((await store.delivery(delivery.id))?.jobs[0]?.planned).toEqual(run.planned)
      expect(await store.job(task.id)).toMatchObject({ deliveryId: undefined, planned: task.planned, state: 'queued' })
      expect(await store.drop(delivery.id)).toBe(true)
      expect((await store.claim({ limit: 9, leaseMs: 1_000, only: 'tasks' })).map(({ id }) => id)).toEqual([task.id])
    })

    test('makeDue() of a task makes its next attempt due at once, and changes no other task', async () => {
      const { store } = stage()
      const task = newTask({ lane: 'status/a', standsFor: 'status/one' })
      const other = newTask({ lane: 'status/b', standsFor: 'status/two' })
      await store.addTask(task)
      await store.addTask(other)
      for (const job of await store.claim({ limit: 2, leaseMs: 1_000 }))
        await store.report(job, { outcome: { kind: 'retry', afterMs: 60_000, error: 'not yet', counted: false } })
      expect(await store.claim({ limit: 9, leaseMs: 1_000 })).toEqual([])
      expect(await store.makeDue('status/one')).toBe(true)
      expect(await store.nextDueInMs()).toBe(0)
      expect((await store.claim({ limit: 9, leaseMs: 1_000 })).map(({ id }) => id)).toEqual([task.id])
      expect(await store.makeDue('status/one')).toBe(false)
      expect(await store.makeDue('status/three')).toBe(false)
    })

    test('a task that was made due still waits for an earlier one of its lane', async () => {
      const { store } = stage()
      const first = newTask({ lane: 'status/a', standsFor: 'status/one' })
      const second = newTask({ lane: 'status/a', standsFor: 'status/two' })
      await store.addTask(first)
      await store.addTask(second)
      const held = await claimOne(store)
      await store.makeDue('status/two')
      expect(await store.claim({ limit: 9, leaseMs: 1_000 })).toEqual([])
      await store.report(held, { outcome: { kind: 'retry', afterMs: 60_000, error: 'not yet', counted: false } })
      expect(await store.claim({ limit: 9, leaseMs: 1_000 })).toEqual([])
      await store.makeDue('status/one')
      expect((await store.claim({ limit: 9, leaseMs: 1_000 })).map(({ id }) => id)).toEqual([first.id])
    })

    test('a claim of tasks takes no job of a delivery, obeys lanes, and is not kept back by a pause of everything', async () => {
      const { store, clock } = stage()
      const job = newJob({ labels: ['agent:main'] })
      const inLane = newJob({ lane: 'main/main' })
      await store.append(newDelivery({ at: clock(), jobs: [job, inLane] }))
      const claimTasks = async () =>
        (await store.claim({ limit: 9, leaseMs: 1_000, only: 'tasks' })).map(({ id }) => id)
      expect(await claimTasks()).toEqual([])
      const behind = newTask({ labels: ['all'] })
      const free = newTask({ lane: 'main/other', standsFor: 'else' })
      await store.addTask(behind)
      await store.addTask(free)
      await store.hold({ label: 'all', kind: 'pause', reason: '', author: 'ada', forMs: undefined })
      expect(await claimTasks()).toEqual([free.id])
      expect(await claimTasks()).toEqual([])
      await store.unhold({ label: 'all', kind: 'pause' })
      expect((await store.claim({ limit: 9, leaseMs: 1_000 })).map(({ id }) => id)).toEqual([job.id, inLane.id])
    })

    test('a task belongs to no delivery, and is rejected if its id is taken', async () => {
      const { store, clock } = stage()
      const job = newJob()
      await store.append(newDelivery({ at: clock(), jobs: [job] }))
      const task = newTask()
      await store.addTask(task)
      expect(await store.delivery(task.id)).toBeUndefined()
      expect(await store.request(task.id)).toBeUndefined()
      expect(await store.job(job.id)).toMatchObject({ createdAt: clock(), deliveryId: expect.any(String) })
      expect(await store.job('nobody')).toBeUndefined()
      const twin = newTask({ id: job.id, standsFor: 'else' })
      await expect(store.addTask(twin)).rejects.toMatchObject({ code: 'store-unavailable' })
    })

    test('no second task with the same standsFor is added while one is queued, even for a retry; while one runs, exactly one more is added', async () => {
      const { store, clock } = stage()
      expect(await store.addTask(newTask())).toBe(true)
      expect(await store.addTask(newTask())).toBe(false)
      expect(await store.addTask(newTask({ standsFor: 'heartbeat/other', lane: 'other/main' }))).toBe(true)
      const held = await claimOne(store)
      await store.report(held, { outcome: { kind: 'retry', afterMs: 500, error: 'busy' } })
      expect(await store.addTask(newTask())).toBe(false)
      clock.advance(500)
      expect(await claimOne(store)).toMatchObject({ id: held.id })
      expect(await store.addTask(newTask())).toBe(true)
      expect(await store.addTask(newTask())).toBe(false)
      expect((await store.counts()).jobs).toMatchObject({ queued: 2, running: 1 })
    })

    test('a task is added again while the previous one waits for its retry outside its lane', async () => {
      const { store, clock } = stage()
      await store.addTask(newTask())
      const retry = { kind: 'retry', afterMs: 500, error: 'busy' } as const
      await store.report(await claimOne(store), { leavesLane: true, outcome: retry })
      const second = newTask()
      expect(await store.addTask(newTask({ unlessWithinMs: 500 }))).toBe(false)
      expect(await store.addTask(second)).toBe(true)
      expect(await claimOne(store)).toMatchObject({ id: second.id })
      expect(await store.taskAgeMs(second.standsFor)).toBe(0)
      clock.advance(500)
      expect(await store.claim({ limit: 9, leaseMs: 1 })).toHaveLength(1)
    })

    test('a task is not added if one with the same standsFor was added within the given time, whatever its state', async () => {
      const { store, clock } = stage()
      await store.addTask(newTask({ unlessWithinMs: 500 }))
      await store.report(await claimOne(store), { outcome: { kind: 'done' } })
      clock.advance(499)
      expect(await store.addTask(newTask({ unlessWithinMs: 500 }))).toBe(false)
      expect(await store.addTask(newTask({ unlessWithinMs: 500, standsFor: 'heartbeat/other' }))).toBe(true)
      clock.advance(1)
      expect(await store.addTask(newTask({ unlessWithinMs: 500 }))).toBe(true)
    })

    test('a task is added even if the last one has a time in the future, because the clock was set back', async () => {
      const { store, clock } = stage()
      await store.addTask(newTask())
      await store.report(await claimOne(store), { outcome: { kind: 'done' } })
      clock.advance(-3_600_000)
      expect(await store.addTask(newTask({ unlessWithinMs: 500 }))).toBe(true)
    })

    test('a task that is not added leaves nothing in the store', async () => {
      const { store, clock } = stage()
      await store.addTask(newTask())
      clock.advance(5)
      const refused = newTask()
      await store.addTask(refused)
      expect(await store.job(refused.id)).toBeUndefined()
      expect(await store.taskAgeMs('heartbeat/main')).toBe(5)
    })

    test('a task runs in arrival order with the other jobs of its lane', async () => {
      const { store, clock } = stage()
      const [before, after] = [newJob({ lane: 'main/main' }), newJob({ lane: 'main/main' })]
      const task = newTask()
      await store.append(newDelivery({ at: clock(), jobs: [before] }))
      await store.addTask(task)
      await store.append(newDelivery({ at: clock(), jobs: [after] }))
      for (const id of [before.id, task.id, after.id]) {
        const due = await store.claim({ limit: 9, leaseMs: 1000 })
        expect(due.map((job) => job.id)).toEqual([id])
        for (const job of due) await store.report(job, { outcome: { kind: 'done' } })
      }
    })

    test('a task that is dead can be requeued', async () => {
      const { store } = stage()
      const task = newTask()
      await store.addTask(task)
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no model' } })
      expect(await store.requeue(task.id)).toBe(true)
      expect(await store.addTask(newTask())).toBe(false)
      expect(await claimOne(store)).toMatchObject({ id: task.id, attempts: 0 })
    })
  })

  describe('requeue of a run', () => {
    const names = ['status', 'callback'] as const

    /** Stores a dead run with its two tasks, and a task of another run. */
    async function storeDeadRun({ store, clock }: ReturnType<typeof stage>) {
      const run = newJob()
      const buildTask = (standsFor: string) => newJob({ standsFor, lane: standsFor })
      const tasks = names.map((kind) => buildTask(`${kind}/${run.id}`))
      const other = buildTask(`status/${newId()}`)
      await store.append(newDelivery({ at: clock(), jobs: [run, ...tasks, other] }))
      const held = await store.claim({ limit: 9, leaseMs: 60_000 })
      const reportOn = async (id: string, report: JobReport) => {
        const job = held.find((each) => each.id === id)
        return job !== undefined && (await store.report(job, report))
      }
      await reportOn(run.id, { outcome: { kind: 'dead', error: 'no model' } })
      const steps: Step[] = [{ name: 'ended', state: 'done', at: clock(), result: 'dead' }]
      return { run, tasks, other, steps, reportOn }
    }

    test.each(['queued', 'running', 'done', 'dead'] as const)(
      'when a run is queued again, those of its tasks that are %s start over without steps, and no other task does',
      async (state) => {
        const { store, clock } = stage()
        const { run, tasks, other, steps, reportOn } = await storeDeadRun(stage())
        const outcomes = {
          queued: { kind: 'retry', afterMs: 60_000, error: 'busy' },
          running: undefined,
          done: { kind: 'done' },
          dead: { kind: 'dead', error: 'refused' },
        } as const
        const outcome = outcomes[state]
        for (const { id } of [...tasks, other]) await reportOn(id, { steps, ...(outcome && { outcome }) })
        const before = await store.job(other.id)
        clock.advance(5_000)
        expect(await store.requeue(run.id)).toBe(true)
        for (const { id } of tasks)
          expect(await store.job(id)).toMatchObject({ state: 'queued', steps: [], attempts: 0, createdAt: clock() })
        expect(await store.job(other.id)).toEqual(before)
        // the requeue ended the leases of the earlier claims
        for (const { id } of tasks) expect(await reportOn(id, { outcome: { kind: 'done' } })).toBe(false)
        const claimed = await store.claim({ limit: 9, leaseMs: 60_000 })
        expect(claimed.map(({ id }) => id).toSorted()).toEqual([run.id, ...tasks.map(({ id }) => id)].toSorted())
      },
    )

    test('a task that starts over no longer names the job that superseded it', async () => {
      const { store } = stage()
      const { run, tasks, other, reportOn } = await storeDeadRun(stage())
      const id = tasks[0]?.id ?? ''
      await reportOn(id, { outcome: { kind: 'retry', afterMs: 60_000, error: 'busy' } })
      await store.endJob(id, { state: 'superseded', endedBy: other.id, reason: 'replaced' })
      expect(await store.job(id)).toMatchObject({ state: 'superseded', endedBy: other.id })
      expect(await store.requeue(run.id)).toBe(true)
      expect(await store.job(id)).toMatchObject({ state: 'queued', endedBy: undefined })
    })

    test('a requeue of a run that is not dead does not change its tasks', async () => {
      const { store, clock } = stage()
      const { run, tasks, steps, reportOn } = await storeDeadRun(stage())
      await store.requeue(run.id)
      const [job] = (await store.claim({ limit: 9, leaseMs: 60_000 })).filter(({ id }) => id === tasks[0]?.id)
      if (job) await store.report(job, { steps })
      clock.advance(5)
      expect(await store.requeue(run.id)).toBe(false)
      expect(await store.job(tasks[0]?.id ?? '')).toMatchObject({ state: 'running', steps })
      expect(await reportOn(tasks[0]?.id ?? '', {})).toBe(false)
    })
  })

  describe('taskAgeMs()', () => {
    test('taskAgeMs() is the age of the newest task with the given standsFor, whatever its state', async () => {
      const { store, clock } = stage()
      expect(await store.taskAgeMs('heartbeat/main')).toBeUndefined()
      await store.addTask(newTask())
      await store.report(await claimOne(store), { outcome: { kind: 'done' } })
      clock.advance(5)
      await store.addTask(newTask())
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no model' } })
      clock.advance(3)
      expect(await store.taskAgeMs('heartbeat/main')).toBe(3)
      expect(await store.taskAgeMs('heartbeat')).toBeUndefined()
    })
  })

  describe('sweep() of tasks', () => {
    test('sweep() deletes tasks that ended before the given time, and keeps those that ended later or still run', async () => {
      const { store, clock } = stage()
      const names = ['ended', 'ended later', 'running']
      const tasks = names.map((standsFor) => newTask({ standsFor, lane: standsFor }))
      for (const task of tasks) await store.addTask(task)
      const held = await store.claim({ limit: 3, leaseMs: 60_000 })
      const reportDone = async (index: number) => {
        const job = held[index]
        if (job) await store.report(job, { outcome: { kind: 'done' } })
      }
      await reportDone(0)
      clock.advance(1000)
      await reportDone(1)
      await store.sweep(0)
      const left = await Promise.all(tasks.map(({ id }) => store.job(id)))
      expect(left.map((job) => job?.state)).toEqual([undefined, 'done', 'running'])
      expect(await Promise.all(names.map((name) => store.taskAgeMs(name)))).toEqual([undefined, 1000, 1000])
    })

    test('sweep() drops an old task that still waits, and the next job of its lane can be claimed', async () => {
      const { store, clock } = stage()
      const task = newTask()
      await store.addTask(task)
      clock.advance(1000)
      const next = newJob({ lane: task.lane })
      await store.append(newDelivery({ at: clock(), jobs: [next] }))
      await store.sweep(0)
      expect(await store.job(task.id)).toMatchObject({ state: 'dropped' })
      expect(await claimOne(store)).toMatchObject({ id: next.id })
    })
  })
}
