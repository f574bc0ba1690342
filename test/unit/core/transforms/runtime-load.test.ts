import { rename, symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createStage, readResult, requireLoaded } from './runtime-stage.ts'

describe('unchanged modules', () => {
  test('an unchanged module is not built again and keeps its state, and a changed one goes live', async () => {
    const { write, load, runtime } = await createStage({ workers: 1 })
    await write({ 'a.ts': 'let n = 0\nexport default () => ++n', 'b.ts': `export default () => 'old'` })
    const before = await load('a.ts', 'b.ts')
    expect(await readResult(before['a.ts'])).toBe(1)
    await write({ 'b.ts': `export default () => 'new!'` })
    const after = await load('a.ts', 'b.ts')
    expect([await readResult(after['a.ts']), await readResult(after['b.ts'])]).toEqual([2, 'new!'])
    expect(runtime.state().builds).toBe(3)
    expect(after['a.ts']?.hash).toBe(before['a.ts']?.hash)
    expect(after['b.ts']?.hash).not.toBe(before['b.ts']?.hash)
  })

  test('a module is not built again when another one is saved by rename', async () => {
    const { write, load, runtime, root } = await createStage()
    await write({
      'a.ts': `import { x } from './lib/x.ts'\nexport default () => x`,
      'lib/x.ts': 'export const x = 1',
      'b.ts': 'export default () => 1',
    })
    await load('a.ts', 'b.ts')
    await write({ '.b.ts.tmp': 'export default () => 22' })
    await rename(join(root, '.b.ts.tmp'), join(root, 'b.ts'))
    expect(await readResult((await load('a.ts', 'b.ts'))['b.ts'])).toBe(22)
    expect(runtime.state().builds).toBe(3)
  })

  test('a module is built again when it was saved with the same size and the same time, as some tools write files', async () => {
    const { write, load, root } = await createStage()
    for (const word of ['old', 'new']) {
      await write({ 'x.ts': `export default () => '${word}'` })
      await utimes(join(root, 'x.ts'), 1, 1)
      expect(await readResult((await load('x.ts'))['x.ts'])).toBe(word)
    }
  })

  test.each([
    ['a file', 'lib/words.ts', 'words-a.ts', 'words-b.ts'],
    ['a folder', 'lib', 'lib-a', 'lib-b'],
  ])('a module is built again when a link to %s that it imports leads elsewhere', async (_, link, before, after) => {
    const { write, load, root } = await createStage()
    const suffix = link === 'lib' ? '/words.ts' : ''
    const folder = link === 'lib' ? '' : 'lib/'
    await write({
      'x.ts': `import { word } from './lib/words.ts'\nexport default () => word`,
      [`${folder}${before}${suffix}`]: `export const word = 'before'`,
      [`${folder}${after}${suffix}`]: `export const word = 'after'`,
    })
    await symlink(before, join(root, link))
    expect(await readResult((await load('x.ts'))['x.ts'])).toBe('before')
    await symlink(after, join(root, 'link'))
    await rename(join(root, 'link'), join(root, link))
    expect(await readResult((await load('x.ts'))['x.ts'])).toBe('after')
  })

  test.each([
    ['a helper was saved', { 'lib/mode.js': `export const mode = 'saved'` }, 'saved'],
    ['a nearer file for an import was created', { 'lib/mode.ts': `export const mode = 'nearer'` }, 'nearer'],
    ['a JSON file that it imports was saved', { 'words.json': '{"word":"saved"}' }, 'saved'],
    [
      'a package was installed',
      { 'node_modules/said/package.json': '{"main":"b.js"}', 'node_modules/said/b.js': `exports.said = 'b'` },
      'b',
    ],
  ])('a module is built again when %s', async (_, files, expected) => {
    const { write, load, runtime } = await createStage()
    await write({
      'x.ts': `import { mode } from './lib/mode'\nimport words from './words.json'\nimport { said } from 'said'
        export default () => [mode, words.word, said]`,
      'lib/mode.js': `export const mode = 'old'`,
      'words.json': '{"word":"old"}',
      'node_modules/said/package.json': '{"main":"a.js"}',
      'node_modules/said/a.js': `exports.said = 'a'`,
    })
    expect(await readResult((await load('x.ts'))['x.ts'])).toEqual(['old', 'old', 'a'])
    await write(files)
    expect(await readResult((await load('x.ts'))['x.ts'])).toContain(expected)
    await load('x.ts')
    expect(runtime.state().builds).toBe(2)
  })
})

describe('transforms of an earlier load', () => {
  test('a transform of an earlier load still runs its own code after later loads', async () => {
    const { write, load } = await createStage()
    await write({ 'x.ts': `export default () => 'first'` })
    const first = await load('x.ts')
    for (const word of ['second', 'third']) {
      await write({ 'x.ts': `export default () => '${word}'` })
      const next = await load('x.ts')
      expect([await readResult(first['x.ts']), await readResult(next['x.ts'])]).toEqual(['first', word])
    }
  })

  test('an earlier transform keeps working when the next version fails to load', async () => {
    const { write, load } = await createStage()
    await write({ 'x.ts': `export default () => 'good'`, 'y.ts': `export default () => 'other'` })
    const good = await load('x.ts', 'y.ts')
    await write({ 'x.ts': `throw new RangeError('no')\nexport default () => 1` })
    const bad = await load('x.ts', 'y.ts')
    const detail = 'transforms/x.ts does not load: it threw a RangeError at x.ts:1.'
    expect(bad['x.ts']).toMatchObject({ hash: undefined, problem: { code: 'transform-load-failed', detail } })
    expect(await readResult(bad['x.ts'])).toBe(detail)
    expect([await readResult(good['x.ts']), await readResult(bad['y.ts'])]).toEqual(['good', 'other'])
    await write({ 'x.ts': `export default () => 'mended'` })
    expect(await readResult((await load('x.ts', 'y.ts'))['x.ts'])).toBe('mended')
  })
})

describe('modules that fail while they load', () => {
  test('a module that fails while it loads affects no serving worker, and its problem gives the reason', async () => {
    const { write, load } = await createStage({ timeoutMs: 300 })
    await write({
      'good.ts': `let n = 0\nexport default () => ++n`,
      'loop.ts': 'while (true);\nexport default () => 1',
      'never.ts': 'await new Promise(() => {})\nexport default () => 1',
      'exit.ts': 'process.exit(0)\nexport default () => 1',
      'none.ts': 'export const other = 1',
    })
    const { 'good.ts': good } = await load('good.ts')
    const loading = load('good.ts', 'loop.ts', 'never.ts', 'exit.ts', 'none.ts')
    const served: unknown[] = []
    for (let n = 0; n < 20; n++) served.push(await readResult(good))
    const modules = await loading
    expect(served.every((value) => typeof value === 'number')).toBe(true)
    expect(Object.values(modules).map(({ problem }) => problem?.detail)).toEqual([
      undefined,
      'transforms/loop.ts was not loaded within 300 ms.',
      'transforms/never.ts was not loaded within 300 ms.',
      'transforms/exit.ts ended its worker (process.exit).',
      'transforms/none.ts must export a function, found nothing. Did you forget "export default"?',
    ])
    expect(await readResult(modules['good.ts'])).toEqual(expect.any(Number))
  })

  test('exports of one module are checked separately: one may exist and another may not', async () => {
    const { write, runtime, root, settings } = await createStage()
    await write({ 'x.ts': 'export const a = () => 1' })
    const refs = [
      { module: 'x.ts', export: 'a' },
      { module: 'x.ts', export: 'b' },
    ]
    const loaded = await runtime.load({ root, refs, settings })
    expect(await readResult(loaded.get('x.ts#a'))).toBe(1)
    expect(await readResult(loaded.get('x.ts#b'))).toContain('must export a function "b", found nothing')
  })

  test('a load of a module outside the root is rejected', async () => {
    const { load } = await createStage()
    await expect(load('../x.ts')).rejects.toMatchObject({ code: 'config-invalid' })
  })
})

test('zod needs no installation, and an installed version has priority', async () => {
  const { write, load } = await createStage()
  await write({
    'x.ts': `import { z } from 'zod'\nexport default () => z.object({ a: z.string() }).parse({ a: 'b', c: 1 })`,
  })
  const transform = requireLoaded((await load('x.ts'))['x.ts'])
  expect(await readResult(transform)).toEqual({ a: 'b' })
  await write({
    'node_modules/zod/package.json': '{"main":"z.js"}',
    'node_modules/zod/z.js': `exports.z = { string() {}, object: () => ({ parse: () => 'installed' }) }`,
  })
  expect(await readResult((await load('x.ts'))['x.ts'])).toBe('installed')
})
