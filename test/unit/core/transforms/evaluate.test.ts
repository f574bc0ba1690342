import { describe, expect, test } from 'vitest'
import { loadTransforms } from '../../../inline-transforms.ts'
import { createConfigDir, load, toCall, writeFiles } from './stage.ts'

/** Writes the files, loads the first one and returns its result for `{ n: 1 }`. */
async function callModule(files: Record<string, string | Uint8Array>, name?: string): Promise<unknown> {
  const { root } = await createConfigDir()
  await writeFiles(root, files)
  const transform = await load(root, Object.keys(files)[0] ?? '', name)
  if (transform.problem !== undefined) return transform.problem
  const outcome = await transform.run(toCall({ n: 1 }))
  return outcome.kind === 'returned' ? outcome.value : outcome
}

const answers: [title: string, files: Record<string, string | Uint8Array>][] = [
  [
    'enums, namespaces and parameter properties of TypeScript work',
    {
      'x.ts': `enum Mode { Now = 'now' }
        namespace Words { export const hello = 'hi' }
        class Maker { constructor(readonly text: string) {} }
        export default (input: { payload: { n: number } }) => ({ text: new Maker(Words.hello).text + input.payload.n, mode: Mode.Now })`,
    },
  ],
  ['a .mts module loads', { 'x.mts': `export default (): object => ({ text: 'hi1', mode: 'now' })` }],
  ['a .js module in ESM loads', { 'x.js': `export default () => ({ text: 'hi1', mode: 'now' })` }],
  ['a .js module in CommonJS loads', { 'x.js': `module.exports = () => ({ text: 'hi1', mode: 'now' })` }],
  ['a .mjs module loads', { 'x.mjs': `export default async () => ({ text: 'hi1', mode: 'now' })` }],
  [
    'module.exports = a function is the transform',
    { 'x.cjs': `module.exports = () => ({ text: 'hi1', mode: 'now' })` },
  ],
  [
    'module.exports = { transform } is the transform',
    { 'x.cjs': `exports.transform = () => ({ text: 'hi1', mode: 'now' })` },
  ],
  [
    'CommonJS that was compiled from ESM keeps its default, also below a package.json of type module',
    {
      'x.cjs': `Object.defineProperty(exports, '__esModule', { value: true }); exports.default = () => ({ text: 'hi1', mode: 'now' })`,
      'package.json': '{"type":"module"}',
    },
  ],
  [
    'a JSON import is inlined, with and without its attribute',
    {
      'x.ts': `import words from './words.json' with { type: 'json' }\nimport more from './more.json'\nexport default () => ({ ...words, ...more })`,
      'words.json': '{"text":"hi1"}',
      'more.json': '{"mode":"now"}',
    },
  ],
  [
    'a helper is imported with and without its extension',
    {
      'x.ts': `import { hi } from './lib/hi.ts'\nimport { mode } from './lib/mode'\nexport default () => ({ text: hi(), mode })`,
      'lib/hi.ts': `export const hi = () => 'hi1'`,
      'lib/mode.ts': `export const mode = 'now'`,
    },
  ],
  [
    'a module may await at its top level',
    { 'x.ts': `const text = await Promise.resolve('hi1')\nexport default () => ({ text, mode: 'now' })` },
  ],
  [
    'a helper may await at its top level, and so may one that is imported later',
    {
      'x.ts': `import { text } from './a.ts'\nconst { mode } = await import('./b.mjs')\nexport default () => ({ text, mode })`,
      'a.ts': `export const text = await new Promise<string>((done) => setImmediate(done, 'hi1'))`,
      'b.mjs': `export const mode = await 'now'`,
    },
  ],
  [
    'a byte order mark, a hash-bang and CRLF are accepted',
    { 'x.ts': `\uFEFF#!/usr/bin/env node\r\nexport default () => ({\r\n  text: 'hi1', mode: 'now' })\r\n` },
  ],
  [
    'a JSON file with a byte order mark is read',
    {
      'x.ts': `import words from './w.json'\nexport default () => words`,
      'w.json': '\uFEFF{"text":"hi1","mode":"now"}',
    },
  ],
  [
    'two modules may import each other',
    {
      'x.ts': `import { hi } from './y.ts'\nexport const text = () => 'hi1'\nexport default () => hi()`,
      'y.ts': `import { text } from './x.ts'\nexport const hi = () => ({ text: text(), mode: 'now' })`,
    },
  ],
  [
    'CommonJS and ESM packages in the node_modules of the root are bundled',
    {
      'x.ts': `import { hi } from 'greeter'\nimport mode from '@scope/mode'\nexport default () => ({ text: hi(), mode })`,
      'node_modules/greeter/package.json': '{"name":"greeter","main":"lib/main.js"}',
      'node_modules/greeter/lib/main.js': `const { join } = require('path'); exports.hi = () => join('hi1')`,
      'node_modules/@scope/mode/package.json': '{"name":"@scope/mode","type":"module","exports":{"import":"./m.js"}}',
      'node_modules/@scope/mode/m.js': `export default 'now'`,
    },
  ],
  [
    'the built-in modules of Node can be imported with and without their prefix',
    {
      'x.ts': `import { basename } from 'node:path'\nimport os from 'os'\nimport * as crypto from 'node:crypto'
        export default () => ({ text: basename('/a/hi1'), mode: typeof os.EOL === 'string' && crypto.randomUUID() ? 'now' : '' })`,
    },
  ],
  [
    'a built-in module that exists only with its prefix can be imported',
    {
      'x.ts': `import { describe } from 'node:test'
        export default () => ({ text: typeof describe === 'function' ? 'hi1' : '', mode: 'now' })`,
    },
  ],
  [
    'hookloom is imported with nothing installed',
    {
      'x.ts': `import { defineTransform } from 'hookloom'
        export default defineTransform<{ n: number }>(({ payload }) => ({ text: 'hi' + payload.n, mode: 'now' }))`,
    },
  ],
  [
    'import.meta names the module',
    {
      'x.ts': `import { fileURLToPath } from 'node:url'
        const same = fileURLToPath(import.meta.url) === import.meta.filename && import.meta.filename.endsWith('x.ts')
        export default () => ({ text: same ? 'hi1' : import.meta.url, mode: 'now' })`,
    },
  ],
  [
    'an export with the name `then` does not make the module a promise',
    { 'x.ts': `export const then = () => {}\nexport default () => ({ text: 'hi1', mode: 'now' })` },
  ],
  [
    'a package works without its optional dependency',
    {
      'x.cjs': `let text = 'hi1'; try { text = require('not-there') } catch {}\nmodule.exports = () => ({ text, mode: 'now' })`,
    },
  ],
]

describe('modules of transforms', () => {
  test.each(answers)('modules load as expected: %s', async (_, files) => {
    expect(await callModule(files)).toEqual({ text: 'hi1', mode: 'now' })
  })

  test('modules run in strict mode, as ESM does', async () => {
    expect(await callModule({ 'x.js': `export default () => { undeclared = 1 }` })).toMatchObject({ kind: 'failed' })
  })

  test('a module of 5 MB loads', async () => {
    const text = `${'// filler filler filler filler\n'.repeat(170_000)}export default () => 'big'`
    expect(text.length).toBeGreaterThan(5_000_000)
    expect(await callModule({ 'x.js': text })).toBe('big')
  })
})

describe('the export that a mapping calls', () => {
  const files = {
    'x.ts': `export default () => 'default'\nexport const transform = () => 'transform'\nexport const other = () => 'other'\nexport const word = 'no'`,
  }
  test('the export that the mapping names is called', async () =>
    expect(await callModule(files, 'other')).toBe('other'))
  test('`default` is called if the mapping names no export', async () =>
    expect(await callModule(files)).toBe('default'))
  test('the export `transform` is called if there is no default export', async () => {
    expect(await callModule({ 'x.ts': `export function transform() { return 'transform' }` })).toBe('transform')
  })

  test.each([
    ['x.ts', 'x'],
    ['pull-request.ts', 'pullRequest'],
    ['git/pull_request.v2.mts', 'pullRequestV2'],
  ])(
    'the export with the name of the file is called if there is no default export: %s exports %s',
    async (file, name) => {
      const { root } = await createConfigDir()
      await writeFiles(root, { [file]: `export const helper = () => 'other'\nexport const ${name} = () => 'own'` })
      expect(await (await load(root, file)).run(toCall({}))).toMatchObject({ value: 'own' })
    },
  )

  test('a missing named export is reported with the names of the existing ones', async () => {
    expect(await callModule(files, 'missing')).toMatchObject({
      code: 'transform-load-failed',
      detail:
        'transforms/x.ts must export a function "missing", found nothing. It exports: default, other, transform, word.',
    })
    expect(await callModule(files, 'toString')).toMatchObject({ code: 'transform-load-failed' })
    expect(await callModule(files, 'word')).toMatchObject({ detail: expect.stringContaining('found a string') })
  })

  test('an export that is not a function is reported with the likely mistake', async () => {
    const detail = 'transforms/x.ts must export a function, found an object. Did you forget "export default"?'
    expect(await callModule({ 'x.ts': 'export default { map: 1 }' })).toMatchObject({
      code: 'transform-load-failed',
      detail,
    })
    expect(await callModule({ 'x.ts': 'const one = () => 1' })).toMatchObject({
      detail: expect.stringContaining('found nothing. Did you forget'),
    })
  })

  test('two exports of one module share the state of the module', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'x.ts': `let n = 0\nexport const a = () => ++n\nexport const b = () => ++n` })
    const refs = [
      { module: 'x.ts', export: 'a' },
      { module: 'x.ts', export: 'b' },
    ]
    const loaded = await loadTransforms({ root, refs, timeoutMs: 5000 })
    expect([...loaded.keys()]).toEqual(['x.ts#a', 'x.ts#b'])
    const values: unknown[] = []
    for (const transform of loaded.values()) values.push(await transform.run(toCall({})))
    expect(values).toMatchObject([{ value: 1 }, { value: 2 }])
  })
})

describe('exceptions while a module loads', () => {
  test('an exception at the top level is reported with its source line', async () => {
    const text = `import { boom } from './boom.ts'\n\ninterface Unused { a: string }\n\nexport default () => boom`
    const boom = `type Wide = { a: string }\n\nconst settings: Wide | undefined = JSON.parse('null')\n\nexport const boom: string = settings.a\n`
    expect(await callModule({ 'x.ts': text, 'boom.ts': boom })).toEqual({
      code: 'transform-load-failed',
      detail: 'transforms/x.ts does not load: it threw a TypeError at boom.ts:5.',
      frame: [
        "TypeError: Cannot read properties of null (reading 'a')",
        '  at boom.ts:5:38',
        '  4 | ',
        '> 5 | export const boom: string = settings.a',
        '    |                                      ^',
        '  6 | ',
      ].join('\n'),
    })
  })

  test('a syntax error that only the engine finds is reported with its line', async () => {
    const text = `type A = string\nconst a: A = 'a'\nexport default () => [a, /(/]`
    expect(await callModule({ 'x.ts': text })).toMatchObject({
      code: 'transform-load-failed',
      detail: 'transforms/x.ts does not load: it threw a SyntaxError at x.ts:3.',
      frame: expect.stringContaining('> 3 | export default () => [a, /(/]'),
    })
  })

  test('a module whose export or exception is a hostile proxy is reported as not loaded', async () => {
    const trap = `const { proxy, revoke } = Proxy.revocable({}, {})\nrevoke()\nexport default proxy`
    expect(await callModule({ 'x.ts': trap })).toMatchObject({ code: 'transform-load-failed' })
    expect(
      await callModule({ 'x.ts': `throw new Proxy(new Error(), { getPrototypeOf() { throw 1 } })` }),
    ).toMatchObject({
      detail: 'transforms/x.ts does not load: it threw a proxy.',
    })
  })

  test('an exception after a top-level await is reported', async () => {
    expect(await callModule({ 'x.ts': `await 1\nthrow new RangeError('late')\nexport default () => 1` })).toMatchObject(
      {
        detail: 'transforms/x.ts does not load: it threw a RangeError at x.ts:2.',
      },
    )
  })

  test('a module whose top level never ends fails at the time limit', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'x.ts': `await new Promise(() => {})\nexport default () => 1` })
    const { problem } = await load(root, 'x.ts', undefined, 20)
    expect(problem).toMatchObject({ detail: 'transforms/x.ts was not loaded within 20 ms.' })
  })

  test('a module that throws does not keep another module from loading, and fails each of its own deliveries', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'bad.ts': `throw 'no'`, 'good.ts': `export default () => 'fine'` })
    const refs = [{ module: 'bad.ts' }, { module: 'good.ts' }, { module: 'gone.ts' }]
    const loaded = await loadTransforms({ root, refs, timeoutMs: 5000 })
    const runs = await Promise.all([...loaded.values()].map((transform) => transform.run(toCall({}))))
    expect(runs).toMatchObject([
      { kind: 'failed', problem: { code: 'transform-load-failed' } },
      { kind: 'returned', value: 'fine' },
      { kind: 'failed', problem: { code: 'transform-missing', detail: 'transforms/gone.ts does not exist.' } },
    ])
    expect([...loaded.values()].map(({ hash }) => hash?.length)).toEqual([undefined, 64, undefined])
  })
})
