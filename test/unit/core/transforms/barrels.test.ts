import { mkdir, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createBundleCache } from '../../../../src/core/transforms/modules/bundle-cache.ts'
import { evaluateBundle, pickExport } from '../../../../src/core/transforms/modules/evaluate.ts'
import { createConfigDir, writeFiles } from './stage.ts'

const few = 40
const listNumbers = (size: number) => Array.from({ length: size }, (_, index) => index)

/** `stars`: a barrel like that of date-fns. `list`: a barrel like that of lodash-es. Each name has a separate file. */
const barrels = {
  stars: {
    toIndex: (size: number) =>
      listNumbers(size)
        .map((n) => `export * from './n${n}.js'`)
        .join('\n'),
    files: (n: number) => `import { one } from './one.js'\nexport const n${n} = () => ${n} * one\nexport default n${n}`,
  },
  list: {
    toIndex: (size: number) => {
      const names = listNumbers(size).map((n) => `export { default as n${n} } from './n${n}.js'`)
      return `/** All of it */\n${names.join('\n')}\nexport { default } from './n0.js'`
    },
    files: (n: number) => `import { one } from './one.js'\nconst n = () => ${n} * one\nexport default n`,
  },
}

async function createStage(
  kind: keyof typeof barrels,
  { size = few, ...manifest }: { size?: number; sideEffects?: undefined } = {},
) {
  const { configDir, root } = await createConfigDir()
  const { files, toIndex } = barrels[kind]
  const toPath = (path: string) => `node_modules/big/${path}`
  await writeFiles(root, {
    [toPath('package.json')]: JSON.stringify({
      name: 'big',
      type: 'module',
      main: './index.js',
      sideEffects: false,
      ...manifest,
    }),
    [toPath('index.js')]: toIndex(size),
    [toPath('one.js')]: 'export const one = 1',
    ...Object.fromEntries(listNumbers(size).map((n) => [toPath(`n${n}.js`), files(n)])),
  })
  const cache = createBundleCache()
  let saves = 0
  return {
    configDir,
    root,
    /** Saves x.ts; returns the result of its function, and the names of the files that were read. */
    async save(text: string, more: Record<string, string> = {}) {
      saves += 1
      await writeFiles(root, { ...more, 'x.ts': `// ${saves}\n${text}` })
      const [built] = await cache.build(root, ['x.ts'])
      if (built === undefined || 'problem' in built) return { problem: built?.problem.message }
      const call = pickExport(await evaluateBundle(built.bundle, 5000), undefined)
      return { value: await call({}, {}), files: built.bundle.inputs.map(({ file }) => basename(file)).toSorted() }
    },
  }
}

const renderUse = (...names: number[]) =>
  `import { ${names.map((n) => `n${n}`).join(', ')} } from 'big'\nexport default () => ${names.map((n) => `n${n}()`).join(' + ')}`

describe.each(['stars', 'list'] as const)('a package whose index is a barrel (%s)', (kind) => {
  test('a barrel is read completely once, and a later save reads only the files of the imported names', async () => {
    const { save } = await createStage(kind, { size: 300 })
    const first = await save(renderUse(7))
    expect(first).toMatchObject({ value: 7 })
    expect(first.files).toHaveLength(303)
    const needed = ['index.js', 'n7.js', 'one.js', 'x.ts']
    expect(await save(renderUse(7))).toEqual({ value: 7, files: needed })
    expect(await save(renderUse(8, 9))).toEqual({ value: 17, files: ['index.js', 'n8.js', 'n9.js', 'one.js', 'x.ts'] })
  })

  test.each([
    [
      'a namespace',
      `import * as all from 'big'\nexport default () => Object.keys(all).filter((key) => key !== 'default').length`,
      few,
    ],
    ['import()', `export default async () => (await import('big')).n3()`, 3],
    ['require', `export default () => require('big').n4()`, 4],
    ['a name in a template text', 'export default async () => (await import(`big`)).n5()', 5],
    ['a re-export', `export { n6 as default } from 'big'`, 6],
    ['a star export', `export * from 'big'\nimport { n1 } from 'big'\nexport default () => n1()`, 1],
    ['a renamed name', `import { n2 as two } from 'big'\nexport default () => two()`, 2],
    ['a text with its name', `import { n2 } from 'big'\nexport default () => 'big' + n2()`, 'big2'],
  ])('after a trimmed build, a save that uses the package by %s has the right result', async (_, text, value) => {
    const { save } = await createStage(kind)
    await save(renderUse(7))
    await save(renderUse(7))
    expect(await save(text)).toMatchObject({ value })
    expect(await save(renderUse(7))).toMatchObject({ value: 7 })
  })

  test('after a trimmed build, a new file and another package get everything that they import from the barrel', async () => {
    const { save } = await createStage(kind)
    await save(renderUse(7))
    const more = { 'lib.ts': `import { n20 } from 'big'\nexport const twenty = n20()` }
    const withLib = `import { n7 } from 'big'\nimport { twenty } from './lib.ts'\nexport default () => n7() + twenty`
    expect(await save(withLib, more)).toMatchObject({ value: 27 })
    expect(await save(withLib)).toMatchObject({ value: 27, files: expect.not.arrayContaining(['n8.js']) })
    const other = {
      'node_modules/other/index.js': `import * as all from 'big'\nexport const other = () => all['n' + 30]()`,
      'node_modules/other/package.json': '{"name":"other","type":"module"}',
    }
    const withOther = `import { n7 } from 'big'\nimport { other } from 'other'\nexport default () => n7() + other()`
    expect(await save(withOther, other)).toMatchObject({ value: 37 })
  })

  test('an import of a name that the package does not export is reported with its line and the file of the barrel', async () => {
    const { save } = await createStage(kind)
    await save(renderUse(7))
    const { problem } = await save(`import { gone } from 'big'\nexport default () => gone()`)
    expect(problem).toContain(
      'does not build at x.ts:2: No matching export in "node_modules/big/index.js" for import "gone"',
    )
  })

  test('a changed barrel is read again by the next build', async () => {
    const { save } = await createStage(kind)
    await save(renderUse(7))
    await save(renderUse(7))
    const index = `${barrels[kind].toIndex(few).replace(/.*n7\.js'/, '')}\nexport { n8 as n7 } from './again.js'`
    const more = {
      'node_modules/big/index.js': index,
      'node_modules/big/again.js': `export const n8 = () => 'new'`,
    }
    expect(await save(renderUse(7), more)).toMatchObject({ value: 'new' })
    expect(await save(renderUse(7))).toMatchObject({ value: 'new' })
  })

  test('a barrel of a package that may have side effects is built whole', async () => {
    const { save } = await createStage(kind, { sideEffects: undefined })
    await save(renderUse(7))
    expect((await save(renderUse(7))).files).toHaveLength(few + 3)
  })
})

test('a barrel that has a side effect itself is built whole', async () => {
  const { save } = await createStage('stars')
  const index = `${barrels.stars.toIndex(few)}\nglobalThis.hooked = 1`
  await save(renderUse(7), { 'node_modules/big/index.js': index })
  expect((await save(renderUse(7))).files).toHaveLength(few + 3)
})

describe('imports inside a package', () => {
  const manifest = '{"name":"p","type":"module","main":"./index.js"}'

  test.each([
    [
      'a link out of the directory',
      './link.js',
      /"?(link\.js|outside\.js|.*outside\.js)"? (is|.*) outside the transforms directory/,
    ],
    ['a path out of the directory', '../../../../outside.js', /outside the transforms directory/],
    ['a package that is installed elsewhere', 'far', /"far" is not installed next to the transforms/],
    ['an addon', './addon.node', /"addon\.node" is a native addon/],
    ['a URL', 'https://example.com/x.js', /"https:\/\/example\.com\/x\.js" is not a file of the transforms directory/],
    ['a URL behind an alias', '#far', /"#far" is not a file of the transforms directory|Could not resolve "#far"/],
  ])('an import inside a package cannot reach %s', async (_, specifier, why) => {
    const { configDir, root } = await createConfigDir()
    await writeFiles(configDir, {
      'outside.js': 'export default 1',
      'node_modules/far/index.js': '',
      'node_modules/far/package.json': '{"name":"far"}',
    })
    await writeFiles(root, {
      'x.ts': `import 'p'\nexport default () => 1`,
      'node_modules/p/package.json': manifest.replace('}', ',"imports":{"#far":"node:fs"}}'),
      'node_modules/p/index.js': `import ${JSON.stringify(specifier)}`,
      'node_modules/p/addon.node': '',
    })
    await mkdir(join(root, 'node_modules/p'), { recursive: true })
    await symlink(join(configDir, 'outside.js'), join(root, 'node_modules/p/link.js'))
    const [built] = await createBundleCache().build(root, ['x.ts'])
    const problem = built !== undefined && 'problem' in built ? built.problem.message : 'it was built'
    expect(problem).toMatch(why)
  })
})
