// What a commit writes before the answer is sent, in pages and bytes of the WAL. These numbers do not depend on the machine.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newDelivery, newJob, newWake } from '../../../contract/stage.ts'
import { readTransactions } from '../../../bench/wal.ts'
import { newFolder, openStore } from './stage.ts'

const findMedian = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

/** A delivery with one wake, whose text is about as long as a template makes it. */
const wake = (index: number) =>
  newDelivery({
    at: Date.now(),
    jobs: [newWake(`opened #${index} The nightly export of account ${index} stops halfway by person-${index}`)],
  })

async function openMeasured() {
  const file = join(newFolder(), 'x.db')
  const store = openStore(file)
  for (let index = 0; index < 20; index += 1) await store.append(wake(index))
  /** The transactions that `work` committed. */
  const measure = async (work: () => Promise<unknown>) => {
    const before = readTransactions(readFileSync(`${file}-wal`)).length
    await work()
    return readTransactions(readFileSync(`${file}-wal`)).slice(before)
  }
  return { store, measure }
}

test('a lone wake usually writes at most four pages, and never more than nine', async () => {
  const { store, measure } = await openMeasured()
  const pages: number[] = []
  for (let index = 0; index < 21; index += 1) {
    const [transaction, ...others] = await measure(() => store.append(wake(index)))
    expect(others).toEqual([])
    pages.push(transaction?.pages ?? 0)
  }
  expect(findMedian(pages)).toBeLessThanOrEqual(4)
  expect(Math.max(...pages)).toBeLessThanOrEqual(9)
})

test('each of sixteen wakes in a batch usually writes at most 2.2 kB', async () => {
  const { store, measure } = await openMeasured()
  const bytes: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const transactions = await measure(() =>
      Promise.all(Array.from({ length: 16 }, (_, index) => store.append(wake(index)))),
    )
    expect(transactions.length).toBe(1)
    bytes.push((transactions[0]?.bytes ?? 0) / 16)
  }
  expect(findMedian(bytes)).toBeLessThanOrEqual(2_200)
})

test('a job is stored and claimed in one commit, if the claim follows its append at once', async () => {
  const { store, measure } = await openMeasured()
  const transactions = await measure(async () => {
    const [appended, claimed] = await Promise.all([
      store.append(newDelivery({ at: Date.now(), jobs: [newJob({ lane: 'lane' })] })),
      store.claim({ limit: 1, leaseMs: 60_000 }),
    ])
    expect(appended).toEqual({ kind: 'stored' })
    expect(claimed).toMatchObject([{ state: 'running' }])
  })
  expect(transactions.length).toBe(1)
})

test('the steps of a run write its row, and not its plan: a long prompt is written once', async () => {
  const { store, measure } = await openMeasured()
  const job = newJob({ lane: 'lane' })
  const { action } = job.planned as Extract<typeof job.planned, { kind: 'agent' }>
  const planned = { ...job.planned, action: { ...action, message: 'x'.repeat(40_000) } } as typeof job.planned
  await store.append(newDelivery({ at: Date.now(), jobs: [{ ...job, planned }] }))
  const transactions = await measure(async () => {
    const [claimed] = await store.claim({ limit: 1, leaseMs: 60_000 })
    if (claimed === undefined) throw new Error('no job is due')
    expect(claimed.planned).toEqual(planned)
    await store.report(claimed, {
      steps: [{ name: 'run', state: 'done', at: 1, result: 'yes' }],
      messages: [{ role: 'assistant', text: 'yes' }],
    })
    await store.report(claimed, { outcome: { kind: 'done' } })
  })
  const pages = transactions.map((transaction) => transaction.pages)
  expect(pages.length).toBe(3)
  // the steps write 9 pages, and up to twice as many if random ids split pages; the prompt alone has 20
  expect(pages.reduce((all, each) => all + each, 0)).toBeLessThan(9 + 20)
})
