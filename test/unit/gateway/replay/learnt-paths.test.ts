// The paths that are suggested to the author of a template.
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { createShapeLearner } from '../../../../src/gateway/deliveries/shapes/learner.ts'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { readPath } from '../../../../src/core/model/path.ts'
import { listReadPaths } from '../../../../src/core/mapping/template.ts'
import { listLearntPaths } from '../../../../src/gateway/replay/learnt-paths.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { toGeneration, toTestDelivery } from '../../core/mapping/decide.ts'

type Sent = { readonly payload: JsonValue; readonly source?: string; readonly event?: string }

async function list(sent: readonly Sent[], mapping: MappingInput = {}) {
  const store = createMemoryStore({ clock: Date.now })
  const generation = toGeneration([
    { id: 'own', messageTemplate: 'x', ...mapping, match: { path: 'pr', ...mapping.match } },
  ])
  const learner = createShapeLearner({ store, development: false, log: silentLog })
  for (const { payload, ...sender } of sent) {
    learner.note(toTestDelivery('pr', payload, sender), generation.findHook('pr'))
    await learner.flush()
  }
  return listLearntPaths({ dir: makeFolder(), store, generation }, { hook: 'pr', mappingId: 'own' })
}

test('learnt paths are written as templates read them, with the kinds and the number of their values', async () => {
  const found = await list([
    { payload: { commits: [{ author: 'a' }, { author: null }], event: 'x', body: 1 } },
    { payload: { commits: [], event: 'y' } },
  ])
  expect(found).toEqual({
    requests: 2,
    paths: [
      { path: 'commits', kinds: ['array'], count: 2 },
      { path: 'commits[0]', kinds: ['object'], count: 2 },
      { path: 'commits[0].author', kinds: ['string', 'null'], count: 2 },
      // {{event}} is the event of the sender, and {{body}} the text of a text body
      { path: 'payload.event', kinds: ['string'], count: 2 },
      { path: 'payload.body', kinds: ['number'], count: 1 },
    ],
  })
})

test('a mapping gets the paths of the events that it takes, and no others', async () => {
  const sent = [
    { payload: { starred: 1 }, source: 'github', event: 'star' },
    { payload: { opened: 1 }, source: 'github', event: 'pull_request' },
  ]
  const paths = async (mapping: MappingInput) => (await list(sent, mapping)).paths.map(({ path }) => path)
  expect(await paths({ match: { source: 'github', event: 'star' } })).toEqual(['starred'])
  expect(await paths({})).toEqual(expect.arrayContaining(['starred', 'opened']))
})

test(
  'a learnt path contains no key that is data, and is a placeholder that reads the payload',
  { timeout: 120_000 },
  async () => {
    const key = fc.oneof(
      fc.constantFrom(
        'event',
        'payload',
        'headers',
        'query',
        'now',
        'else',
        '#a',
        '@type',
        '__proto__',
        'a.b',
        'length',
      ),
      fc.constantFrom('ada@example.org', 'U012AB3CD', 'two words', '\u202Eevil', '}}', 'a|b'),
      fc.string(),
    )
    const { payload } = fc.letrec((tie) => ({
      payload: fc.dictionary(key, tie('value'), { maxKeys: 6 }),
      value: fc.oneof(
        { maxDepth: 3 },
        fc.string(),
        fc.constant(null),
        tie('payload'),
        fc.array(tie('value'), { maxLength: 3 }),
      ),
    }))
    await fc.assert(
      fc.asyncProperty(payload, async (given) => {
        // as: the text has only JSON values
        const sent = JSON.parse(JSON.stringify(given)) as JsonValue
        const { paths } = await list([{ payload: sent }])
        for (const { path } of paths) {
          expect(path).not.toMatch(/@example|U012|\u202E|two words/)
          const [read, ...others] = listReadPaths(`{{${path}}}`)
          expect(others).toEqual([])
          // the first item of a list may differ from the item with the path
          if (read?.path.includes(0) === true) continue
          expect([path, readPath(sent, read?.path ?? [])]).not.toContain(undefined)
        }
      }),
      { numRuns: 100 },
    )
  },
)
