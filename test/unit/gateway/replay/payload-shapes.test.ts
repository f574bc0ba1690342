// Learnt shapes are read one event at a time, so that requests are served in between.
import { describe, expect, test } from 'vitest'
import { mergeIntoStoredShape } from '../../../../src/gateway/deliveries/shapes/stored.ts'
import { collectKnownPayloads, listLearntPaths } from '../../../../src/gateway/replay/learnt-paths.ts'
import { findPathWarnings } from '../../../../src/gateway/replay/path-warnings.ts'
import { collectShapes, streamHookShapes } from '../../../../src/gateway/replay/payload-shapes.ts'
import { streamShapeRows } from '../../../../src/gateway/replay/shape-rows.ts'
import { createEventShape, learnPayload, readRequests } from '../../../../src/gateway/shapes/event-shape.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { newDelivery, request } from '../../../contract/stage.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { toGeneration } from '../../core/mapping/decide.ts'
import { countTurns } from './turns.ts'

const letters = [...'abcdefghijklmnopqrstuvwxyz']
const generation = toGeneration([
  { id: 'own', match: { path: 'pr' }, messageTemplate: '{{id}}' },
  { id: 'other', match: { path: 'other' }, messageTemplate: '{{id}}' },
])

/** A store with 26 events of one hook and one event of another one. `read`: the names of the cursors that were read. */
async function createStage() {
  const store = createMemoryStore({ clock: Date.now })
  for (const [hook, event] of [...letters.map((letter) => ['pr', letter] as const), ['other', 'push'] as const]) {
    const shape = createEventShape({ hook, event })
    learnPayload(shape, { id: 1 }, 1)
    await mergeIntoStoredShape(store, shape)
  }
  const read: string[] = []
  const cursors = async (prefix: string) => {
    const found = await store.cursors(prefix)
    read.push(...found.map(({ name }) => name))
    return found
  }
  return { parts: { dir: makeFolder(), generation, store: { ...store, cursors }, maxKept: 0 }, read }
}

type Parts = Awaited<ReturnType<typeof createStage>>['parts']

const readPaths = (parts: Parts) => listLearntPaths(parts, { hook: 'pr', mappingId: 'own' })

describe('requests are served between two events while', () => {
  test.each<[string, (parts: Parts) => Promise<unknown>]>([
    ['the paths of a hook are listed', readPaths],
    ['the paths of all hooks are listed', collectKnownPayloads],
    ['the paths of the mappings are checked', findPathWarnings],
    ['the types of a hook are collected', (parts) => collectShapes(parts, 'pr')],
    [
      'the shapes are listed',
      async (parts) => {
        for await (const row of streamShapeRows(parts, { hook: undefined, since: undefined }))
          expect(row.requests).toBe(1)
      },
    ],
  ])('%s', async (_, work) => {
    const { parts } = await createStage()
    expect(await countTurns(() => work(parts))).toBeGreaterThanOrEqual(letters.length)
  })
})

test('several readers at the same time read at most one event in each turn of the event loop', async () => {
  const { parts } = await createStage()
  const turns = await countTurns(() => Promise.all([readPaths(parts), readPaths(parts), readPaths(parts)]))
  expect(turns).toBeGreaterThanOrEqual(3 * letters.length)
})

test('a reader of one hook does not read the shapes of other hooks', async () => {
  const { parts, read } = await createStage()
  await readPaths(parts)
  await collectShapes(parts, 'pr')
  expect(read).toHaveLength(2 * letters.length)
  expect(read.filter((name) => !name.startsWith('shape/pr/'))).toEqual([])
})

test('at most 25 kept requests are in memory at a time, and each counts once', async () => {
  const { parts } = await createStage()
  for (let at = 1; at <= 60; at += 1) {
    const { head, body } = request(`{"n": ${at}}`)
    const kept = { head: { ...head, path: 'other', headers: {} }, body }
    await parts.store.append(newDelivery({ at, hook: 'other', source: undefined, event: undefined, request: kept }))
  }
  const pages: number[] = []
  const keptDeliveries: Parts['store']['keptDeliveries'] = async (query) => {
    const page = await parts.store.keptDeliveries(query)
    pages.push(page.length)
    return page
  }
  const counts: number[] = []
  const store = { ...parts.store, keptDeliveries }
  // nobody waits for the store where only learnt shapes are asked for
  for await (const _ of streamHookShapes({ ...parts, store, maxKept: 0 }, 'other'));
  expect(pages).toEqual([])
  for await (const shape of streamHookShapes({ ...parts, store, maxKept: 55 }, 'other')) {
    if (shape.event === '') counts.push(readRequests(shape).count)
  }
  expect(counts).toEqual([55])
  expect(Math.max(...pages)).toBe(25)
})
