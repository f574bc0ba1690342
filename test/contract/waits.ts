// Why jobs wait: the sentence for each reason, the same on each engine.
import { describe, expect, test } from 'vitest'
import { readWaits } from '../../src/gateway/deliveries/waits.ts'
import { ConfigSchema } from '../../src/gateway/config/keys.ts'
import type { ClaimedJob } from '../../src/model/job.ts'
import type { Hold, NewJob } from '../../src/store/records.ts'
import { flowJob } from './flow.ts'
import type { Stage } from './store.ts'
import { newDelivery, newJob } from './stage.ts'

const config = ConfigSchema.parse({
  limits: {
    openai: { total: 2, perKey: 1 },
    slow: { starts: { limit: 6, period: '1h', burst: 2 } },
  },
  agents: { defaults: { maxConcurrent: 3 } },
})
const leaseMs = 30_000
/** The time of the machine that shows the sentence. Its clock may differ from the store's. */
const now = Date.parse('2026-05-04T13:59:59.996Z')
const pause = { kind: 'pause', author: 'ada@host', reason: '', forMs: undefined } as const

export function describeWaits(stage: () => Stage): void {
  describe('the reason why a job waits', () => {
    const appendJobs = async (...jobs: NewJob[]) => {
      const { store, clock } = stage()
      await store.join({ id: 'one', version: '1', generation: 'g', address: '127.0.0.1' })
      for (const job of jobs) {
        await store.append(newDelivery({ at: clock(), jobs: [job] }))
        clock.advance(1)
      }
      return jobs.map(({ id }) => id)
    }
    const claim = (limit = 9) => stage().store.claim({ limit, leaseMs, limits: config.limits })
    const read = async (id: string | undefined, isOutsider = false) => {
      const { store } = stage()
      const job = await store.job(id ?? '')
      return job && (await readWaits([job], { store, config, now, isOutsider })).get(job.id)
    }
    const hold = (over: Partial<Hold> & Pick<Hold, 'label'>) => stage().store.hold({ ...pause, ...over })
    const claimFirst = async () => {
      const [job] = await claim()
      return job as ClaimedJob
    }

    test('a job that is in progress or has ended waits for nothing', async () => {
      const [a] = await appendJobs(newJob())
      const job = await claimFirst()
      expect(await read(a)).toBeUndefined()
      await stage().store.report(job, { outcome: { kind: 'done' } })
      expect(await read(a)).toBeUndefined()
    })

    test('a job that waits for a shared limit shows its place in the queue, and the age of the oldest waiting job', async () => {
      const { clock } = stage()
      const flow = { limits: ['openai'] }
      const ids = await appendJobs(...['a', 'b', 'c', 'd'].map((key) => flowJob({ key, ...flow })))
      const [urgent] = await appendJobs(flowJob({ key: 'u', priority: 'high', ...flow }, { ring: 'urgent' }))
      await claim(2)
      clock.advance(180_000)
      expect(await read(urgent)).toBeUndefined()
      expect(await read(ids[1])).toBe('waits for the limit openai (2 of 2), place 1; the oldest has waited for 3 min')
      expect(await read(ids[3])).toBe('waits for the limit openai (2 of 2), place 3; the oldest has waited for 3 min')
    })

    test('the first job that waits for a limit has place 1 and is the oldest: turns in progress and cancelled jobs are not in the queue', async () => {
      const { store, clock } = stage()
      const flow = { limits: ['openai'] }
      await appendJobs(flowJob({ key: 'a', ...flow }), flowJob({ key: 'b', ...flow }))
      await claim()
      clock.advance(10_000)
      const [cancelled, first, second] = await appendJobs(...['c', 'd', 'e'].map((key) => flowJob({ key, ...flow })))
      await claim()
      expect(await read(cancelled)).toBe('waits for the limit openai (2 of 2), place 1; the oldest has waited for 0 s')
      await store.endJob(cancelled ?? '', { state: 'cancelled', reason: 'no' })
      clock.advance(10_000)
      expect(await read(first)).toBe('waits for the limit openai (2 of 2), place 1; the oldest has waited for 10 s')
      expect(await read(second)).toBe('waits for the limit openai (2 of 2), place 2; the oldest has waited for 10 s')
    })

    test('a job can wait for its key’s share of a limit, for its mapping, or for the start rate of a limit', async () => {
      const [, mine] = await appendJobs(
        flowJob({ key: 'c1', limits: ['openai'] }),
        flowJob({ key: 'c1', limits: ['openai'] }, { ring: 'two' }),
      )
      const [, second] = await appendJobs(
        flowJob({ key: 'm1', total: 1 }, { ring: 'm' }),
        flowJob({ key: 'm2', total: 1 }, { ring: 'm' }),
      )
      const slow = ['s1', 's2', 's3'].map((key) => flowJob({ key, limits: ['slow'] }, { ring: 's' }))
      const ids = await appendJobs(...slow)
      await claim()
      expect(await read(mine)).toBe('waits for the limit openai (1 of 1 with its key)')
      expect(await read(second)).toBe('waits for its mapping (1 of 1), place 1; the oldest has waited for 0 s')
      expect(await read(ids[2])).toBe(
        'waits for the limit slow (2 starts in 20 min), place 1; the oldest has waited for 0 s',
      )
    })

    test('a job can wait for its quiet period, and a failed job waits for its retry', async () => {
      const { store } = stage()
      const [a, retried] = await appendJobs(flowJob({ key: 'a', delay: '190s' }), flowJob({ key: 'b' }))
      // no claim has given the job its key yet
      expect(await read(a)).toBe('waits until 14:03:10Z for a quiet period')
      const job = await claimFirst()
      expect(job.id).toBe(retried)
      await store.report(job, { outcome: { kind: 'retry', afterMs: 11 * 3_600_000, error: 'busy' } })
      expect(await read(a)).toBe('waits until 14:03:10Z for a quiet period')
      expect(await read(retried)).toBe(
        'waits until 2026-05-05 01:00:00Z for its next attempt, after 1 failed attempt since 14:00:00Z',
      )
    })

    test('a job can wait for earlier runs of its key, or for the end of a run that it replaces', async () => {
      const [, b, c] = await appendJobs(flowJob({}), flowJob({}), flowJob({}))
      await claim()
      expect(await read(b)).toBe('waits for the run of its key that is in progress')
      expect(await read(c)).toBe('waits for 1 earlier run of its key')
      const flow = { key: 'r', onNew: 'replace' }
      const [old] = await appendJobs(flowJob(flow))
      await claim()
      const [next] = await appendJobs(flowJob(flow))
      await claim()
      expect(await read(next)).toBe(`waits for the end of run ${old}, which it replaces`)
    })

    test('a job can wait for its session, with or without a flow', async () => {
      const [a, b, c] = await appendJobs(newJob({ lane: 's' }), newJob({ lane: 's' }), newJob({ lane: 's' }))
      expect(await read(b)).toBe('waits for 1 earlier run of its session')
      await claim()
      const [d] = await appendJobs(flowJob({}, { lane: 's' }))
      await claim()
      expect(await read(b)).toBe(`waits for its session, in which run ${a} runs`)
      expect(await read(c)).toBe(`waits for its session, in which run ${a} runs`)
      expect(await read(d)).toBe(`waits for its session, in which run ${a} runs`)
    })

    test.each([
      [{ label: 'mapping:pr' }, 'waits until somebody resumes it, because ada@host paused its mapping at 14:00:00Z'],
      [
        { label: 'all', reason: 'The disk is full.', forMs: 7_200_000 },
        'waits until 16:00:00Z, because ada@host paused everything at 14:00:00Z: The disk is full',
      ],
      [
        { label: 'limit:openai', kind: 'provider', author: undefined, reason: 'openai answered 429', forMs: 60_000 },
        'waits until 14:01:00Z for the limit openai: openai answered 429',
      ],
    ] as const)(
      'the wait of a job under the hold %j says who or what holds it back, why and until when',
      async (given, sentence) => {
        await hold(given)
        const [a] = await appendJobs(flowJob({ limits: ['openai'] }))
        expect(await claim()).toEqual([])
        expect(await read(a)).toBe(sentence)
      },
    )

    test('a job that waits because its session had too many turns names the session, the limit and the command that lets it go on, and an outsider reads only until when it waits', async () => {
      const reason = 'it had 20 turns within an hour'
      await hold({ label: 'session:main/hook:a', kind: 'turns', author: undefined, reason, forMs: 60_000 })
      const [a] = await appendJobs(newJob({ labels: ['session:main/hook:a'] }))
      await claim()
      expect(await read(a)).toBe(
        `waits until 14:01:00Z for its session main/hook:a: it had 20 turns within an hour. "hookloom resume ${a}" lets it go on now`,
      )
      expect(await read(a, true)).toBe(
        'waits until 14:01:00Z, because its session had as many turns within an hour as it may have',
      )
    })

    test('a job without a flow waits for a hold of its own label, and for no other hold', async () => {
      await hold({ label: 'agent:main' })
      const [a, b] = await appendJobs(newJob({ labels: ['agent:main'] }), newJob({ labels: ['agent:other'] }))
      await claim()
      expect(await read(a)).toBe('waits until somebody resumes it, because ada@host paused its agent at 14:00:00Z')
      expect(await read(b)).toBeUndefined()
    })

    test('a job waits for a spent budget until its period ends', async () => {
      const { store, clock } = stage()
      const [, a] = await appendJobs(newJob(), newJob())
      const [spender, job] = await claim()
      const turn = { nanos: 0, tokens: 0, turns: 1 }
      const account = { name: 'daily', startsAt: clock() }
      const asked = { ...account, endsAt: clock() + 3_600_000, limits: { turns: 1 }, most: turn }
      expect(await store.reserve(spender as ClaimedJob, [asked])).toEqual({ kind: 'reserved' })
      await store.report(spender as ClaimedJob, { outcome: { kind: 'done' }, settled: [{ ...account, used: turn }] })
      expect(await store.reserve(job as ClaimedJob, [asked])).toMatchObject({ kind: 'waits' })
      expect(await read(a)).toBe(
        'waits until 15:00:00Z at the latest for the budget daily, which is used up or reserved',
      )
    })

    test('waiting keys are counted as quiet, blocked or ready, and a paused job as paused', async () => {
      const { store } = stage()
      expect(await store.waitCounts()).toEqual({ quiet: 0, blocked: 0, ready: 0, paused: 0, budget: 0 })
      await hold({ label: 'agent:other' })
      await appendJobs(
        newJob({ labels: ['agent:other'] }),
        flowJob({ key: 'quiet', delay: '1h' }, { ring: 'q' }),
        flowJob({}, { ring: 'x' }),
        flowJob({}, { ring: 'x' }),
        flowJob({ key: 'a', limits: ['openai'] }),
        flowJob({ key: 'b', limits: ['openai'] }),
        flowJob({ key: 'c', limits: ['openai'] }),
      )
      await claim()
      await claim()
      expect(await store.waitCounts()).toEqual({ quiet: 1, blocked: 1, ready: 1, paused: 1, budget: 0 })
    })

    test('a job can wait for a free slot, for a running gateway to start it, or because no gateway is running', async () => {
      const { store } = stage()
      await appendJobs(newJob(), newJob(), newJob())
      const [next] = await appendJobs(newJob())
      expect(await read(next)).toBe('waits for a gateway to start it')
      await claim(3)
      const [late] = await appendJobs(flowJob({}))
      expect(await read(next)).toBe('waits for a free slot of the gateway (3 runs, agents.defaults.maxConcurrent is 3)')
      await claim(0)
      expect(await read(late)).toMatch(/^waits for a free slot of the gateway/)
      await store.leave('one')
      expect(await read(next)).toBe('waits for a gateway: none is running on this store')
    })
  })
}
