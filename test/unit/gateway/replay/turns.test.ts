// Kept requests run in the process that serves requests. Mappings without code never wait, so each run lets other requests through first.
import { expect, test } from 'vitest'
import { tryDraft } from '../../../../src/gateway/replay/drafts.ts'
import { replay, runAll } from '../../../../src/gateway/replay/replay.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../../../src/store/store.ts'
import { newDelivery, request } from '../../../contract/stage.ts'
import { toGeneration, toTestId } from '../../core/mapping/decide.ts'
import { countTurns } from './turns.ts'

const generation = toGeneration([{ match: { path: 'github' }, messageTemplate: 'Say {{a}}' }])
const query = { limit: 60 }

const runReplay = (store: Store) =>
  replay({
    store,
    query,
    before: (page) => runAll(generation, page, { newId: toTestId }),
    after: generation,
    newId: toTestId,
    limitMs: 60_000,
  })

const runDraft = (store: Store) =>
  tryDraft({ template: 'Say {{a}}', match: { path: 'github' } }, { edited: generation, store, query, newId: toTestId })

test.each([
  ['a replay runs', runReplay],
  ['a draft is tried', runDraft],
])('requests are served between two kept requests while %s', async (_, work) => {
  const store = createMemoryStore({ clock: Date.now })
  for (let at = 1; at <= query.limit; at += 1) await store.append(newDelivery({ at, request: request() }))
  expect(await countTurns(() => work(store))).toBeGreaterThanOrEqual(query.limit)
})
