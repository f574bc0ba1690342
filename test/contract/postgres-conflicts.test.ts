// Two gateways on one Postgres, which write the same rows at the same moment.
import type { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ClaimedJob } from '../../src/model/job.ts'
import { noSpending } from '../../src/model/spending.ts'
import type { JobReport, NewJob } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'
import { flowJob } from './flow.ts'
import { openSchema, whyNoPostgres, withDatabase } from './postgres-stage.ts'
import { createClock, newDelivery } from './stage.ts'

const leaseMs = 30_000

async function openPair() {
  const clock = createClock()
  const { stores, url } = await openSchema(2, clock)
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
  const [one, other] = stores as [Store, Store]
  const appendJobs = async (...jobs: NewJob[]) => {
    for (const job of jobs) await one.append(newDelivery({ at: clock(), jobs: [job] }))
    clock.advance(1)
    return jobs.map(({ id }) => id)
  }
  const claim = (store: Store, limit = 999) => store.claim({ limit, leaseMs })
  return { clock, one, other, add: appendJobs, claim, url }
}

/** A running job, and a newer job that will replace it. No claim has seen the newer job yet. */
async function openReplaced() {
  const pair = await openPair()
  await pair.add(flowJob({ onNew: 'replace' }))
  const [running] = await pair.claim(pair.one)
  const [newer = ''] = await pair.add(flowJob({ onNew: 'replace' }))
  if (running === undefined) throw new Error('nothing runs')
  return { ...pair, running, newer }
}

type Waiting = {
  readonly running: ClaimedJob
  readonly waiting: ClaimedJob
  readonly account: { readonly name: string; readonly startsAt: number }
}

/** Resolves when another connection waits for a lock of this connection. */
async function waitForOthers(client: Client): Promise<void> {
  // uses pg_locks, because a transaction reads pg_stat_activity only once
  const sql = 'SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))'
  await vi.waitUntil(async () => (await client.query(sql)).rowCount !== 0, { timeout: 60_000, interval: 5 })
}

const outcomes: readonly NonNullable<JobReport['outcome']>[] = [
  { kind: 'retry', afterMs: 5_000, error: 'busy' },
  { kind: 'release' },
  { kind: 'done' },
  { kind: 'dead', error: 'broken' },
]

describe.skipIf(whyNoPostgres !== undefined)(
  `conflicts between gateways (${whyNoPostgres ?? 'Postgres available'})`,
  () => {
    test(
      'turns that are replaced during a report of their owner end once, and the newer ones run',
      { timeout: 120_000 },
      async () => {
        const { clock, one, other, add, claim } = await openPair()
        const keys = Array.from({ length: 12 }, (_, index) => `k${index}`)
        const replaced = new Map<string, string | undefined>()
        for (let round = 0; round < 10; round += 1) {
          const olds = await add(...keys.map((key) => flowJob({ key, onNew: 'replace' })))
          const running = await claim(one)
          expect(running.map(({ id }) => id).toSorted()).toEqual(olds.toSorted())
          const newer = await add(...keys.map((key) => flowJob({ key, onNew: 'replace' })))
          const reports = running.map(async (job, index) => {
            const outcome = outcomes[(index + round) % outcomes.length] ?? { kind: 'done' }
            const isWritten = await one.report(job, { outcome })
            return { job, outcome, isWritten }
          })
          const [claimed, ...reported] = await Promise.all([claim(other), ...reports])
          const started: ClaimedJob[] = [...claimed]
          for (const { job, outcome, isWritten } of reported) {
            const { state, endedBy } = (await one.job(job.id)) ?? {}
            // a report that came before the replacement counts, unless it queued the job again
            const isEnd = isWritten && (outcome.kind === 'done' || outcome.kind === 'dead')
            expect([outcome.kind, isWritten, state]).toEqual([
              outcome.kind,
              isWritten,
              isEnd ? outcome.kind : 'superseded',
            ])
            replaced.set(job.id, endedBy)
          }
          started.push(...(await claim(other)))
          expect(started.map(({ id }) => id).toSorted()).toEqual(newer.toSorted())
          expect(await one.jobsToEnd()).toEqual([])
          for (const job of started) expect(await other.report(job, { outcome: { kind: 'done' } })).toBe(true)
          clock.advance(60_000)
        }
        expect(await claim(one)).toEqual([])
        // in the later rounds, no end was recorded again
        for (const [id, endedBy] of replaced) expect((await one.job(id))?.endedBy).toBe(endedBy)
        expect((await one.counts()).jobs).toMatchObject({ queued: 0, running: 0 })
      },
    )

    test('a claim that waits for a report has no lock on the key that the report needs', async () => {
      const { other, claim, newer, running, url } = await openReplaced()
      await withDatabase(async (client) => {
        await client.query('BEGIN')
        await client.query('SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE', [running.id])
        const claiming = claim(other)
        await waitForOthers(client)
        await client.query('SELECT 1 FROM flow_keys FOR UPDATE NOWAIT')
        await client.query('ROLLBACK')
        expect(await claiming).toEqual([])
      }, url)
      expect(await other.jobsToEnd()).toMatchObject([{ id: running.id }])
      await other.report(running, { outcome: { kind: 'release' } })
      expect((await claim(other)).map(({ id }) => id)).toEqual([newer])
    })

    test('while a claim waits for a running job that it cancels, it has no lock on a key, even if it also sorts new jobs of other keys', async () => {
      const { clock, one, other, add, claim, url } = await openPair()
      await add(flowJob({}), flowJob({ key: 'other' }))
      const [running, beside] = await claim(one)
      if (running === undefined || beside === undefined) throw new Error('nothing runs')
      await add(flowJob({ key: 'other', onNew: 'replace' }), flowJob({ key: 'new' }))
      const cancel = { ring: 'pr', key: 'k', reason: 'It was closed.' }
      await one.append(newDelivery({ at: clock(), state: 'skipped', jobs: [], cancel }))
      await withDatabase(async (client) => {
        await client.query('BEGIN')
        await client.query('SELECT 1 FROM jobs WHERE id = ANY ($1) FOR UPDATE', [[running.id, beside.id]])
        const claiming = claim(other)
        await waitForOthers(client)
        await client.query('SELECT 1 FROM flow_keys FOR UPDATE NOWAIT')
        await client.query('ROLLBACK')
        expect(await claiming).toHaveLength(1)
      }, url)
      expect((await other.jobsToEnd()).map(({ id }) => id).toSorted()).toEqual([running.id, beside.id].toSorted())
    })

    const changes: readonly (readonly [name: string, change: (store: Store, given: Waiting) => Promise<unknown>])[] = [
      ['ends a job', (store, { waiting }) => store.endJob(waiting.id, { state: 'cancelled', reason: 'x' })],
      ['drops a delivery', (store, { waiting }) => store.drop(waiting.deliveryId ?? '')],
      ['raises a budget', (store, { account }) => store.raiseBudget(account, { ...noSpending, turns: 1 })],
      ['wakes the jobs of budgets', (store) => store.wakeBudgets()],
      [
        'settles a budget',
        (store, { running, account }) =>
          store.report(running, { settled: [{ ...account, used: noSpending }], outcome: { kind: 'done' } }),
      ],
    ]
    test.each(changes)(
      'a call that %s waits for a running claim before it locks a job, so that neither fails',
      async (_, change) => {
        const { clock, one, add, claim, url } = await openPair()
        await add(flowJob({ key: 'a' }), flowJob({ key: 'b' }))
        const [running, waiting] = await claim(one)
        if (running === undefined || waiting === undefined) throw new Error('nothing runs')
        const account = { name: 'daily', startsAt: clock() - (clock() % 86_400_000) }
        const most = { ...noSpending, turns: 1 }
        const reservation = { ...account, endsAt: account.startsAt + 86_400_000, limits: { turns: 1 }, most }
        expect(await one.reserve(running, [reservation])).toEqual({ kind: 'reserved' })
        expect(await one.reserve(waiting, [reservation])).toMatchObject({ kind: 'waits' })
        await withDatabase(async (client) => {
          await client.query('BEGIN')
          await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('hookloom flow ' || current_schema(), 0))`)
          const changing = change(one, { running, waiting, account })
          await waitForOthers(client)
          await client.query('SELECT 1 FROM jobs FOR UPDATE NOWAIT')
          await client.query('COMMIT')
          await changing
        }, url)
        expect(
          (await claim(one)).length + (await one.counts()).jobs.cancelled + (await one.counts()).jobs.dropped,
        ).toBe(1)
      },
    )

    test.each(outcomes)(
      'a report that waits for the claim that replaces its job is stored only if it ends the job: %j',
      async (outcome) => {
        const { clock, one, claim, running, newer, url } = await openReplaced()
        const isWritten = await withDatabase(async (client) => {
          await client.query('BEGIN')
          const replace = `INSERT INTO endings (job_seq, at, state, ended_by, reason)
        SELECT seq, $2, 'superseded', $3, 'newer' FROM jobs WHERE id = $1`
          await client.query(replace, [running.id, clock(), newer])
          const reporting = one.report(running, { outcome })
          await waitForOthers(client)
          await client.query('COMMIT')
          return await reporting
        }, url)
        const isEnd = outcome.kind === 'done' || outcome.kind === 'dead'
        const state = isEnd ? outcome.kind : 'superseded'
        expect([isWritten, (await one.job(running.id))?.state]).toEqual([isEnd, state])
        expect((await claim(one)).map(({ id }) => id)).toEqual([newer])
        if (outcome.kind !== 'dead') return
        // an operator queues the dead job again: the job that replaced it does not end it now
        await one.endJob(newer, { state: 'cancelled', reason: 'x' })
        await one.report({ id: newer, fence: (await one.jobsToEnd())[0]?.fence ?? 0 }, { outcome: { kind: 'release' } })
        expect(await one.requeue(running.id)).toBe(true)
        expect((await claim(one)).map(({ id }) => id)).toEqual([running.id])
        expect(await one.jobsToEnd()).toEqual([])
      },
    )

    test('a pause that one gateway sets applies to the other gateway from its next claim, and its end does too', async () => {
      const { one, other, add, claim } = await openPair()
      const [, , plain] = await add(
        flowJob({ key: 'a' }),
        flowJob({ key: 'b' }),
        flowJob({ key: 'c' }, { ring: 'other' }),
      )
      const pause = { label: 'mapping:pr', kind: 'pause', reason: 'outage', author: 'ops', forMs: undefined } as const
      await one.hold(pause)
      expect((await claim(other)).map(({ id }) => id)).toEqual([plain])
      expect(await claim(one)).toEqual([])
      expect(await other.unhold(pause)).toBe(true)
      expect(await claim(one)).toHaveLength(2)
    })
  },
)
