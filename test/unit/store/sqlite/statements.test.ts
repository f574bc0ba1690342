// The work of the writer thread for a run, in statements: each one that is added delays every request that waits for the same commit.
import { expect, test } from 'vitest'
import { runBatch } from '../../../../src/store/sqlite/batch.ts'
import { type Database, openDatabase, type SqlValue } from '../../../../src/store/sqlite/driver.ts'
import { migrate } from '../../../../src/store/sqlite/migrations.ts'
import type { Operation, Results } from '../../../../src/store/sqlite/operations.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { toAppend, toReport } from '../../../../src/store/sqlite/values.ts'
import { trackWaitingBytes } from '../../../../src/store/sqlite/waiting-bytes.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'

/** A database, and a function that counts the statements of an operation on it, without those of every commit. */
function createCounted() {
  const db = openDatabase(':memory:', { readOnly: false, busyMs: 0 })
  migrate(db, 'memory')
  trackWaitingBytes(db)
  let count = 0
  const counted =
    <Result>(run: (sql: string, ...values: readonly SqlValue[]) => Result) =>
    (sql: string, ...values: readonly SqlValue[]) => {
      if (!sql.includes('waiting_change')) count += 1
      return run(sql, ...values)
    }
  const given: Database = { ...db, run: counted(db.run), get: counted(db.get), all: counted(db.all) }
  return (operation: Operation) => {
    count = 0
    const [outcome] = runBatch({ db: given, operations: [operation], isBulk: false }).outcomes
    if (outcome?.ok !== true) throw new Error(`the operation failed: ${outcome?.cause}`)
    return { statements: count, value: outcome.value }
  }
}

const claim: Operation = { kind: 'claim', at: 2, limit: 64, leaseMs: 9, limits: {}, only: undefined }

test('a claim is one statement if nothing is due, and four for any number of runs', () => {
  const perform = createCounted()
  expect(perform(claim).statements).toBe(1)
  for (const runs of [1, 40]) {
    for (let run = 0; run < runs; run += 1) perform(toAppend(newDelivery({ at: 1, jobs: [newJob({})] }), 1))
    const { statements, value } = perform(claim)
    // as: the result of a claim
    expect({ statements, rows: (value as Results['claim']).rows.length }).toEqual({ statements: 4, rows: runs })
  }
})

test('the report that ends a run is a look-up, one statement for its row, one for its lane, and one for each event and message', () => {
  const perform = createCounted()
  perform(toAppend(newDelivery({ at: 1, jobs: [newJob({ lane: 'a' })] }), 1))
  // as: the result of a claim
  const [row] = (perform(claim).value as Results['claim']).rows
  const step = { state: 'done', at: 2 } as const
  const report = toReport(
    { id: String(row?.['id']), fence: Number(row?.['fence']) },
    {
      steps: [
        { name: 'run', ...step },
        { name: 'summary', ...step },
      ],
      events: [{ agentId: 'main', sessionKey: 'main', text: 'x', source: 's', trusted: false, wakes: true }],
      messages: [
        { role: 'user', text: 'x' },
        { role: 'assistant', text: 'x' },
      ],
      posts: [],
      leaseMs: 9,
      outcome: { kind: 'done' },
    },
    2,
  )
  expect(perform(report)).toEqual({ statements: 6, value: true })
})

test('many runs are claimed in operations of at most 48, so that requests can be stored in between', async () => {
  const store = createMemoryStore({ clock: () => 2 })
  const countCommits = async () => Number((await store.health()).facts['commits'])
  for (const { runs, commits } of [
    { runs: 100, commits: 3 },
    { runs: 20, commits: 1 },
  ]) {
    for (let run = 0; run < runs; run += 1) await store.append(newDelivery({ at: 1, jobs: [newJob({})] }))
    const before = await countCommits()
    expect(await store.claim({ limit: 200, leaseMs: 9 })).toHaveLength(runs)
    expect((await countCommits()) - before).toBe(commits)
  }
  await store.close()
})
