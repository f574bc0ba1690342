import { EventEmitter, once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { createMetrics } from '../../../../src/gateway/http/metrics.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { findPeriod } from '../../../../src/model/budgets.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { createClock, newDelivery, newJob } from '../../../contract/stage.ts'

/** The samples of the metrics whose names begin with `hookloom_budget_`. */
const readBudgetLines = async (metrics: ReturnType<typeof createMetrics>) =>
  (await metrics.renderPage()).split('\n').filter((line) => line.startsWith('hookloom_budget_'))

test('the metrics show for each budget its spent and reserved amounts, its raised limit, and the turns that wait for it', async () => {
  const clock = createClock()
  const store = createMemoryStore({ clock })
  onTestFinished(() => store.close())
  let config = ConfigSchema.parse({ budgets: { daily: { usd: 2, turns: 2 } } })
  const metrics = createMetrics({ store, config: () => config, clock })
  const { daily } = config.budgets
  if (daily === undefined) throw new Error('no budget')
  const period = findPeriod(daily, clock())
  const account = { name: 'daily', startsAt: period.startsAt }
  const asked = {
    ...account,
    endsAt: period.endsAt,
    limits: { turns: 2 },
    most: { nanos: 500_000_000, tokens: 40, turns: 1 },
  }

  await store.append(newDelivery({ at: clock(), jobs: [newJob(), newJob(), newJob()] }))
  const [first, second, third] = await store.claim({ limit: 3, leaseMs: 30_000 })
  for (const job of [first, second, third]) if (job) await store.reserve(job, [asked])
  if (first)
    await store.report(first, { settled: [{ ...account, used: { nanos: 250_000_000, tokens: 30, turns: 1 } }] })
  await store.raiseBudget(account, { nanos: 1_000_000_000, tokens: 0, turns: 0 })
  expect(await readBudgetLines(metrics)).toEqual([
    'hookloom_budget_limit{budget="daily",unit="usd"} 3',
    'hookloom_budget_limit{budget="daily",unit="turns"} 2',
    'hookloom_budget_spent{budget="daily",unit="usd"} 0.25',
    'hookloom_budget_spent{budget="daily",unit="tokens"} 30',
    'hookloom_budget_spent{budget="daily",unit="turns"} 1',
    'hookloom_budget_reserved{budget="daily",unit="usd"} 0.5',
    'hookloom_budget_reserved{budget="daily",unit="tokens"} 40',
    'hookloom_budget_reserved{budget="daily",unit="turns"} 1',
    'hookloom_budget_waiting{budget="daily"} 0',
  ])

  // the raise was for one period, and a lease that has ended reserves nothing
  clock.advance(period.endsAt - clock())
  const next = await readBudgetLines(metrics)
  expect(next).toContain('hookloom_budget_limit{budget="daily",unit="usd"} 2')
  expect(next).toContain('hookloom_budget_spent{budget="daily",unit="turns"} 0')
  expect(next).toContain('hookloom_budget_reserved{budget="daily",unit="turns"} 0')

  // a budget that was removed is not shown with its last value
  config = ConfigSchema.parse({})
  expect(await readBudgetLines(metrics)).toEqual([])
})

test('two readers at the same time both see all gauges, however slowly the store answers one of them', async () => {
  const clock = createClock()
  const store = createMemoryStore({ clock })
  onTestFinished(() => store.close())
  const config = ConfigSchema.parse({ budgets: { daily: { turns: 2 } } })
  // the first reader waits for the pauses, and then the second reader waits for the budgets
  const answers = new EventEmitter()
  const [mayReadHolds, mayReadBudgets] = [once(answers, 'first'), once(answers, 'second')]
  let reads = 0
  const metrics = createMetrics({
    store: {
      ...store,
      holds: () => mayReadHolds.then(() => store.holds()),
      accounts: async (names) => {
        reads += 1
        if (reads === 2) await mayReadBudgets
        return store.accounts(names)
      },
    },
    config: () => config,
    clock,
  })
  const first = readBudgetLines(metrics)
  await new Promise(setImmediate)
  const pending = readBudgetLines(metrics)
  await new Promise(setImmediate)
  answers.emit('first')
  await first
  answers.emit('second')
  const second = await pending
  expect(second.length).toBeGreaterThan(3)
  expect(await first).toEqual(second)
})

test('the metrics count the turns that wait for a budget', async () => {
  const clock = createClock()
  const store = createMemoryStore({ clock })
  onTestFinished(() => store.close())
  const config = ConfigSchema.parse({ budgets: { daily: { turns: 1 } } })
  const { daily } = config.budgets
  if (daily === undefined) throw new Error('no budget')
  const asked = { name: 'daily', ...findPeriod(daily, clock()), limits: { turns: 1 } }
  await store.append(newDelivery({ at: clock(), jobs: [newJob(), newJob(), newJob()] }))
  for (const job of await store.claim({ limit: 3, leaseMs: 30_000 }))
    await store.reserve(job, [{ ...asked, most: { nanos: 0, tokens: 0, turns: 1 } }])
  const lines = await readBudgetLines(createMetrics({ store, config: () => config, clock }))
  expect(lines).toContain('hookloom_budget_waiting{budget="daily"} 2')
  expect(lines).toContain('hookloom_budget_reserved{budget="daily",unit="turns"} 1')
})
