// Frequent statements must not become slower as the store grows. The tests read SQLite's query plans.
import { expect, test } from 'vitest'
import { runBatch } from '../../../../src/store/sqlite/batch.ts'
import { type Database, openDatabase, type SqlValue } from '../../../../src/store/sqlite/driver.ts'
import { migrate } from '../../../../src/store/sqlite/migrations.ts'
import type { Operation } from '../../../../src/store/sqlite/operations.ts'
import { createReads, type Reads } from '../../../../src/store/sqlite/reads.ts'
import { toAppend } from '../../../../src/store/sqlite/values.ts'
import { trackWaitingBytes } from '../../../../src/store/sqlite/waiting-bytes.ts'
import { flowJob } from '../../../contract/flow.ts'
import { newDelivery } from '../../../contract/stage.ts'

const main = { agentId: 'main', sessionKey: 'main' }
const report = {
  events: [],
  messages: [],
  keeps: { messages: 9, bytes: 9 },
  consumed: [[1, 1]] as const,
  leavesLane: true,
  settled: [],
  leaseMs: 9,
  runnerState: '1',
  recipient: undefined,
  posts: '[]',
}
const task = {
  id: 'j',
  planned: JSON.stringify({ kind: 'heartbeat', ...main }),
  lane: 'main/main',
  standsFor: 't',
  labels: null,
  unlessWithinMs: 1,
}

const addAndClaim: readonly Operation[] = [
  { kind: 'addTask', at: 1, ...task },
  { kind: 'claim', at: 1, limit: 9, leaseMs: 9, limits: {}, only: undefined },
  { kind: 'plain', at: 1, name: 'wakeBudgets', args: [] },
]
const toReports = (fence: number): readonly Operation[] => [
  { kind: 'report', at: 1, id: 'j', fence, steps: [{ name: 'run', json: '{}' }], ...report, outcome: { kind: 'done' } },
]

const reads: readonly ((from: Reads) => Promise<unknown>)[] = [
  (from) => from.waitingEvents({ ...main, limit: 50 }),
  (from) => from.session(main),
  (from) => from.messages({ ...main, limit: 50 }),
  (from) => from.messages({ ...main, limit: 50, runId: 'j' }),
  (from) => from.job('j'),
  (from) => from.taskAgeMs('t'),
  (from) => from.cursor('c'),
  (from) => from.dueForMs(),
  (from) => from.openDeliveries({ limit: 1 }),
  (from) => from.openDeliveries({ limit: 1, waitsFor: 'a.ts' }),
  (from) => from.waitedFor(),
  (from) => from.jobsToEnd(),
]

/** A database that records the query plan of each statement. */
function createPlanned() {
  const db = openDatabase(':memory:', { readOnly: false, busyMs: 0 })
  migrate(db, 'memory')
  trackWaitingBytes(db)
  const plan: string[] = []
  const explained =
    <Result>(perform: (sql: string, ...values: readonly SqlValue[]) => Result) =>
    (sql: string, ...values: readonly SqlValue[]) => {
      plan.push(...db.all(`EXPLAIN QUERY PLAN ${sql}`, ...values).map(({ detail }) => String(detail)))
      return perform(sql, ...values)
    }
  const planned: Database = { ...db, run: explained(db.run), get: explained(db.get), all: explained(db.all) }
  return { plan, planned }
}

const tables = /^(SCAN|SEARCH) (deliveries|jobs|events|messages|sessions|cursors|[dej])\b/

test('the frequent statements of the worker, the heartbeats and the metrics scan no table', async () => {
  const { plan, planned } = createPlanned()
  // with a hold, a claim also looks for everything that is over
  planned.run(`INSERT INTO holds (label, kind, at, reason) VALUES ('agent:other', 'pause', 1, 'x')`)
  runBatch({ db: planned, operations: addAndClaim, isBulk: false })
  const operations = toReports(Number(planned.get(`SELECT fence FROM jobs WHERE id = 'j'`)?.['fence']))
  expect(runBatch({ db: planned, operations, isBulk: false }).outcomes).toEqual([{ ok: true, value: true }])
  const from = createReads({ use: (_empty, query) => query(planned), reset() {}, close() {} }, Date.now)
  for (const read of reads) await read(from)
  const steps = plan.filter((line) => tables.test(line))
  expect(steps.length).toBeGreaterThan(20)
  expect(steps.filter((line) => line.startsWith('SCAN'))).toEqual([])
})

test('a turn finds the events that it was shown by their numbers, however many others wait for its session', () => {
  const { plan, planned } = createPlanned()
  runBatch({ db: planned, operations: addAndClaim, isBulk: false })
  const operations = toReports(Number(planned.get(`SELECT fence FROM jobs WHERE id = 'j'`)?.['fence']))
  plan.length = 0
  runBatch({ db: planned, operations, isBulk: false })
  const steps = plan.filter((line) => /^(SCAN|SEARCH) (e|events)\b/.test(line))
  expect(steps.length).toBeGreaterThan(0)
  expect(steps.filter((line) => !line.includes('USING INTEGER PRIMARY KEY'))).toEqual([])
})

test('a claim finds the next run of a flow by its key, and not among the queued runs of all keys', () => {
  const { plan, planned } = createPlanned()
  const claims = { kind: 'claim', at: 2, limit: 1, leaseMs: 9, limits: {}, only: undefined } as const
  const deliveries = [1, 2].map((at) => toAppend(newDelivery({ at, jobs: [flowJob({})] }), at))
  const { outcomes } = runBatch({ db: planned, operations: [...deliveries, claims, claims], isBulk: false })
  expect(outcomes.map(({ ok }) => ok)).toEqual([true, true, true, true])
  const steps = plan.filter((line) => /^(SCAN|SEARCH) [bnq]\b/.test(line))
  expect(steps.length).toBeGreaterThan(3)
  expect(steps.filter((line) => !line.includes('USING INDEX jobs_flow (flow'))).toEqual([])
})

test('the database itself refuses a second running job of a lane', () => {
  const db = openDatabase(':memory:', { readOnly: false, busyMs: 0 })
  migrate(db, 'memory')
  const insert = `INSERT INTO jobs (id, lane, state, gate, created_at, run_at, steps, planned)
    VALUES (?, ?, 'running', 0, 1, 1, '[]', '{}')`
  db.run(insert, 'a', 'lane')
  db.run(insert, 'b', null)
  db.run(insert, 'c', null)
  expect(() => db.run(insert, 'd', 'lane')).toThrow(/UNIQUE/)
  db.close()
})

test('unconsumed events are counted from an index, without reading their rows, and the others are not sorted to find the oldest', async () => {
  const { plan, planned } = createPlanned()
  const from = createReads({ use: (_empty, query) => query(planned), reset() {}, close() {} }, Date.now)
  await from.waitingEvents({ ...main, limit: 50 })
  const sums = plan.filter((line) => line.includes('events_waiting'))
  expect(sums.length).toBeGreaterThan(0)
  expect(sums.filter((line) => !line.includes('COVERING'))).toEqual([])
  expect(plan.filter((line) => line.startsWith('MATERIALIZE'))).toEqual([])
})

test('a session is read without grouping the new rows of other sessions', async () => {
  const { plan, planned } = createPlanned()
  const from = createReads({ use: (_empty, query) => query(planned), reset() {}, close() {} }, Date.now)
  await from.session(main)
  expect(plan.filter((line) => /^SEARCH (events|messages) USING INTEGER PRIMARY KEY/.test(line))).toHaveLength(2)
  expect(plan.filter((line) => line.includes('TEMP B-TREE'))).toEqual([])
})

test('a filtered list of deliveries and the list of lanes scan no table', async () => {
  const { plan, planned } = createPlanned()
  const from = createReads({ use: (_empty, query) => query(planned), reset() {}, close() {} }, Date.now)
  await from.deliveries({ limit: 50, state: 'parked', hook: 'h' })
  await from.lanes({ limit: 50 })
  const steps = plan.filter((line) => /\b(deliveries|listed|jobs|jobs_of)\b/.test(line))
  const fine = /USING (PRIMARY KEY|COVERING INDEX jobs_lane|INDEX jobs_lane|INTEGER PRIMARY KEY)/
  expect(steps.length).toBeGreaterThan(5)
  expect(steps.filter((line) => !fine.test(line))).toEqual([])
})

test('a text search scans no table', async () => {
  const { plan, planned } = createPlanned()
  const from = createReads({ use: (_empty, query) => query(planned), reset() {}, close() {} }, Date.now)
  await from.deliveries({ limit: 50, text: 'x', hook: 'h', since: 1 })
  const steps = plan.filter((line) => /^(SCAN|SEARCH) (d|j|o|m|r|deliveries)\b/.test(line))
  expect(steps.length).toBeGreaterThan(6)
  expect(steps.filter((line) => line.startsWith('SCAN'))).toEqual([])
})

test('the deletion of a delivery scans no table', () => {
  const { plan, planned } = createPlanned()
  planned.run('DELETE FROM deliveries WHERE seq = ?', 1)
  expect(plan).toContainEqual(expect.stringMatching(/^SEARCH deliveries /))
  expect(plan.filter((line) => line.startsWith('SCAN '))).toEqual([])
})

test('a kept refused request is found by its id, without a scan of the others', async () => {
  const { plan, planned } = createPlanned()
  const from = createReads({ use: (_empty, query) => query(planned), reset() {}, close() {} }, Date.now)
  await from.quarantinedRequests({ limit: 1, requestId: 'r' })
  expect(plan).toEqual([expect.stringMatching(/^SEARCH quarantine USING INDEX .* \(id=\?\)$/)])
})

test('the deliveries of a hook are found by an index, without a visit of those of other hooks', async () => {
  const { plan, planned } = createPlanned()
  const from = createReads({ use: (_empty, query) => query(planned), reset() {}, close() {} }, Date.now)
  await from.keptSeqs({ limit: 9, hook: 'rare' })
  await from.deliveries({ limit: 9, hook: 'rare' })
  await from.deliveries({ limit: 9, hook: 'rare', state: 'accepted' })
  const steps = plan.filter((line) => /^(?:SCAN|SEARCH) (?:l|listed|d|deliveries)\b/.test(line))
  expect(steps.filter((line) => line.includes('INDEX listed_hook (hook=?'))).toHaveLength(3)
  expect(
    steps.filter((line) => !/INDEX listed_hook|INTEGER PRIMARY KEY|INDEX deliveries_kept \(seq>/.test(line)),
  ).toEqual([])
})

test('the causes of failed runs are counted from an index, and no run or delivery is read for it', async () => {
  const { plan, planned } = createPlanned()
  const from = createReads({ use: (_empty, query) => query(planned), reset() {}, close() {} }, Date.now)
  planned.run(`INSERT INTO causes (id, state, hook, error) VALUES (1, 'dead', 'h', 'x')`)
  planned.run('INSERT INTO failed_runs VALUES (1, 1, 1, 1)')
  plan.length = 0
  await from.troubles({ limit: 9, each: 9 })
  const steps = plan.filter((line) => /^(?:SCAN|SEARCH) (?:failed_runs|jobs|j|deliveries|d)\b/.test(line))
  expect(steps).toEqual([
    'SCAN failed_runs USING COVERING INDEX failed_runs_cause',
    'SEARCH failed_runs USING COVERING INDEX failed_runs_cause (cause=?)',
    expect.stringMatching(/^SEARCH d USING INTEGER PRIMARY KEY/),
  ])
})
