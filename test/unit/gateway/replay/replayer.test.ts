import { expect, test } from 'vitest'
import { createReplayer } from '../../../../src/gateway/replay/replayer.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { toGeneration, toTestId } from '../../core/mapping/decide.ts'
import { createConfigDir, writeFiles } from '../../core/transforms/stage.ts'

test('the fixtures of a module run with one version of the files, even if a save comes in between', async () => {
  const { configDir: dir, root } = await createConfigDir()
  const fixture = {
    request: { path: 'x', payload: {} },
    expect: { actions: [{ message: 'before' }], decision: 'accept' },
  }
  await writeFiles(root, { 'x.fixtures/one.json': JSON.stringify(fixture) })
  const mapping = { match: { path: 'x' }, transform: { module: 'x.ts' } }
  const versions = ['before', 'after'].map((message) =>
    toGeneration([mapping], { transforms: { 'x.ts': () => ({ message }) } }),
  )
  const [before] = versions
  if (before === undefined) throw new Error('there are two versions')
  const replayer = createReplayer({
    dir,
    current: () => before,
    edited: () => versions.shift() ?? before,
    reload: async () => {},
    createThreads: () => ({ of: (transforms) => transforms, close: async () => {} }),
    store: createMemoryStore({ clock: Date.now }),
    newId: toTestId,
  })
  expect(await replayer.updateFixtures('x.ts')).toEqual({ module: 'x.ts', updated: [], failing: [] })
})

test('fixtures are updated with a save that the gateway has not noticed yet, and a module that no mapping names is refused with those that mappings name', async () => {
  const { configDir: dir, root } = await createConfigDir()
  const fixture = { request: { path: 'x', payload: {} }, expect: {} }
  await writeFiles(root, { 'x.fixtures/one.json': JSON.stringify(fixture) })
  const mapping = { match: { path: 'x' }, transform: { module: 'x.ts' } }
  let edited = toGeneration([])
  const replayer = createReplayer({
    dir,
    current: () => edited,
    edited: () => edited,
    reload: async () => {
      edited = toGeneration([mapping], { transforms: { 'x.ts': () => ({ message: 'new' }) } })
    },
    createThreads: () => ({ of: (transforms) => transforms, close: async () => {} }),
    store: createMemoryStore({ clock: Date.now }),
    newId: toTestId,
  })
  expect(await replayer.updateFixtures('x.ts')).toEqual({ module: 'x.ts', updated: ['one.json'], failing: [] })
  await expect(replayer.updateFixtures('hooks/transforms/x.ts')).rejects.toThrow(
    'No mapping names the module "hooks/transforms/x.ts". Mappings name x.ts.',
  )
})
