import { expect, test } from 'vitest'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import type { RefusedCalls, RefusedQuery } from '../../../../src/gateway/deliveries/refused/calls.ts'
import { handleRefusals } from '../../../../src/gateway/http/api/refusals.ts'
import { Refusals } from '../../../../src/gateway/http/refusals.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import { startRoutes } from './routes.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

async function startRefused({ list, find }: Partial<Pick<RefusedCalls, 'list' | 'find'>> = {}) {
  const queries: RefusedQuery[] = []
  const generation = createGeneration({
    senders: builtInSenders,
    config: ConfigSchema.parse({}),
    mappings: [],
    transforms: new Map(),
  })
  const handlers = handleRefusals({
    generation: () => generation,
    refusals: new Refusals(false),
    refused: {
      list: list ?? (async () => []),
      find: find ?? (async () => undefined),
      isWaiting: () => false,
      retry: async (query) => (
        queries.push(query),
        { ran: 0, repeated: 0, stillRefused: 0, reasons: [], next: undefined }
      ),
      drop: async (query) => (queries.push(query), { dropped: 0, next: undefined }),
    },
  })
  return { queries, call: await startRoutes(handlers) }
}

test.each(['retry', 'drop'])('%s refuses a blank or repeated filter, instead of ignoring it', async (what) => {
  const { queries, call } = await startRefused()
  for (const query of ['hook=', 'hook=%20', 'since=', 'hook=a&since=', 'hook=a&hook=b']) {
    expect(await call('POST', `/api/refusals/${what}?${query}`)).toBe(400)
  }
  expect(queries).toEqual([])
})

test('a drop without a filter applies to all kept requests, and a drop with filters only to those that match', async () => {
  const { queries, call } = await startRefused()
  expect(await call('POST', '/api/refusals/drop')).toBe(200)
  expect(await call('POST', '/api/refusals/drop?hook=a&since=2026-01-02T03:04:05Z&after=7')).toBe(200)
  expect(queries).toEqual([
    { hook: undefined, since: undefined, after: undefined },
    { hook: 'a', since: Date.UTC(2026, 0, 2, 3, 4, 5), after: 7 },
  ])
})

test('one refusal is looked up by its id, without a list of all kept requests', async () => {
  const kept = {
    requestId: 'kept',
    receivedAt: 7,
    hook: 'a',
    client: '192.0.2.7',
    credential: 'none',
    path: '/hooks/a',
    status: 401,
    code: 'unauthorized',
    error: 'no',
    trace: [],
  } as const
  const { call } = await startRefused({
    list: () => Promise.reject(new Error('all kept requests were listed')),
    find: async (requestId) => (requestId === 'kept' ? kept : undefined),
  })
  expect(await call('GET', '/api/refusals/kept')).toBe(200)
  expect(await call('GET', '/api/refusals/other')).toBe(404)
})
