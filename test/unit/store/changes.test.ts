// The changes that the stream of the page sends.
import { expect, test } from 'vitest'
import { noSpending } from '../../../src/model/spending.ts'
import { createChanges, withChanges } from '../../../src/store/changes.ts'
import { createMemoryStore } from '../../../src/store/sqlite/sqlite.ts'
import { newDelivery, newJob } from '../../contract/stage.ts'

test('a run that a budget sends back to the queue is a change of its delivery, and one that may start is none', async () => {
  const changes = createChanges()
  const store = withChanges(createMemoryStore({ clock: () => 1_000 }), changes)
  await store.append(newDelivery({ at: 1_000, jobs: [newJob(), newJob()] }))
  const [first, second] = await store.claim({ limit: 2, leaseMs: 30_000 })
  const most = { ...noSpending, turns: 1 }
  const reservations = [{ name: 'daily', startsAt: 0, endsAt: 10_000, limits: { turns: 1 }, most }]
  const before = changes.count()
  expect(await store.reserve(first ?? { id: '', fence: 0 }, reservations)).toEqual({ kind: 'reserved' })
  expect(changes.since(before)).toEqual(new Set())
  expect(await store.reserve(second ?? { id: '', fence: 0 }, reservations)).toMatchObject({ kind: 'waits' })
  expect(changes.since(before)).toEqual(new Set([second?.id]))
  await store.close()
})
