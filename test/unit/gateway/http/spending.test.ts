import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { countSince } from '../../../../src/gateway/http/api/hour-of-store.ts'
import { handleSpending } from '../../../../src/gateway/http/api/spending.ts'
import { createSqliteStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../../../src/store/store.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'
import { onFileEnd } from '../../../file-end.ts'

test('the costs of 5,000 deliveries are read in nine calls of one statement each, and a second page in none', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'hookloom-spending-')), 'hookloom.db')
  const at = Date.now()
  const store = createSqliteStore({ file, clock: () => at })
  onFileEnd(() => store.close())
  for (let n = 0; n < 10; n += 1) {
    const usage = { inputTokens: 10, outputTokens: 1, costUsd: 0.25 }
    const steps = [{ name: 'run' as const, state: 'done' as const, at, usage }]
    const some = Array.from({ length: 500 }, () => newDelivery({ at, jobs: [newJob({ state: 'done', steps })] }))
    await store.appendAll(some, [])
  }
  const calls: string[] = []
  const count = <Name extends 'spent' | 'tally' | 'stepBack'>(name: Name): Store[Name] => {
    const call = (query: never) => {
      calls.push(name)
      return store[name](query)
    }
    // as: the call has the type of the one that it counts
    return call as Store[Name]
  }
  const counted = { ...store, spent: count('spent'), tally: count('tally'), stepBack: count('stepBack') }
  const generation = () => ({ config: { models: { providers: {}, aliases: {} }, budgets: {} } })
  const { 'GET /api/spending': read } = handleSpending({
    store: counted,
    clock: () => at,
    generation,
  } as unknown as Parameters<typeof handleSpending>[0])
  // as: the handler reads only the query
  const ask = () => read({ query: { since: new Date(at - 3_600_000).toISOString() } } as never)
  expect(await ask()).toMatchObject({
    deliveries: 5_000,
    failed: 0,
    waiting: 0,
    usd: 1_250,
    inputTokens: 50_000,
    budgetUsd: null,
    rows: [{ runs: 5_000, usd: 1_250, model: null }],
  })
  expect(calls.toSorted()).toEqual([
    'spent',
    'spent',
    'spent',
    'stepBack',
    'stepBack',
    'stepBack',
    'tally',
    'tally',
    'tally',
  ])
  await ask()
  expect(calls).toHaveLength(9)
  // what is older is not in the count
  expect((await countSince(store, { since: at + 1, every: 'hour' })).tallies).toEqual([])
})
