// Reports that arrive together: see reports.ts. What each report writes is tested by the contract suite.
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ClaimedJob } from '../../../../src/model/job.ts'
import type { JobReport } from '../../../../src/store/records.ts'
import { openSchema, whyNoPostgres, withDatabase } from '../../../contract/postgres-stage.ts'
import { createClock, newDelivery, newEvent, newJob } from '../../../contract/stage.ts'

async function openClaimed(count: number) {
  const clock = createClock()
  const { stores, url } = await openSchema(1, clock)
  const [store] = stores
  if (store === undefined) throw new Error('no store was opened')
  onTestFinished(() => store.close())
  for (let each = 0; each < count; each += 1) await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
  const jobs = await store.claim({ limit: count, leaseMs: 30_000 })
  const query = (sql: string) => withDatabase(async (client) => (await client.query(sql)).rows, url)
  return { store, clock, url, jobs, query }
}

const buildReport = ({ id }: ClaimedJob): JobReport => ({
  steps: [{ name: 'run', state: 'done', at: 1, result: id }],
  events: [newEvent({ text: id })],
  messages: [{ role: 'assistant', text: id }],
  outcome: { kind: 'done' },
})

describe.skipIf(whyNoPostgres !== undefined)('reports that arrive together', () => {
  test('twenty reports are one transaction, and their events and messages keep the order of the reports', async () => {
    const { store, jobs, query } = await openClaimed(20)
    const written = await Promise.all(jobs.map((job) => store.report(job, buildReport(job))))
    expect(written).toEqual(jobs.map(() => true))
    expect(await query('SELECT DISTINCT xmin::text FROM job_parts')).toHaveLength(1)
    expect(
      await query(`SELECT 1 FROM jobs WHERE state = 'done' AND attempts = 1 AND locked_until IS NULL`),
    ).toHaveLength(20)
    const ids = jobs.map(({ id }) => id)
    expect((await query('SELECT text FROM events ORDER BY seq')).map(({ text }) => text)).toEqual(ids)
    expect((await query('SELECT run_id FROM messages ORDER BY seq')).map((row) => row.run_id)).toEqual(ids)
    const steps = await Promise.all(ids.map(async (id) => (await store.job(id))?.steps))
    expect(steps.map((each) => each?.[0]?.result)).toEqual(ids)
  })

  test('each report has its own answer: a lost lease, an ended job and a repetition change nothing of the others', async () => {
    const { store, jobs, query } = await openClaimed(4)
    const [usual, lost, ended, repeated] = jobs as [ClaimedJob, ClaimedJob, ClaimedJob, ClaimedJob]
    expect(await store.report(repeated, buildReport(repeated))).toBe(true)
    await store.endJob(ended.id, { state: 'cancelled', reason: 'no longer needed' })
    const answers = await Promise.all([
      store.report(usual, buildReport(usual)),
      store.report({ ...lost, fence: lost.fence + 1 }, buildReport(lost)),
      store.report(ended, buildReport(ended)),
      store.report(repeated, buildReport(repeated)),
    ])
    expect(answers).toEqual([true, false, false, true])
    expect((await query('SELECT state FROM jobs ORDER BY seq')).map(({ state }) => state)).toEqual([
      'done',
      'running',
      'cancelled',
      'done',
    ])
    expect((await query('SELECT text FROM events ORDER BY seq')).map(({ text }) => text)).toEqual([
      repeated.id,
      usual.id,
    ])
  })

  test('two reports of one job at the same moment record its step once', async () => {
    const { store, jobs } = await openClaimed(1)
    const [job] = jobs as [ClaimedJob]
    const { outcome: _, ...goesOn } = buildReport(job)
    const twice = [goesOn, { ...goesOn, leaseMs: 60_000 }]
    expect(await Promise.all(twice.map((what) => store.report(job, what)))).toEqual([true, true])
    expect((await store.job(job.id))?.steps).toHaveLength(1)
    expect(await store.events({ limit: 9 })).toHaveLength(1)
  })

  test('a job that another transaction has locked delays no other report', async () => {
    const { store, jobs, url } = await openClaimed(2)
    const [locked, free] = jobs as [ClaimedJob, ClaimedJob]
    await withDatabase(async (client) => {
      await client.query('BEGIN')
      await client.query('SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE', [locked.id])
      const first = store.report(locked, buildReport(locked))
      expect(await store.report(free, buildReport(free))).toBe(true)
      await client.query('COMMIT')
      expect(await first).toBe(true)
    }, url)
    expect((await store.job(locked.id))?.state).toBe('done')
  })
})
