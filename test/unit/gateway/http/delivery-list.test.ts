import { expect, test } from 'vitest'
import { listDeliveries } from '../../../../src/gateway/http/api/delivery-list.ts'
import type { Store } from '../../../../src/store/store.ts'
import { toGeneration } from '../../core/mapping/decide.ts'

function createStage(dead: number) {
  const jobs = Array.from({ length: dead }, (_, index) => ({
    id: `job-${index}`,
    deliveryId: `d-${index}`,
    createdAt: index,
  }))
  const planned = { kind: 'agent', sessionKey: 'a', action: { message: '' } }
  const store = {
    delivery: async (id: string) => ({
      deliveryId: id,
      hook: 'other',
      jobs: [{ id: id.replace('d', 'job'), planned }],
    }),
    deadJobs: async ({ limit, before }: { limit: number; before?: string | undefined }) => {
      const end = before === undefined ? dead : jobs.findIndex(({ id }) => id === before)
      return jobs.slice(Math.max(0, end - limit), end)
    },
  }
  // as: a list of dead deliveries uses only these calls
  const parts = {
    store: store as unknown as Store,
    generation: () => toGeneration([]),
    clock: () => 0,
    others: { note: () => {}, watch: async () => {} },
  }
  const list = (query: object) => listDeliveries(parts, { query: { state: 'dead', ...query } })
  return { list }
}

test('a search of dead runs that stops before the oldest one says where it continues', async () => {
  const { list } = createStage(2_001)
  const first = await list({ hook: 'deploys' })
  expect(first).toEqual({ deliveries: [], next: 'd-1', older: null, searchedTo: '1970-01-01T00:00:00.001Z' })
  expect(await list({ hook: 'deploys', before: first.next })).toEqual({
    deliveries: [],
    next: null,
    older: 0,
    searchedTo: null,
  })
})

test('a search that has read all dead runs has no next page', async () => {
  expect(await createStage(1_999).list({ hook: 'deploys' })).toEqual({
    deliveries: [],
    next: null,
    older: 0,
    searchedTo: null,
  })
})

test('the filter of what waits has pending deliveries and unended runs in the order of their arrival', async () => {
  const planned = { kind: 'agent', sessionKey: 'a', action: { message: '' } }
  const toRecord = (deliveryId: string, state: string, jobs: readonly object[] = []) => ({
    deliveryId,
    state,
    jobs,
    hook: 'plain',
    receivedAt: 0,
    answer: { status: 200, body: '' },
  })
  const records = ['d-1', 'd-3'].map((id) =>
    toRecord(id, 'accepted', [{ id: `job-${id}`, state: 'queued', planned, steps: [], attempts: 0 }]),
  )
  const pending = [toRecord('d-2', 'pending'), toRecord('d-4', 'pending')]
  const store = {
    delivery: async (id: string) =>
      [...records, toRecord('d-2', 'pending')].find(({ deliveryId }) => deliveryId === id),
    deliveries: async () => pending,
    openJobs: async () => records.map(({ deliveryId }) => ({ id: `job-${deliveryId}`, deliveryId, createdAt: 0 })),
    waits: async () => [],
  }
  // as: the list uses only these calls
  const parts = {
    store: store as unknown as Store,
    generation: () => toGeneration([]),
    clock: () => 0,
    others: { note: () => {}, watch: async () => {} },
  }
  const list = async (limit: string, before?: string) => {
    const { deliveries, next } = await listDeliveries(parts, { query: { state: 'waiting', limit, before } })
    return { ids: deliveries.map(({ deliveryId }) => deliveryId), next }
  }
  expect(await list('9')).toEqual({ ids: ['d-1', 'd-2', 'd-3', 'd-4'], next: null })
  expect(await list('3')).toEqual({ ids: ['d-2', 'd-3', 'd-4'], next: 'd-2' })
  pending.splice(0)
  expect(await list('3', 'd-2')).toEqual({ ids: ['d-1'], next: null })
})
