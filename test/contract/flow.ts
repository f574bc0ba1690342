import { describe, expect, test } from 'vitest'
import { Flow, type SharedLimits, toFlowSettings } from '../../src/core/model/flow.ts'
import type { ClaimedJob } from '../../src/model/job.ts'
import type { EndedRun, NewJob } from '../../src/store/records.ts'
import type { Stage } from './store.ts'
import { newDelivery, newJob } from './stage.ts'

/** A job of a mapping with a flow. */
export function flowJob(flow: object, over: Partial<NewJob> & { ring?: string } = {}): NewJob {
  const { ring = 'pr', ...job } = over
  const parsed = Flow.parse({ key: 'k', ...flow })
  const settings = toFlowSettings(parsed, { ring, rateKey: '' })
  const planned = { ring, key: parsed.key ?? '', expiresMs: parsed.expires, settings }
  return newJob({ labels: [`mapping:${ring}`, 'agent:main'], flow: planned, ...job })
}

/** Two jobs, for tests with a damaged row: `damageRow` damages the first. */
export function newPair(hasFlow = false): NewJob[] {
  const labels = ['agent:main']
  return ['bad', 'good'].map((id) => (hasFlow ? flowJob({ key: id }, { id, labels }) : newJob({ id, labels })))
}

/** A statement that cuts a JSON text of the job `bad`. */
export const damageRow = (table: string, column: string) =>
  `UPDATE ${table} SET ${column} = '{"kind":' WHERE ${table === 'jobs' ? 'seq' : 'job_seq'} = (SELECT seq FROM jobs WHERE id = 'bad')`

const leaseMs = 30_000

function ensure<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('nothing is there')
  return value
}

export function describeFlow(stage: () => Stage): void {
  describe('flows of a store', () => {
    const add = async (...jobs: NewJob[]) => {
      const { store, clock } = stage()
      for (const job of jobs) {
        await store.append(newDelivery({ at: clock(), jobs: [job] }))
        clock.advance(1)
      }
      return jobs.map(({ id }) => id)
    }
    const claim = (limit = 9, limits: SharedLimits = {}) => stage().store.claim({ limit, leaseMs, limits })
    const claimIds = async (limit = 9, limits: SharedLimits = {}) => (await claim(limit, limits)).map(({ id }) => id)
    const reportDone = async (...jobs: ClaimedJob[]) => {
      for (const job of jobs) expect(await stage().store.report(job, { outcome: { kind: 'done' } })).toBe(true)
    }
    const readStates = async (ids: readonly (string | undefined)[]) =>
      (await Promise.all(ids.map((id) => stage().store.job(id ?? '')))).map((job) => job?.state)

    test('jobs of one key run one at a time in order of arrival, and those of another key do not wait', async () => {
      const [a, b, other] = await add(flowJob({}), flowJob({}), flowJob({ key: 'other' }))
      const [first, second] = await claim()
      expect([first?.id, second?.id]).toEqual([a, other])
      expect(await claimIds()).toEqual([])
      if (first) await reportDone(first)
      expect(await claimIds()).toEqual([b])
      expect(await stage().store.nextDueInMs()).toBeUndefined()
    })

    test('a dead job that an operator retries does not wait for the retry of a newer job', async () => {
      const { store } = stage()
      const [a, b] = await add(flowJob({}), flowJob({}))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'dead', error: 'broken' } })
      const [second] = await claim()
      expect([first?.id, second?.id]).toEqual([a, b])
      expect(await store.requeue(ensure(a))).toBe(true)
      expect(await claimIds()).toEqual([])
      await store.report(ensure(second), { outcome: { kind: 'retry', afterMs: 20_000, error: 'busy' } })
      expect(await claimIds()).toEqual([a])
    })

    test('a dead job that is queued again in the millisecond of its creation does not wait for the retry of a newer job', async () => {
      const { store, clock } = stage()
      const [a, b] = [flowJob({}), flowJob({})]
      for (const job of [a, b]) await store.append(newDelivery({ at: clock(), jobs: [job] }))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'dead', error: 'broken' } })
      const [second] = await claim()
      await store.report(ensure(second), { outcome: { kind: 'retry', afterMs: 20_000, error: 'busy' } })
      expect([first?.id, second?.id]).toEqual([a.id, b.id])
      expect(await store.requeue(a.id)).toBe(true)
      expect(await claimIds()).toEqual([a.id])
    })

    test('with onNew "replace", a new request begins a quiet period, even if it replaces a turn that was queued again in the millisecond of its creation', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), jobs: [flowJob({ onNew: 'replace' })] }))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'release' } })
      const newest = flowJob({ onNew: 'replace', delay: '10s' })
      await store.append(newDelivery({ at: clock(), jobs: [newest] }))
      expect(await claimIds()).toEqual([])
      clock.advance(10_000)
      expect(await claimIds()).toEqual([newest.id])
    })

    test('a turn that gathers is not tried again before its time, even if an operator retries an older one', async () => {
      const { store, clock } = stage()
      const [a] = await add(flowJob({ onNew: 'gather' }))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'dead', error: 'broken' } })
      const [b] = await add(flowJob({ onNew: 'gather' }))
      const [second] = await claim()
      await store.report(ensure(second), { outcome: { kind: 'retry', afterMs: 20_000, error: 'busy', counted: false } })
      expect(await store.requeue(ensure(a))).toBe(true)
      expect(await claimIds()).toEqual([])
      clock.advance(20_000)
      expect(await claimIds()).toEqual([b])
    })

    test('with onNew "gather", a new request waits for no retry if an operator retried the oldest turn of its key', async () => {
      const { store, clock } = stage()
      const flow = { onNew: 'gather' }
      const [a] = await add(flowJob(flow))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'dead', error: 'broken', counted: false } })
      await add(flowJob(flow))
      const [second] = await claim()
      await store.report(ensure(second), { outcome: { kind: 'retry', afterMs: 10_000, error: 'busy', counted: false } })
      clock.advance(1)
      expect(await store.requeue(ensure(a))).toBe(true)
      expect(await claimIds()).toEqual([])
      const [newest] = await add(flowJob(flow))
      expect(await claimIds()).toEqual([newest])
    })

    test('with onNew "gather" and a delay, neither a turn that an operator retries nor a newer request starts before the quiet period ends', async () => {
      const { store, clock } = stage()
      const flow = { onNew: 'gather', delay: '10s' }
      const pause = { label: 'all', kind: 'pause' } as const
      await store.hold({ ...pause, reason: 'x', author: undefined, forMs: undefined })
      await add(flowJob(flow))
      expect(await claimIds()).toEqual([])
      clock.advance(10_000)
      expect(await claimIds()).toEqual([])
      const [late] = await add(flowJob(flow))
      await store.unhold(pause)
      const [first] = await claim()
      expect(first?.id).toBe(late)
      await store.report(ensure(first), { outcome: { kind: 'dead', error: 'broken', counted: false } })
      expect(await store.requeue(ensure(late))).toBe(true)
      expect(await claimIds()).toEqual([])
      const [newest] = await add(flowJob(flow))
      expect(await claimIds()).toEqual([])
      clock.advance(9_000)
      expect(await claimIds()).toEqual([])
      clock.advance(1_000)
      expect(await claimIds()).toEqual([newest])
    })

    test('a turn that waits for a budget holds back its key, and runs when the budget is raised', async () => {
      const { store, clock } = stage()
      const [a, b] = await add(flowJob({}), flowJob({}))
      const [first] = await claim()
      const turn = { nanos: 0, tokens: 0, turns: 1 }
      const account = { name: 'daily', startsAt: clock() - 1_000 }
      const asked = { ...account, endsAt: clock() + 86_400_000, limits: { turns: 1 }, most: turn }
      const [other] = await add(flowJob({ key: 'other' }))
      const [spender] = await claim()
      expect(await store.reserve(ensure(spender), [asked])).toEqual({ kind: 'reserved' })
      expect(await store.reserve(ensure(first), [asked])).toMatchObject({ kind: 'waits', budget: 'daily' })
      expect([spender?.id, await claimIds()]).toEqual([other, []])
      await store.raiseBudget(account, turn)
      const [again] = await claim()
      expect(again?.id).toBe(a)
      expect(await store.reserve(ensure(again), [asked])).toEqual({ kind: 'reserved' })
      await reportDone(ensure(again))
      expect(await claimIds()).toEqual([b])
    })

    test('a job that waits for a retry holds back its own key, and no other', async () => {
      const { store, clock } = stage()
      const [a, b] = await add(flowJob({}), flowJob({}))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'retry', afterMs: 5_000, error: 'busy' } })
      const [other] = await add(flowJob({ key: 'other' }))
      expect(await claimIds()).toEqual([other])
      expect(await store.nextDueInMs()).toBe(4_999)
      clock.advance(5_000)
      const [again] = await claim()
      expect(again).toMatchObject({ id: a, attempts: 1 })
      await reportDone(ensure(again))
      expect(await claimIds()).toEqual([b])
    })

    test('a job whose gateway died starts again when its lease expires, and starts alone', async () => {
      const { clock } = stage()
      const [a, b] = await add(flowJob({}), flowJob({}))
      const [first] = await claim()
      clock.advance(leaseMs)
      const [again, ...others] = await claim()
      expect(again).toMatchObject({ id: a, attempts: 1, lapsedFence: first?.fence })
      expect(others).toEqual([])
      expect(await stage().store.report(ensure(first), { outcome: { kind: 'done' } })).toBe(false)
      await reportDone(ensure(again))
      expect(await claimIds()).toEqual([b])
    })

    test('with onNew "replace", the newest request of a key wins; waiting ones end at once, and the running one must stop first', async () => {
      const { store } = stage()
      const flow = { onNew: 'replace' }
      const [a] = await add(flowJob(flow))
      const [running] = await claim()
      const [b, c, d] = await add(flowJob(flow), flowJob(flow), flowJob(flow))
      expect(await claimIds(0)).toEqual([])
      expect(await readStates([a, b, c, d])).toEqual(['running', 'superseded', 'superseded', 'queued'])
      expect(await store.job(ensure(b))).toMatchObject({
        endedBy: d,
        lastError: expect.stringContaining('newer request'),
      })
      expect(await store.jobsToEnd()).toEqual([{ id: a, fence: running?.fence }])
      expect(await claimIds()).toEqual([])
      expect(await store.report(ensure(running), { outcome: { kind: 'release' } })).toBe(false)
      expect(await store.job(ensure(a))).toMatchObject({ state: 'superseded', endedBy: d })
      expect(await claimIds()).toEqual([d])
    })

    test('with onNew "replace", a newer request also replaces a job that waits for a retry', async () => {
      const { store, clock } = stage()
      const [a] = await add(flowJob({ onNew: 'replace' }))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'retry', afterMs: 5_000, error: 'busy' } })
      const [b] = await add(flowJob({ onNew: 'replace' }))
      expect(await claimIds()).toEqual([b])
      clock.advance(60_000)
      expect(await readStates([a])).toEqual(['superseded'])
    })

    test('with onNew "skip", a request makes no turn while another turn of its key waits or runs, and a later request makes one', async () => {
      const flow = { onNew: 'skip' }
      const [a, b] = await add(flowJob(flow), flowJob(flow))
      const [first] = await claim()
      const [c] = await add(flowJob(flow))
      expect(await claimIds()).toEqual([])
      await reportDone(ensure(first))
      expect(await readStates([a, b, c])).toEqual(['done', 'skipped', 'skipped'])
      const [d] = await add(flowJob(flow))
      expect(await claimIds()).toEqual([d])
    })

    test('with onNew "gather", one turn reads all waiting messages, even after a retry', async () => {
      const { store, clock } = stage()
      const flow = { onNew: 'gather', delay: '10s' }
      const [a, b, c] = await add(flowJob(flow), flowJob(flow), flowJob(flow))
      expect(await claimIds()).toEqual([])
      clock.advance(10_000)
      const [turn, ...others] = await claim()
      expect([turn?.id, others]).toEqual([c, []])
      const read = async () => {
        const { jobs, count } = await store.gatheredJobs(ensure(c), 9)
        return [jobs.map(({ id }) => id), count]
      }
      expect(await read()).toEqual([[a, b], 2])
      await store.report(ensure(turn), { outcome: { kind: 'retry', afterMs: 1, error: 'busy' } })
      const [d] = await add(flowJob(flow))
      clock.advance(20_000)
      const [again] = await claim()
      expect(again?.id).toBe(c)
      expect(await read()).toEqual([[a, b], 2])
      await reportDone(ensure(again))
      expect(await claimIds()).toEqual([d])
      expect(await store.gatheredJobs(ensure(d), 9)).toEqual({ jobs: [], count: 0 })
    })

    test('with a delay, each newer request begins the quiet period again, but not beyond maxDelay', async () => {
      const { store, clock } = stage()
      const flow = { delay: '10s', maxDelay: '25s', onNew: 'replace' }
      await add(flowJob(flow))
      for (let seconds = 0; seconds < 24; seconds += 8) {
        expect(await claimIds()).toEqual([])
        clock.advance(8_000)
        await add(flowJob(flow))
      }
      expect(await claimIds()).toEqual([])
      expect(await store.nextDueInMs()).toBe(996)
      const [last] = await add(flowJob(flow))
      clock.advance(1_000)
      expect(await claimIds()).toEqual([last])
    })

    test('total and shared limits are never exceeded, and a blocked key holds up no other key', async () => {
      const jobs = ['a', 'b', 'c', 'd'].map((key) => flowJob({ key, total: 2, limits: ['llm'] }))
      const ids = await add(...jobs, flowJob({ key: 'e', limits: ['llm'] }, { ring: 'other' }))
      const limits: SharedLimits = { llm: { total: 3 } }
      const running = await claim(9, limits)
      expect(running.map(({ id }) => id)).toEqual([ids[0], ids[1], ids[4]])
      expect(await claimIds(9, limits)).toEqual([])
      await reportDone(ensure(running[0]))
      expect(await claimIds(9, limits)).toEqual([ids[2]])
      await reportDone(ensure(running[2]))
      expect(await claimIds(9, limits)).toEqual([])
    })

    test(
      'a key that has room starts within a few claims, however many other keys are blocked',
      { timeout: 60_000 },
      async () => {
        const { store, clock } = stage()
        const lanes = Array.from({ length: 1_100 }, (_, index) => `lane-${index}`)
        const append = (jobs: NewJob[]) => store.append(newDelivery({ at: clock(), jobs }))
        await append(lanes.map((lane) => newJob({ lane })))
        expect(await claim(1_100)).toHaveLength(1_100)
        // the blocker of this key comes last in the order of the texts
        const busy = { key: 'busy', perKey: 2 }
        const [, , third] = await add(flowJob(busy), flowJob(busy), flowJob(busy))
        const [first] = await claim()
        await append(lanes.map((lane, index) => flowJob({ key: `k${index}` }, { lane })))
        for (let round = 0; round < 3; round += 1) expect(await claimIds(1_000)).toEqual([])
        await reportDone(ensure(first))
        const started: string[] = []
        for (let round = 0; round < 3; round += 1) started.push(...(await claimIds()))
        expect(started).toEqual([third])
      },
    )

    test('a limit counts the turns of a key over all mappings that use the limit', async () => {
      const limits: SharedLimits = { customer: { perKey: 2 } }
      const flow = { key: 'c1', perKey: 9, limits: ['customer'] }
      const [a, b, c, other] = await add(
        flowJob(flow),
        flowJob(flow, { ring: 'two' }),
        flowJob(flow, { ring: 'three' }),
        flowJob({ ...flow, key: 'c2' }),
      )
      const running = await claim(9, limits)
      expect(running.map(({ id }) => id).toSorted()).toEqual([a, b, other].toSorted())
      expect(await claimIds(9, limits)).toEqual([])
      await reportDone(ensure(running[0]))
      expect(await claimIds(9, limits)).toEqual([c])
    })

    test('a rate limit spreads starts over its period, counts retries, and allows starts again in a new period', async () => {
      const { store, clock } = stage()
      const limits: SharedLimits = { llm: { starts: { limit: 3, period: 15_000, burst: 2 } } }
      const ids = await add(...['a', 'b', 'c', 'd'].map((key) => flowJob({ key, limits: ['llm'] })))
      const [first, second] = await claim(9, limits)
      expect([first?.id, second?.id]).toEqual([ids[0], ids[1]])
      await store.report(ensure(first), { outcome: { kind: 'retry', afterMs: 0, error: 'busy' } })
      expect(await claimIds(9, limits)).toEqual([])
      clock.advance(9_999)
      expect(await claimIds(9, limits)).toEqual([])
      clock.advance(1)
      expect(await claimIds(9, limits)).toEqual([ids[2]])
      clock.advance(4_999)
      expect(await claimIds(9, limits)).toEqual([])
      clock.advance(1)
      expect(await claimIds(1, limits)).toEqual([ids[3]])
      clock.advance(10_000)
      expect(await claimIds(1, limits)).toEqual([ids[0]])
    })

    test('a rate limit skips the turns beyond its limit, and gives the reason', async () => {
      const { store, clock } = stage()
      const buildRatedJob = (key: string) => flowJob({ key, rateLimit: { limit: 2, period: '1h' } })
      const ids = await add(buildRatedJob('a'), buildRatedJob('b'), buildRatedJob('c'))
      expect(await claimIds()).toEqual(ids.slice(0, 2))
      expect(await store.job(ensure(ids[2]))).toMatchObject({
        state: 'skipped',
        lastError: expect.stringContaining('rateLimit'),
      })
      clock.advance(3_600_000)
      const [next] = await add(buildRatedJob('d'))
      expect(await claimIds()).toContain(next)
    })

    test('a turn with a head start runs before older turns of other keys; otherwise keys and mappings take turns', async () => {
      const { clock } = stage()
      const [a1, a2] = await add(flowJob({ key: 'a' }), flowJob({ key: 'a' }))
      clock.advance(1)
      const [b1] = await add(flowJob({ key: 'b' }))
      clock.advance(1)
      const [quiet] = await add(flowJob({ key: 'q' }, { ring: 'quiet' }))
      clock.advance(1)
      const [urgent] = await add(flowJob({ key: 'u', priority: 'high' }, { ring: 'urgent' }))
      const order: string[] = []
      for (let count = 0; count < 5; count += 1) {
        clock.advance(1)
        const [job] = await claim(1)
        order.push(ensure(job).id)
        await reportDone(ensure(job))
      }
      expect(order).toEqual([urgent, a1, quiet, b1, a2])
    })

    test('jobs with and without a flow take turns', async () => {
      const { clock } = stage()
      const plain = await add(newJob(), newJob(), newJob())
      clock.advance(1)
      const [quiet] = await add(flowJob({}))
      const order: string[] = []
      for (let count = 0; count < 4; count += 1) {
        clock.advance(1)
        const [job] = await claim(1)
        order.push(ensure(job).id)
        await reportDone(ensure(job))
      }
      expect(order).toEqual([plain[0], quiet, plain[1], plain[2]])
    })

    test('a turn of a flow runs alone in its session, and jobs without a flow wait for its end', async () => {
      const [a, b, plain] = await add(
        flowJob({ key: 'a' }, { lane: 's' }),
        flowJob({ key: 'b' }, { lane: 's' }),
        newJob({ lane: 's' }),
      )
      const order: string[] = []
      for (let count = 0; count < 3; count += 1) {
        const jobs = await claim()
        expect(jobs.length).toBe(1)
        order.push(ensure(jobs[0]).id)
        await reportDone(ensure(jobs[0]))
      }
      expect(order.toSorted()).toEqual([a, b, plain].toSorted())
    })

    test('a turn that did not start in time expires, and the next one of its key runs', async () => {
      const { store, clock } = stage()
      const [a, b] = await add(flowJob({}), flowJob({ expires: '1m' }))
      const [first] = await claim()
      clock.advance(20_000)
      await store.extend([ensure(first)], leaseMs)
      const [c] = await add(flowJob({}))
      clock.advance(29_000)
      await store.extend([ensure(first)], 60_000)
      clock.advance(11_000)
      expect(await claimIds()).toEqual([])
      expect(await readStates([a, b, c])).toEqual(['running', 'expired', 'queued'])
      await reportDone(ensure(first))
      expect(await claimIds()).toEqual([c])
    })

    test('the queued turns of a key are counted up to a limit, including those that no claim has seen', async () => {
      const { store } = stage()
      const count = (key: string, max = 9) => store.countQueuedOfKey({ ring: 'pr', key, max })
      expect(await count('k')).toBe(0)
      await add(flowJob({}), flowJob({}), flowJob({ key: 'other' }), flowJob({}, { ring: 'two' }))
      expect([await count('k'), await count('other'), await count('k', 1)]).toEqual([2, 1, 1])
      await claim()
      expect([await count('k'), await count('other')]).toEqual([1, 0])
      await add(flowJob({}))
      expect(await count('k')).toBe(2)
    })

    test('queued turns of a key are counted even if a thousand new turns of other keys were stored before them', async () => {
      const { store, clock } = stage()
      const jobs = [...Array.from({ length: 1_000 }, () => flowJob({ key: 'other' })), flowJob({})]
      await Promise.all(jobs.map((job) => store.append(newDelivery({ at: clock(), jobs: [job] }))))
      const count = (key: string) => store.countQueuedOfKey({ ring: 'pr', key, max: 2_000 })
      expect([await count('other'), await count('k')]).toEqual([1_000, 1])
    })

    test('a key with more than maxQueued waiting turns drops the oldest ones', async () => {
      const flow = { maxQueued: 2 }
      const ids = await add(flowJob(flow), flowJob(flow), flowJob(flow))
      const [first] = await claim()
      expect(first?.id).toBe(ids[1])
      const more = await add(flowJob(flow), flowJob(flow))
      expect(await claimIds(0)).toEqual([])
      expect(await readStates([...ids, ...more])).toEqual(['dropped', 'running', 'dropped', 'queued', 'queued'])
    })

    test('a cancelling request ends the earlier turns of its key, and no later ones', async () => {
      const { store, clock } = stage()
      const [a, b, other] = await add(flowJob({}), flowJob({}), flowJob({ key: 'other' }))
      const [running] = await claim(1)
      expect(running?.id).toBe(a)
      const cancel = { ring: 'pr', key: 'k', reason: 'It was closed.' }
      await store.append(newDelivery({ at: clock(), state: 'skipped', jobs: [], cancel }))
      const [later] = await add(flowJob({}))
      expect(await claimIds()).toEqual([other])
      expect(await readStates([a, b, later])).toEqual(['running', 'cancelled', 'queued'])
      expect((await store.jobsToEnd()).map(({ id }) => id)).toEqual([a])
      await store.report(ensure(running), { outcome: { kind: 'release' } })
      expect(await store.job(ensure(a))).toMatchObject({ state: 'cancelled', lastError: 'It was closed.' })
      expect(await claimIds()).toEqual([later])
    })

    test('a hold on a mapping holds back its turns, and no others', async () => {
      const { store } = stage()
      const [a, b] = await add(flowJob({}), flowJob({}, { ring: 'other' }))
      await store.hold({ label: 'mapping:pr', kind: 'pause', reason: 'x', author: undefined, forMs: undefined })
      expect(await claimIds()).toEqual([b])
      await store.unhold({ label: 'mapping:pr', kind: 'pause' })
      expect(await claimIds()).toEqual([a])
    })

    test('a dead turn that is queued again waits for the running turn of its key', async () => {
      const { store } = stage()
      const [a, b] = await add(flowJob({}), flowJob({}))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'dead', error: 'no' } })
      const [second] = await claim()
      expect(second?.id).toBe(b)
      expect(await store.requeue(ensure(a))).toBe(true)
      expect(await claimIds()).toEqual([])
      await reportDone(ensure(second))
      expect(await claimIds()).toEqual([a])
    })

    test('a mapping with many keys and sessions counts as one mapping when it takes turns with a quiet one', async () => {
      const { clock } = stage()
      const inSession = (key: string, ring: string) =>
        flowJob({ key }, { ring, labels: [`session:main/${key}`, `mapping:${ring}`, 'agent:main'] })
      await add(...Array.from({ length: 20 }, (_, index) => inSession(`key ${index}`, 'busy')))
      expect((await claimIds(1)).length).toBe(1)
      clock.advance(1)
      const [quiet] = await add(inSession('one', 'quiet'))
      expect([...(await claimIds(1)), ...(await claimIds(1))]).toContain(quiet)
    })

    test('a hold on a session holds back its turns, and no others of the mapping', async () => {
      const { store } = stage()
      const inSession = (key: string) =>
        flowJob({ key }, { labels: [`session:main/${key}`, 'mapping:pr', 'agent:main'] })
      const [a, b, c] = await add(inSession('a'), inSession('b'), inSession('a'))
      const label = 'session:main/a'
      await store.hold({ label, kind: 'turns', reason: 'x', author: undefined, forMs: undefined })
      const [other] = await claim()
      expect([other?.id, await claimIds()]).toEqual([b, []])
      await store.unhold({ label, kind: 'turns' })
      const [first] = await claim()
      await reportDone(ensure(first))
      expect([first?.id, await claimIds()]).toEqual([a, [c]])
    })

    test('with onNew "gather", a turn that did nothing and is queued again hands its messages to a newer turn', async () => {
      const { store } = stage()
      const flow = { onNew: 'gather' }
      const ids = await add(flowJob(flow), flowJob(flow))
      const [turn] = await claim()
      await store.report(ensure(turn), { outcome: { kind: 'release' } })
      const [late] = await add(flowJob(flow))
      const [next] = await claim()
      expect(next?.id).toBe(late)
      expect((await store.gatheredJobs(ensure(late), 9)).jobs.map(({ id }) => id)).toEqual(ids)
    })

    test('with onNew "gather", a turn that recorded a step is not merged into a newer one, even if its gateway stops before the turn ends', async () => {
      const { store } = stage()
      const flow = { onNew: 'gather' }
      const [a] = await add(flowJob(flow))
      const [turn] = await claim()
      await store.report(ensure(turn), { steps: [{ name: 'run', state: 'done', at: 1 }], outcome: { kind: 'release' } })
      const [b] = await add(flowJob(flow))
      const [again] = await claim()
      expect(again?.id).toBe(a)
      await reportDone(ensure(again))
      expect(await claimIds()).toEqual([b])
    })

    test('a turn that was queued again counts once under its rate limit', async () => {
      const { store } = stage()
      const [a] = await add(flowJob({ rateLimit: { limit: 1, period: '1h' } }))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'release' } })
      expect(await claimIds()).toEqual([a])
    })

    test('a turn that did nothing expires, and one with a recorded step does not', async () => {
      const { store, clock } = stage()
      const ids = await add(flowJob({ key: 'a', expires: '1m' }), flowJob({ key: 'b', expires: '1m' }))
      const [first, second] = await claim()
      const steps = [{ name: 'run', state: 'done', at: 1 }] as const
      await store.report(ensure(first), { steps, outcome: { kind: 'release' } })
      await store.report(ensure(second), { outcome: { kind: 'release' } })
      clock.advance(60_000)
      expect(await claimIds()).toEqual([ids[0]])
      expect(await readStates(ids)).toEqual(['running', 'expired'])
    })

    test('with a delay, a request that arrives after the turn of its key has started begins a new quiet period', async () => {
      const { clock } = stage()
      const flow = { delay: '10s' }
      const [a] = await add(flowJob(flow))
      clock.advance(10_000)
      const [first] = await claim(1)
      expect(first?.id).toBe(a)
      const [b] = await add(flowJob(flow))
      await reportDone(ensure(first))
      clock.advance(9_998)
      expect(await claimIds()).toEqual([])
      clock.advance(1)
      expect(await claimIds()).toEqual([b])
    })

    test('with a delay, a request that arrived after the quiet period does not begin it again, even if no claim has run since', async () => {
      const { clock } = stage()
      const flow = { delay: '10s' }
      const [a] = await add(flowJob(flow))
      expect(await claimIds()).toEqual([])
      clock.advance(10_000)
      const [b] = await add(flowJob(flow))
      expect(await claimIds()).toEqual([a])
      expect(await stage().store.job(b ?? '')).toMatchObject({ state: 'queued' })
    })

    test('a cancelling request ends the turns that arrived before it, even if a newer request would have replaced them', async () => {
      const { store, clock } = stage()
      const flow = { onNew: 'replace' }
      const [a] = await add(flowJob(flow, { ring: 'other' }), flowJob(flow))
      await store.claim({ limit: 0, leaseMs })
      const cancel = { ring: 'other', key: 'k', reason: 'It was closed.' }
      await store.append(newDelivery({ at: clock(), state: 'skipped', jobs: [], cancel }))
      const [b] = await add(flowJob(flow, { ring: 'other' }))
      expect((await claimIds()).includes(ensure(b))).toBe(true)
      expect(await readStates([a])).toEqual(['cancelled'])
    })

    test('with a delay, the first request after a cancelled retry of the same key begins a new quiet period', async () => {
      const { store, clock } = stage()
      await add(flowJob({}))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'retry', afterMs: 20_000, error: 'busy' } })
      const cancel = { ring: 'pr', key: 'k', reason: 'It was closed.' }
      await store.append(newDelivery({ at: clock(), state: 'skipped', jobs: [], cancel }))
      const [next] = await add(flowJob({ delay: '10s' }))
      expect(await claimIds()).toEqual([])
      expect(await readStates([first?.id, next])).toEqual(['cancelled', 'queued'])
      clock.advance(10_000)
      expect(await claimIds()).toEqual([next])
    })

    test('a turn that is cancelled before it would expire ends as cancelled, even if no claim has seen the new jobs of another key', async () => {
      const { store, clock } = stage()
      const [a] = await add(flowJob({ expires: '20s' }))
      await store.claim({ limit: 0, leaseMs })
      await add(flowJob({ key: 'other' }))
      const cancel = { ring: 'pr', key: 'k', reason: 'It was closed.' }
      await store.append(newDelivery({ at: clock(), state: 'skipped', jobs: [], cancel }))
      clock.advance(20_000)
      expect(await claimIds()).toHaveLength(1)
      expect(await readStates([a])).toEqual(['cancelled'])
    })

    test('with a delay, a new request does not delay the retry of an older one', async () => {
      const { store, clock } = stage()
      const flow = { delay: '10s', maxDelay: '1h' }
      const [a] = await add(flowJob(flow))
      clock.advance(10_000)
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'retry', afterMs: 1_000, error: 'busy' } })
      await add(flowJob(flow))
      clock.advance(1_000)
      expect(await claimIds()).toEqual([a])
    })

    test('a key that waits for a busy session is checked again when its next turn has another session', async () => {
      const { store } = stage()
      await add(newJob({ lane: 'busy' }))
      expect((await claimIds()).length).toBe(1)
      const [ended] = await add(flowJob({ key: 'a' }, { lane: 'busy' }))
      const [replaced] = await add(flowJob({ key: 'b', onNew: 'replace' }, { lane: 'busy' }))
      const [dead] = await add(flowJob({ key: 'c' }))
      const [started] = await claim()
      expect(started?.id).toBe(dead)
      await store.report(ensure(started), { outcome: { kind: 'dead', error: 'no' } })
      await add(flowJob({ key: 'c' }, { lane: 'busy' }))
      expect(await claimIds()).toEqual([])
      const [next, newest] = await add(flowJob({ key: 'a' }), flowJob({ key: 'b', onNew: 'replace' }))
      await store.endJob(ensure(ended), { state: 'cancelled', reason: 'no' })
      await store.requeue(ensure(dead))
      expect((await claimIds()).toSorted()).toEqual([next, newest, dead].toSorted())
      expect(await readStates([ended, replaced])).toEqual(['cancelled', 'superseded'])
    })

    test('a turn does not wait for an older one that was ended while it waited for a retry', async () => {
      const { store } = stage()
      const [a, b] = await add(flowJob({}), flowJob({}))
      const [first] = await claim()
      await store.report(ensure(first), { outcome: { kind: 'retry', afterMs: 60_000, error: 'busy' } })
      expect(await claimIds()).toEqual([])
      await store.endJob(ensure(a), { state: 'cancelled', reason: 'no' })
      expect(await claimIds()).toEqual([b])
    })

    test('keys of a paused mapping do not take the place of others when their session becomes free', async () => {
      const { store, clock } = stage()
      await add(newJob({ lane: 's' }))
      const [busy] = await claim()
      await add(...['a', 'b', 'c'].map((key) => flowJob({ key }, { lane: 's' })))
      const [other] = await add(flowJob({}, { lane: 's', ring: 'other' }))
      expect(await claimIds()).toEqual([])
      await store.hold({ label: 'mapping:pr', kind: 'pause', reason: 'x', author: undefined, forMs: undefined })
      await reportDone(ensure(busy))
      clock.advance(1)
      expect(await claimIds()).toEqual([other])
    })

    test('a claim names the queued jobs that it ends, each with the part of its flow that ended it', async () => {
      const { store, clock } = stage()
      const buildJob = (ring: string, flow: object) => flowJob(flow, { ring })
      const rate = { rateLimit: { limit: 1, period: '1h' } }
      const before = [
        buildJob('replace', { onNew: 'replace' }),
        buildJob('full', { maxQueued: 1 }),
        buildJob('skip', { onNew: 'skip' }),
        buildJob('rate', { key: 'a', ...rate }),
        buildJob('cancel', {}),
        buildJob('expires', { expires: '1m' }),
        buildJob('gather', { onNew: 'gather' }),
      ]
      const ids = await add(...before)
      await claim(0)
      ids.push(
        ...(await add(
          buildJob('replace', { onNew: 'replace' }),
          buildJob('replace', { onNew: 'replace' }),
          buildJob('full', { maxQueued: 1 }),
          buildJob('skip', { onNew: 'skip' }),
          buildJob('rate', { key: 'b', ...rate }),
          buildJob('gather', { onNew: 'gather' }),
        )),
      )
      const cancel = { ring: 'cancel', key: 'k', reason: 'It was closed.' }
      await store.append(newDelivery({ at: clock(), state: 'skipped', jobs: [], cancel }))
      clock.advance(61_000)
      const named: EndedRun[] = []
      await store.claim({ limit: 20, leaseMs, onEnded: (ended) => named.push(...ended) })
      const found = await readStates(ids)
      expect(found.filter((state) => state !== 'running').toSorted()).toEqual([
        'cancelled',
        'dropped',
        'expired',
        'skipped',
        'skipped',
        'superseded',
        'superseded',
        'superseded',
      ])
      expect(named.map(({ id, end }) => `${ids.indexOf(id)} ${end}`).toSorted()).toEqual([
        '0 replace',
        '1 maxQueued',
        '10 skip',
        '11 rateLimit',
        '4 cancelOn',
        '5 expires',
        '6 gather',
        '7 replace',
      ])
    })

    test('one claim takes all new jobs into account, even if one script cannot sort all of them', async () => {
      await add(...Array.from({ length: 230 }, (_, index) => flowJob({ key: `key ${index}`, onNew: 'replace' })))
      const [last] = await add(flowJob({ key: 'key 1', onNew: 'replace' }))
      expect((await claimIds(300)).length).toBe(230)
      expect(await readStates([last])).toEqual(['running'])
    })
  })
}
