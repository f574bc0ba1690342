import { expect, test } from 'vitest'
import { runBatch } from '../../../../src/store/sqlite/batch.ts'
import { openDatabase } from '../../../../src/store/sqlite/driver.ts'
import { migrate } from '../../../../src/store/sqlite/migrations.ts'
import type { Operation, Results } from '../../../../src/store/sqlite/operations.ts'
import { toAppend } from '../../../../src/store/sqlite/values.ts'
import { trackWaitingBytes } from '../../../../src/store/sqlite/waiting-bytes.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'

test('a claim holds back many jobs in small operations, so that deliveries can be stored in between', () => {
  const db = openDatabase(':memory:', { readOnly: false, busyMs: 0 })
  migrate(db, 'memory')
  trackWaitingBytes(db)
  const held = Array.from({ length: 5_000 }, () => newJob({ labels: ['agent:a'] }))
  const free = newJob({ id: 'free', labels: ['agent:b'] })
  const hold = { label: 'agent:a', kind: 'pause', reason: 'x', author: 'ada', forMs: undefined } as const
  const deliveries = [...held, free].map((job) => toAppend(newDelivery({ at: 1, jobs: [job] }), 1))
  const run = (operations: readonly Operation[]) => runBatch({ db, operations, isBulk: false }).outcomes
  run([...deliveries, { kind: 'plain', at: 2, name: 'hold', args: [hold] }])
  const countHeld = () => Number(db.get('SELECT count(*) AS count FROM jobs WHERE gate = 4')?.['count'])
  const claims: { readonly held: number; readonly ids: readonly unknown[] }[] = []
  for (let isDone = false; !isDone;) {
    const before = countHeld()
    const [outcome] = run([{ kind: 'claim', at: 3, limit: 4, leaseMs: 9, limits: {}, only: undefined }])
    if (outcome?.ok !== true) throw new Error('the claim failed')
    // as: the result of a claim
    const { rows, isSorted } = outcome.value as Results['claim']
    claims.push({ held: countHeld() - before, ids: rows.map(({ id }) => id) })
    isDone = isSorted
  }
  expect(claims.reduce((total, { held: count }) => total + count, 0)).toBe(5_000)
  expect(Math.max(...claims.map(({ held: count }) => count))).toBeLessThanOrEqual(2_000)
  expect(claims.flatMap(({ ids }) => ids)).toEqual(['free'])
  db.close()
})
