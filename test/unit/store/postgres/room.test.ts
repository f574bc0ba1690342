// The limit on the size of waiting work in a database.
import { describe, expect, onTestFinished, test } from 'vitest'
import { createPostgresStore } from '../../../../src/store/postgres/postgres.ts'
import { newDelivery, newJob, parked, planned, request } from '../../../contract/stage.ts'
import { newSchema, whyNoPostgres } from '../../../contract/postgres-stage.ts'

const maxBytes = 100_000

async function openStore() {
  const { url, drop } = await newSchema()
  onTestFinished(drop)
  const store = createPostgresStore({ url, maxWaitingBytes: () => maxBytes })
  onTestFinished(() => store.close())
  return store
}

const park = (kept: ReturnType<typeof request>) => newDelivery({ at: Date.now(), ...parked({ request: kept }) })
const withHead = () => {
  const { head, body } = request()
  return park({ head: { ...head, url: `/hooks/x?${'x'.repeat(9_000)}` }, body })
}
const cases = {
  'with a large body': () => park(request('x'.repeat(9_000))),
  'with a large head': withHead,
  'with a plan of characters of three bytes': () =>
    newDelivery({ at: Date.now(), jobs: [newJob({ planned: planned('\u20ac'.repeat(3_000)) })] }),
}

describe.skipIf(whyNoPostgres)('a database in which too much waits', () => {
  test.each(Object.keys(cases))('concurrent deliveries %s never exceed store.maxWaitingBytes', async (name) => {
    const build = cases[name as keyof typeof cases] // as: one of the keys
    const store = await openStore()
    const sent: Promise<unknown>[] = []
    const send = () => {
      const appended = store.append(build())
      sent.push(appended.catch(() => undefined))
      return appended
    }
    // the first append measures the store, and the others are accepted during the measurement
    const first = send()
    for (let n = 0; n < 8; n += 1) void send()
    await first
    for (let n = 0; n < 30; n += 1) void send()
    await Promise.all(sent)
    const bytes = await store.waitingBytes()
    expect(bytes).toBeGreaterThan(80_000)
    expect(bytes).toBeLessThanOrEqual(maxBytes)
  })
})
