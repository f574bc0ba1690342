import { describe, expect, test } from 'vitest'
import { noSpending, type Spending } from '../../src/model/spending.ts'
import type { ClaimedJob, Step } from '../../src/model/job.ts'
import type { Reservation } from '../../src/store/budgets.ts'
import { claimOne } from './jobs.ts'
import { newTask } from './tasks.ts'
import type { Stage } from './store.ts'
import { newDelivery, newJob } from './stage.ts'

const leaseMs = 30_000
const dayMs = 86_400_000
const hourMs = 3_600_000

const turns = (count: number): Spending => ({ ...noSpending, turns: count })

export function describeBudgets(stage: () => Stage): void {
  describe('a budget', () => {
    /** Stores and claims `count` jobs. `asked` builds a reservation of one turn; the budget has three turns, in a period that ends in an hour. */
    async function claimJobs(count: number) {
      const { store, clock } = stage()
      const startsAt = clock() - dayMs + hourMs
      const account = { name: 'daily', startsAt }
      const buildReservation = (over: Partial<Reservation> = {}): Reservation => ({
        ...account,
        endsAt: startsAt + dayMs,
        limits: { turns: 3 },
        most: turns(1),
        ...over,
      })
      await store.append(newDelivery({ at: clock(), jobs: Array.from({ length: count }, () => newJob()) }))
      const jobs = await store.claim({ limit: count, leaseMs })
      const claimIds = async () => (await store.claim({ limit: 99, leaseMs })).map(({ id }) => id)
      const settle = (job: ClaimedJob, used = turns(1)) =>
        store.report(job, { settled: [{ ...account, used }], outcome: { kind: 'done' } })
      const read = async () => (await store.accounts([account]))[0]
      return { store, clock, account, asked: buildReservation, jobs, claimIds, settle, read }
    }

    test('of sixteen turns that ask at the same moment, a budget of three lets three start, and the others wait with a reason', async () => {
      const { store, asked, jobs, read } = await claimJobs(16)
      const answers = await Promise.all(jobs.map((job) => store.reserve(job, [asked()])))
      expect(answers.filter(({ kind }) => kind === 'reserved')).toHaveLength(3)
      expect(answers.filter(({ kind }) => kind === 'waits')).toHaveLength(13)
      expect(await read()).toEqual({
        ...(await read()),
        spent: noSpending,
        reserved: turns(3),
        raised: noSpending,
        waiting: 13,
      })
      const waiting = jobs.find((_, index) => answers[index]?.kind === 'waits')
      expect(await store.job(waiting?.id ?? '')).toMatchObject({
        state: 'queued',
        attempts: 0,
        failingSince: undefined,
        lastError: expect.stringContaining(
          'waits for the budget "daily": 0 turns of 3 turns spent and 3 turns reserved',
        ),
      })
    })

    test('a turn that a budget refuses has no reservation in its other budgets', async () => {
      const { store, asked, jobs } = await claimJobs(2)
      const other = asked({ name: 'other', limits: { turns: 1 } })
      expect(await store.reserve(jobs[0] as ClaimedJob, [asked(), other])).toEqual({ kind: 'reserved' })
      expect(await store.reserve(jobs[1] as ClaimedJob, [asked(), other])).toMatchObject({
        kind: 'waits',
        budget: 'other',
      })
      const accounts = await store.accounts([asked(), other])
      expect(accounts.map(({ reserved, waiting }) => [reserved.turns, waiting])).toEqual([
        [1, 0],
        [1, 1],
      ])
    })

    test('a settled turn counts only what it used, and the turns that have waited longest for the budget are due at once', async () => {
      const { store, asked, jobs, claimIds, settle, read } = await claimJobs(6)
      const [first, second, , ...rest] = jobs as [ClaimedJob, ClaimedJob, ClaimedJob, ...ClaimedJob[]]
      for (const job of jobs) await store.reserve(job, [asked()])
      expect(await claimIds()).toEqual([])
      await settle(first, { nanos: 5, tokens: 40, turns: 0 })
      expect(await read()).toMatchObject({ spent: { nanos: 5, tokens: 40, turns: 0 }, reserved: turns(2), waiting: 1 })
      expect(await claimIds()).toEqual(rest.slice(0, 2).map(({ id }) => id))
      await settle(second)
      expect(await read()).toMatchObject({ spent: { nanos: 5, tokens: 40, turns: 1 }, reserved: turns(1) })
    })

    test('a turn whose report is sent twice is settled once in its budget', async () => {
      const { store, asked, jobs, account, read } = await claimJobs(1)
      const [job] = jobs as [ClaimedJob]
      await store.reserve(job, [asked()])
      const report = { settled: [{ ...account, used: turns(1) }] }
      expect(await store.report(job, report)).toBe(true)
      expect(await store.report(job, report)).toBe(true)
      expect(await read()).toMatchObject({ spent: turns(1), reserved: noSpending })
    })

    test('a gateway that was killed leaves no reservation for longer than its lease', async () => {
      const { store, clock, asked, jobs, read } = await claimJobs(4)
      for (const job of jobs.slice(0, 3)) await store.reserve(job, [asked()])
      clock.advance(leaseMs - 1)
      await store.extend(jobs.slice(3), leaseMs)
      expect(await read()).toMatchObject({ reserved: turns(3) })
      clock.advance(1)
      expect(await read()).toMatchObject({ reserved: noSpending })
      expect(await store.reserve(jobs[3] as ClaimedJob, [asked()])).toEqual({ kind: 'reserved' })
      expect(await read()).toMatchObject({ reserved: turns(1) })
    })

    test('a job that reserves again still has only one reservation', async () => {
      const { store, asked, jobs, read } = await claimJobs(1)
      const [job] = jobs as [ClaimedJob]
      await store.reserve(job, [asked({ most: turns(2) })])
      expect(await store.reserve(job, [asked({ most: turns(3) })])).toEqual({ kind: 'reserved' })
      expect(await read()).toMatchObject({ reserved: turns(3) })
    })

    test('a job with an outdated fence can neither reserve nor settle', async () => {
      const { store, clock, asked, jobs, settle, read } = await claimJobs(1)
      const [old] = jobs as [ClaimedJob]
      clock.advance(leaseMs)
      const now = await claimOne(store)
      expect(await store.reserve(old, [asked()])).toEqual({ kind: 'lost' })
      await store.reserve(now, [asked()])
      expect(await settle(old)).toBe(false)
      expect(await read()).toMatchObject({ spent: noSpending, reserved: turns(1) })
    })

    test('a turn that a spent budget refuses is due when the next period begins, and then starts', async () => {
      const { store, clock, asked, jobs, claimIds, account } = await claimJobs(2)
      const [first, second] = jobs as [ClaimedJob, ClaimedJob]
      await store.reserve(first, [asked({ limits: { turns: 1 } })])
      await store.report(first, { settled: [{ ...account, used: turns(1) }], outcome: { kind: 'done' } })
      expect(await store.reserve(second, [asked({ limits: { turns: 1 } })])).toMatchObject({ kind: 'waits' })
      clock.advance(hourMs - 1)
      expect(await claimIds()).toEqual([])
      clock.advance(1)
      const again = await claimOne(store)
      const { startsAt } = account
      const next = asked({ startsAt: startsAt + dayMs, endsAt: startsAt + 2 * dayMs, limits: { turns: 1 } })
      expect([again.id, again.attempts]).toEqual([second.id, 0])
      expect(await store.reserve(again, [next])).toEqual({ kind: 'reserved' })
    })

    test('a turn that asks for more than the whole budget keeps its lease, and learns that it would wait forever', async () => {
      const { store, asked, jobs } = await claimJobs(1)
      const [job] = jobs as [ClaimedJob]
      const answer = await store.reserve(job, [asked({ most: turns(4) })])
      expect(answer).toMatchObject({ kind: 'never', reason: expect.stringContaining('has 3 turns for a whole period') })
      expect(await store.report(job, { outcome: { kind: 'done' } })).toBe(true)
    })

    test('raising a budget lets all waiting turns start, and does not raise it in the next period', async () => {
      const { store, asked, jobs, claimIds, account, read } = await claimJobs(5)
      const one = asked({ limits: { turns: 1 } })
      for (const job of jobs) await store.reserve(job, [one])
      await store.raiseBudget(account, turns(4))
      expect(await read()).toMatchObject({ raised: turns(4), waiting: 0 })
      expect(await claimIds()).toEqual(jobs.slice(1).map(({ id }) => id))
      const [next] = await store.accounts([{ ...account, startsAt: account.startsAt + dayMs }])
      expect(next).toMatchObject({ raised: noSpending })
    })

    test('wakeBudgets() lets each turn that waits for a budget be claimed, and returns false if no turn waits', async () => {
      const { store, asked, jobs, claimIds } = await claimJobs(3)
      expect(await store.wakeBudgets()).toBe(false)
      for (const job of jobs) await store.reserve(job, [asked({ limits: { turns: 1 } })])
      expect(await store.wakeBudgets()).toBe(true)
      expect(await claimIds()).toEqual(jobs.slice(1).map(({ id }) => id))
    })

    test('a turn that waited for a budget, and now waits for a retry, is not due when the budget has room', async () => {
      const { store, clock, asked, jobs, claimIds, settle } = await claimJobs(2)
      const [spender, waiter] = jobs as [ClaimedJob, ClaimedJob]
      const one = asked({ limits: { turns: 1 } })
      await store.reserve(spender, [one])
      await store.reserve(waiter, [one])
      await store.extend([spender], 2 * leaseMs)
      clock.advance(leaseMs)
      const again = await claimOne(store)
      await store.report(again, { outcome: { kind: 'retry', afterMs: 60_000, error: 'busy' } })
      await settle(spender, noSpending)
      expect([again.id, await claimIds()]).toEqual([waiter.id, []])
      clock.advance(60_000)
      expect(await claimIds()).toEqual([waiter.id])
    })

    test('a few of the turns that wait for a budget check it again soon, in case the turns with reservations die', async () => {
      const { store, clock, asked, jobs, claimIds } = await claimJobs(9)
      for (const job of jobs) await store.reserve(job, [asked({ limits: { turns: 1 } })])
      await store.extend(jobs.slice(0, 1), 2 * leaseMs)
      clock.advance(30_000)
      expect(await claimIds()).toEqual(jobs.slice(1, 5).map(({ id }) => id))
    })

    test('a turn that waits for a budget holds back the later jobs of its lane, and no others', async () => {
      const { store, clock } = stage()
      const jobs = [newJob({ lane: 'a' }), newJob({ lane: 'a' }), newJob({ lane: 'b' })]
      await store.append(newDelivery({ at: clock(), jobs }))
      const [held] = await store.claim({ limit: 1, leaseMs })
      const none = { name: 'daily', startsAt: clock(), endsAt: clock() + dayMs, limits: { turns: 1 }, most: turns(1) }
      await store.reserve(held as ClaimedJob, [none])
      await store.report(held as ClaimedJob, { settled: [{ ...none, used: turns(1) }], outcome: { kind: 'release' } })
      const again = await claimOne(store)
      expect(await store.reserve(again, [none])).toMatchObject({ kind: 'waits' })
      expect((await store.claim({ limit: 9, leaseMs })).map(({ id }) => id)).toEqual([jobs[2]?.id])
    })

    test('noteBudgetAlert() returns true once for a percentage of a budget, and again only for a higher one', async () => {
      const { store, asked, jobs, account, settle } = await claimJobs(1)
      await store.reserve(jobs[0] as ClaimedJob, [asked()])
      await settle(jobs[0] as ClaimedJob)
      expect(await store.noteBudgetAlert(account, 80)).toBe(true)
      expect(await store.noteBudgetAlert(account, 80)).toBe(false)
      expect(await store.noteBudgetAlert(account, 100)).toBe(true)
      expect(await store.noteBudgetAlert(account, 80)).toBe(false)
    })

    test('taskUsage() sums what the named tasks of a time used: those without a run are no turns, and the others count, with or without tokens', async () => {
      const { store, clock } = stage()
      const usage = { inputTokens: 700, outputTokens: 20 }
      const end = async (name: string, step: Partial<Step>) => {
        await store.addTask(newTask({ standsFor: name }))
        await store.report(await claimOne(store), {
          steps: [{ name: 'run', state: 'done', at: clock(), ...step }],
          outcome: { kind: 'done' },
        })
      }
      const read = (withinMs: number) => store.taskUsage({ names: ['heartbeat/main', 'heartbeat/ops'], withinMs })
      const nothing = { turns: 0, uncounted: 0, inputTokens: 0, outputTokens: 0 }
      expect(await read(dayMs)).toEqual(nothing)
      await end('heartbeat/main', { usage })
      clock.advance(hourMs)
      await end('heartbeat/main', { usage })
      await end('heartbeat/ops', { result: 'A command reports no tokens.' })
      await end('heartbeat/main', { state: 'skipped' })
      await end('heartbeat/other', { usage })
      await store.addTask(newTask())
      expect(await read(dayMs)).toEqual({ turns: 3, uncounted: 1, inputTokens: 1_400, outputTokens: 40 })
      expect(await read(hourMs)).toEqual({ turns: 2, uncounted: 1, ...usage })
      clock.advance(hourMs)
      expect(await read(hourMs)).toEqual(nothing)
    })

    test('a sweep deletes the accounts of old periods, and keeps the newest of each budget', async () => {
      const { store, clock } = stage()
      const days = [0, 1, 2].map((day) => ({ name: 'daily', startsAt: clock() + day * dayMs }))
      for (const account of days) await store.raiseBudget(account, turns(1))
      clock.advance(90 * dayMs)
      await store.sweep(dayMs)
      expect((await store.accounts(days)).map(({ raised }) => raised.turns)).toEqual([0, 0, 1])
    })
  })
}
