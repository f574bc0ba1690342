import { expect, test } from 'vitest'
import type { ApiParts } from '../../../../src/gateway/http/api/parts.ts'
import { handleReplays } from '../../../../src/gateway/http/api/replays.ts'
import type { Store } from '../../../../src/store/store.ts'
import { startRoutes } from './routes.ts'

async function startReplays() {
  const asked: object[] = []
  const replayer = {
    replay: async (query: object) => (asked.push(query), {}),
    decideLive: async (ids: readonly string[]) => (asked.push(ids), {}),
  }
  // as: these routes use no store and no other call
  const parts = { store: {} as Store, replayer: replayer as unknown as ApiParts['replayer'] }
  return { asked, call: await startRoutes(handleReplays(parts)) }
}

const listIds = (count: number) => Array.from({ length: count }, (_, index) => `id-${index}`)

test.each(['last=1&last=2', 'hook=a&hook=b', 'source=a&source=b', 'since=2026-01-02&since=2026-01-03', 'ids=a&ids=b'])(
  'a replay refuses a parameter that came twice, instead of ignoring it: %s',
  async (query) => {
    const { asked, call } = await startReplays()
    expect(await call('POST', `/api/replay?${query}`)).toBe(400)
    expect(asked).toEqual([])
  },
)

test('more ids than a call takes are refused, and none is left out silently', async () => {
  const { asked, call } = await startReplays()
  expect(await call('POST', `/api/replay?ids=${listIds(25)}`)).toBe(200)
  expect(await call('POST', `/api/replay?ids=${listIds(26)}`)).toBe(400)
  expect(await call('POST', `/api/replay/live?ids=${listIds(100)}`)).toBe(200)
  expect(await call('POST', `/api/replay/live?ids=${listIds(101)}`)).toBe(400)
  expect(asked).toEqual([{ limit: 25, ids: listIds(25) }, listIds(100)])
})
