import { execFileSync } from 'node:child_process'
import { chmod, mkdir, symlink, truncate } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildModule } from '../../../../src/core/transforms/modules/build.ts'
import { createConfigDir, load, toCall, writeFiles } from './stage.ts'

/** A pipe without a writer: opening it blocks without end. */
async function makePipe(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  execFileSync('mkfifo', [path])
}

describe('source map comments', () => {
  const comments = [
    '//# sourceMappingURL=map.json',
    '//@ sourceMappingURL=./map.json',
    '/*# sourceMappingURL=map.json */',
  ]

  test.each(comments)(
    'the comment %s is not followed: a pipe with that name does not stop the build',
    async (comment) => {
      const { root } = await createConfigDir()
      await writeFiles(root, { 'x.ts': `import './lib/y.js'\nexport default () => ({ a: 1 })\n${comment}` })
      await writeFiles(root, { 'lib/y.js': `globalThis.y = 1\n${comment}\n` })
      await makePipe(join(root, 'map.json'))
      await makePipe(join(root, 'lib/map.json'))
      const { code } = await buildModule({ root, file: join(root, 'x.ts') })
      expect(code).toContain('globalThis.y = 1')
    },
  )

  test('a source map comment brings no outside file into the bundle or its source map', async () => {
    const { configDir, root } = await createConfigDir()
    const outside = join(configDir, 'secret.map')
    const map = { version: 3, sources: ['s.ts'], sourcesContent: ['the secret'], mappings: 'AAAA', names: [] }
    await writeFiles(configDir, { 'secret.map': JSON.stringify(map), 'secret.ts': 'the secret' })
    const inline = Buffer.from(JSON.stringify({ ...map, sources: ['../../secret.ts'], sourcesContent: undefined }))
    for (const url of [
      '../../secret.map',
      `file://${outside}`,
      `data:application/json;base64,${inline.toString('base64')}`,
    ]) {
      await writeFiles(root, { 'x.ts': `export default () => 1\n//# sourceMappingURL=${url}\n` })
      const bundle = await buildModule({ root, file: join(root, 'x.ts') })
      expect(bundle.code + bundle.map).not.toContain('the secret')
      expect(bundle.map).toContain('export default () => 1')
    }
  })

  test('a source map comment inside a text of the program does not change', async () => {
    const { root } = await createConfigDir()
    const text = '//# sourceMappingURL=map.json'
    await writeFiles(root, { 'x.ts': `export default () => ({ message: '${text}' })` })
    expect(await (await load(root, 'x.ts')).run(toCall({}))).toMatchObject({ value: { message: text } })
  })

  test('a source map comment in a file of data does not change the data', async () => {
    const { root } = await createConfigDir()
    const text = 'a\n//# sourceMappingURL=map.json'
    await writeFiles(root, {
      'x.ts': `import text from './x.txt'\nimport data from './x.json'\nexport default () => [text, data]`,
      'x.txt': text,
      'x.json': JSON.stringify(text),
    })
    expect(await (await load(root, 'x.ts')).run(toCall({}))).toMatchObject({ value: [text, text] })
  })
})

describe('regular files in a build', () => {
  test.each(['package.json', 'lib/package.json', 'node_modules/p/package.json', 'node_modules/p/deep/package.json'])(
    'a pipe at %s is reported, and does not stop the build',
    async (path) => {
      const { root } = await createConfigDir()
      await writeFiles(root, {
        'x.ts': `import './lib/y.ts'\nimport 'p/deep/z.js'`,
        'lib/y.ts': '',
        'node_modules/p/deep/z.js': '',
      })
      await makePipe(join(root, path))
      await expect(buildModule({ root, file: join(root, 'x.ts') })).rejects.toMatchObject({
        code: 'transform-build-failed',
        message: expect.stringContaining(`transforms/${path} is not a regular file`),
      })
    },
  )

  test('a build fails if a package.json is a device, or a link to a file that others can replace', async () => {
    for (const [target, why] of [
      ['/dev/zero', 'is not a regular file'],
      ['../../package.json', 'is a link to'],
    ] as const) {
      const { configDir, root } = await createConfigDir()
      await chmod(configDir, 0o777)
      await writeFiles(configDir, { 'package.json': '{}' })
      await writeFiles(root, { 'x.ts': '' })
      await symlink(target, join(root, 'package.json'))
      await expect(buildModule({ root, file: join(root, 'x.ts') })).rejects.toThrow(`transforms/package.json ${why}`)
    }
  })

  test('the error for a pipe, a folder or a huge file names the import', async () => {
    const { root } = await createConfigDir()
    await makePipe(join(root, 'pipe.json'))
    await mkdir(join(root, 'folder.json'))
    await writeFiles(root, { 'huge.json': '' })
    await truncate(join(root, 'huge.json'), 64_000_000)
    for (const [name, why] of [
      ['pipe.json', 'transforms/pipe.json is not a regular file'],
      ['folder.json', 'folder.json'],
      ['huge.json', 'transforms/huge.json has 64000000 bytes; the limit is 32000000'],
    ] as const) {
      await writeFiles(root, { 'x.ts': `import './${name}'` })
      await expect(buildModule({ root, file: join(root, 'x.ts') })).rejects.toThrow(why)
    }
  })

  test('no tsconfig.json is read, not even one that is a pipe', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, {
      'x.ts': `import './lib/y.ts'`,
      'lib/y.ts': '',
      'tsconfig.json': '{"extends":"./pipe.json"}',
    })
    await makePipe(join(root, 'pipe.json'))
    await makePipe(join(root, 'lib/tsconfig.json'))
    const { inputs } = await buildModule({ root, file: join(root, 'x.ts') })
    expect(inputs.map(({ file }) => basename(file)).toSorted()).toEqual(['x.ts', 'y.ts'])
  })
})

describe('builds that do not end', () => {
  /** Only esbuild knows the file to which a package resolves, and it then reads the package.json in that folder. */
  async function makeEndless() {
    const { root } = await createConfigDir()
    await writeFiles(root, {
      'x.ts': `import 'p'`,
      'good.ts': 'export default () => 1',
      'node_modules/p/package.json': '{"exports":"./hidden/z.js"}',
      'node_modules/p/hidden/z.js': '',
    })
    await makePipe(join(root, 'node_modules/p/hidden/package.json'))
    return root
  }

  test('a build fails at its time limit, and the next build works', async () => {
    const root = await makeEndless()
    await expect(buildModule({ root, file: join(root, 'x.ts') }, { limitMs: 300 })).rejects.toMatchObject({
      code: 'transform-build-failed',
      message: expect.stringContaining('transforms/x.ts was not built within 300 ms.'),
    })
    await buildModule({ root, file: join(root, 'good.ts') })
  })

  test('a build that reaches its time limit does not stop another build', async () => {
    const root = await makeEndless()
    const endless = buildModule({ root, file: join(root, 'x.ts') }, { limitMs: 300 })
    const beside = Array.from({ length: 50 }, () => buildModule({ root, file: join(root, 'good.ts') }))
    await expect(endless).rejects.toThrow('within 300 ms')
    expect(await Promise.all(beside)).toHaveLength(50)
  })
})

describe('builds after the end of the esbuild process', () => {
  /** Ends the children of this process that run esbuild, as a kernel that is out of memory does. */
  function killEsbuild(): number {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n')
    const children = lines
      .map((line) => line.trim().split(/\s+/))
      .filter(([, parent, ...args]) => parent === String(process.pid) && args.join(' ').includes('esbuild'))
    for (const [pid] of children) process.kill(Number(pid), 'SIGKILL')
    return children.length
  }

  test('after esbuild was killed, builds work, even several at the same moment', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'good.ts': 'export default () => 1' })
    const build = () => buildModule({ root, file: join(root, 'good.ts') })
    await build()
    for (const count of [1, 20]) {
      expect(killEsbuild()).toBe(1)
      expect(await Promise.all(Array.from({ length: count }, build))).toHaveLength(count)
    }
  })

  test('builds during which esbuild is killed are repeated', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'good.ts': 'export default () => 1' })
    const build = () => buildModule({ root, file: join(root, 'good.ts') })
    await build()
    const builds = Array.from({ length: 20 }, build)
    expect(killEsbuild()).toBe(1)
    expect(await Promise.all(builds)).toHaveLength(20)
  })
})
