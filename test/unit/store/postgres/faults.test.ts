// Failures of the network or the database: no process ends, and no leased job is forgotten.
import { expect, describe, onTestFinished, test } from 'vitest'
import { createPostgresStore } from '../../../../src/store/postgres/postgres.ts'
import { readPostgresFacts } from '../../../../src/store/postgres/facts.ts'
import { rowDamagedReason } from '../../../../src/store/rules.ts'
import { damageRow, flowJob, newPair } from '../../../contract/flow.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'
import { createProxy } from '../../../contract/postgres-proxy.ts'
import { newSchema, whyNoPostgres, withDatabase } from '../../../contract/postgres-stage.ts'

async function createStage() {
  const { url, drop } = await newSchema()
  onTestFinished(drop)
  return { url, proxy: await createProxy(url) }
}

function openStore(url: string) {
  const store = createPostgresStore({ url })
  onTestFinished(() => store.close())
  return store
}

const newPlainDelivery = () => newDelivery({ at: Date.now() })

describe.skipIf(whyNoPostgres)('a connection that is cut', () => {
  test('a connection that is cut at any byte of its first exchange ends no process, whether of a store or of doctor', async () => {
    const { url, proxy: first } = await createStage()
    await openStore(url).append(newPlainDelivery())
    await openStore(first.url).append(newPlainDelivery())
    const bytes = first.maxBytes()
    expect(bytes).toBeGreaterThan(500)
    // the exchange of LISTEN ends after this byte
    const ofListener = 450
    let next = 0
    const cutAll = async () => {
      const proxy = await createProxy(url)
      for (let cut = next++; cut <= bytes; cut = next++) {
        if (cut < ofListener && cut % 5 === 0) {
          const listening = createPostgresStore({ url: proxy.url })
          proxy.cutAfter(undefined)
          await listening.append(newPlainDelivery())
          proxy.cutAfter(cut)
          const isCut = proxy.waitForCut()
          listening.subscribe(() => undefined)
          await isCut
          await listening.close()
        }
        proxy.cutAfter(cut)
        const store = createPostgresStore({ url: proxy.url })
        await store.append(newPlainDelivery()).catch(() => undefined)
        if (cut % 5 === 0) await readPostgresFacts(proxy.url).catch(() => undefined)
        await store.close()
      }
    }
    await Promise.all(Array.from({ length: 8 }, cutAll))
    expect(await openStore(url).append(newPlainDelivery())).toEqual({ kind: 'stored' })
  })
})

describe.skipIf(whyNoPostgres)('a claim that fails', () => {
  test('a claim that fails while it sorts new jobs of flows returns the jobs that it has leased', async () => {
    const { url } = await createStage()
    let readsOfClock = Infinity
    const store = createPostgresStore({ url, now: () => ((readsOfClock -= 1) < 0 ? 'no_clock()' : '1000::bigint') })
    onTestFinished(() => store.close())
    await store.append(newDelivery({ at: 1, jobs: [newJob({ id: 'plain' })] }))
    const jobs = Array.from({ length: 101 }, (_, index) => flowJob({ key: `k${index}` }))
    await store.append(newDelivery({ at: 1, jobs }))
    readsOfClock = 1
    expect((await store.claim({ limit: 9, leaseMs: 1_000 })).map(({ id }) => id)).toEqual(['plain'])
    await expect(store.claim({ limit: 9, leaseMs: 1_000 })).rejects.toMatchObject({ code: 'store-unavailable' })
  })
})

describe.skipIf(whyNoPostgres)('a damaged row', () => {
  test.each<[what: string, table: string, column: string, hasFlow?: boolean]>([
    ['a damaged plan', 'job_parts', 'planned'],
    ['damaged steps', 'job_parts', 'steps'],
    ['a flow and damaged posts', 'job_parts', 'posts', true],
    ['a flow and damaged labels', 'jobs', 'labels', true],
    ['a flow and damaged settings of it', 'job_flow', 'settings', true],
  ])('a job with %s ends, and the other jobs are claimed', async (_, table, column, hasFlow) => {
    const { url } = await createStage()
    const store = openStore(url)
    await store.append(newDelivery({ at: Date.now(), jobs: newPair(hasFlow) }))
    await withDatabase((client) => client.query(damageRow(table, column)), url)
    await store.hold({ label: 'session:a', kind: 'pause', reason: 'x', author: 'ada', forMs: undefined })
    expect(await store.claim({ limit: 9, leaseMs: 1000 })).toMatchObject([{ id: 'good' }])
    expect((await store.counts()).jobs).toMatchObject({ dead: 1, running: 1 })
    const [bad] = await withDatabase(
      (client) => client.query(`SELECT last_error FROM jobs WHERE id = 'bad'`),
      url,
    ).then(({ rows }) => rows)
    expect(bad).toEqual({ last_error: rowDamagedReason })
  })
})
