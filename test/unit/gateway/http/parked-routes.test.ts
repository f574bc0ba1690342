import { expect, test } from 'vitest'
import type { ParkedQuery } from '../../../../src/gateway/deliveries/parked-calls.ts'
import { handleParked } from '../../../../src/gateway/http/api/parked.ts'
import { startRoutes } from './routes.ts'

async function startParked() {
  const queries: ParkedQuery[] = []
  const handlers = handleParked({
    drain: {
      retryParked: async (query) => (queries.push(query), { settled: 0, stillParked: 0, next: undefined }),
      dropParked: async (query) => (queries.push(query), { dropped: 0, next: undefined }),
    },
  })
  return { queries, call: await startRoutes(handlers) }
}

test.each(['retry', 'drop'])(
  '%s refuses two values of the parameter hook, instead of applying to all hooks',
  async (what) => {
    const { queries, call } = await startParked()
    expect(await call('POST', `/api/parked/${what}?hook=a&hook=b`)).toBe(400)
    expect(queries).toEqual([])
  },
)

test('a drop without a hook applies to all hooks, and a drop with a blank hook does not', async () => {
  const { queries, call } = await startParked()
  expect(await call('POST', '/api/parked/drop?after=x')).toBe(200)
  expect(await call('POST', '/api/parked/drop?hook=')).toBe(200)
  expect(queries).toEqual([
    { hook: undefined, after: 'x' },
    { hook: '', after: undefined },
  ])
})
