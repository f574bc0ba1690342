import { execFileSync } from 'node:child_process'
import { chmod, chown, lchown, link, mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readInside } from '../../../../src/core/transforms/read.ts'
import { resolveModule, resolveTransformsRoot } from '../../../../src/core/transforms/root.ts'
import { loadTransforms } from '../../../inline-transforms.ts'
import { createConfigDir, load, toCall, writeFiles } from './stage.ts'

const outsider = `globalThis.leaked = true\nexport default () => 'leaked'`

async function createFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'hookloom-link-')))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

describe('the transforms directory', () => {
  test('the transforms directory is hooks/transforms of the config directory, or a directory in it', async () => {
    const { configDir, root } = await createConfigDir()
    await mkdir(join(root, 'team'))
    expect(await resolveTransformsRoot(configDir, {})).toBe(root)
    for (const transformsDir of ['.', root, `${root}/`, 'hooks/transforms', './hooks/transforms/']) {
      expect(await resolveTransformsRoot(configDir, { transformsDir })).toBe(root)
    }
    for (const transformsDir of ['team', './team/', join(root, 'team'), 'team/../team', 'hooks/transforms/team']) {
      expect(await resolveTransformsRoot(configDir, { transformsDir })).toBe(join(root, 'team'))
    }
  })

  test('a missing transforms directory is not an error, and its modules are reported as missing', async () => {
    const { configDir, root } = await createConfigDir()
    await rm(join(configDir, 'hooks'), { recursive: true })
    expect(await resolveTransformsRoot(configDir, {})).toBe(root)
    expect((await load(root, 'x.ts')).problem).toMatchObject({ code: 'transform-missing' })
  })

  test.each(['..', '../transforms-evil', '/etc', '/', '~/x', '~', 'a\0b', '..\\x', 'team/../..'])(
    'the transforms directory %j is refused, and the error names the key',
    async (transformsDir) => {
      const { configDir, root } = await createConfigDir()
      await mkdir(`${root}-evil`)
      await expect(resolveTransformsRoot(configDir, { transformsDir })).rejects.toMatchObject({
        code: 'config-invalid',
        message: expect.stringMatching(/^hooks\.transformsDir must stay inside hooks\/transforms/),
      })
    },
  )

  test('a transforms directory behind a symlink is refused if the link leads to a folder that others can write, and accepted if it stays inside', async () => {
    const { configDir, root } = await createConfigDir()
    const open = await createFolder()
    await chmod(open, 0o777)
    await mkdir(join(open, 'elsewhere'))
    await mkdir(join(root, 'real'))
    await symlink(join(open, 'elsewhere'), join(root, 'out'))
    await symlink(join(root, 'real'), join(root, 'in'))
    await expect(resolveTransformsRoot(configDir, { transformsDir: 'out' })).rejects.toMatchObject({
      code: 'config-invalid',
    })
    await expect(resolveTransformsRoot(configDir, { transformsDir: 'out/new' })).rejects.toMatchObject({
      code: 'config-invalid',
    })
    expect(await resolveTransformsRoot(configDir, { transformsDir: 'in' })).toBe(join(root, 'real'))
    await rename(root, join(open, 'moved'))
    await symlink(join(open, 'moved'), root)
    await expect(resolveTransformsRoot(configDir, {})).rejects.toMatchObject({
      code: 'config-invalid',
      message: `hooks/transforms is a link to ${open}/moved, which is not followed: others can write ${open} (mode 0777; "chmod go-w" ends that). Everything on the way must belong to root, and only the owner may write it.`,
    })
  })

  test('a transforms directory that is a link of the owner of the config directory is followed', async () => {
    const { configDir, root } = await createConfigDir()
    const dotfiles = await createFolder()
    await writeFiles(dotfiles, { 'transforms/x.ts': `export default () => 'stowed'`, 'transforms/team/y.ts': '' })
    await rm(root, { recursive: true })
    await symlink(join(dotfiles, 'transforms'), root)
    const real = join(dotfiles, 'transforms')
    expect(await resolveTransformsRoot(configDir, {})).toBe(real)
    expect(await resolveTransformsRoot(configDir, { transformsDir: 'team' })).toBe(join(real, 'team'))
    expect(await (await load(real, 'x.ts')).run(toCall({}))).toMatchObject({ value: 'stowed' })
  })

  test('a config directory that is a symlink is accepted', async () => {
    const { configDir, root } = await createConfigDir()
    const other = await createFolder()
    await symlink(configDir, join(other, 'config'))
    expect(await resolveTransformsRoot(join(other, 'config'), {})).toBe(root)
  })
})

describe('module paths', () => {
  test('a module path is relative to the transforms directory and has an extension', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'a/x.ts': '', 'y.mjs': '' })
    expect(await resolveModule(root, 'a/x.ts')).toBe(join(root, 'a/x.ts'))
    expect(await resolveModule(root, './y.mjs')).toBe(join(root, 'y.mjs'))
  })

  const paths = [
    '../x.js',
    '/etc/x.js',
    'a/../../x.js',
    'a/../x.js',
    '..\\x.js',
    'a\\..\\x.js',
    'C:\\x.js',
    '%2e%2e/x.js',
    '~/x.js',
    'file:///tmp/x.js',
    'node:fs',
    'data:text/javascript,0',
    'https://example.com/x.js',
    'x.js\0.ts',
    '',
    ' ',
    '.',
    '..',
    'sub',
    'sub.ts',
    'x',
    'x.txt',
    'x.json',
    'x.node',
  ]
  test.each(paths)('the module path %j is refused, and the error names the key', async (module) => {
    const { root } = await createConfigDir()
    await writeFiles(root, {
      'sub/index.ts': outsider,
      'sub.ts/index.ts': outsider,
      'x.txt': outsider,
      'x.ts': outsider,
    })
    await writeFiles(root, { '../x.js': outsider, 'x.json': '{}', 'x.node': '' })
    await expect(loadTransforms({ root, refs: [{ module }], timeoutMs: 1000 })).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining('hooks.mappings[].transform.module'),
    })
    expect(globalThis).not.toHaveProperty('leaked')
  })

  test('a module path without an extension is refused with the list of extensions', async () => {
    const { root } = await createConfigDir()
    await expect(resolveModule(root, 'x')).rejects.toThrow('must end in one of .ts .mts .js .mjs .cjs.')
  })

  test('a module path without a file is reported as missing, not as invalid', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'file.ts': '' })
    for (const module of ['x.ts', 'no/such/x.ts', 'file.ts/x.ts']) {
      await expect(resolveModule(root, module)).rejects.toMatchObject({
        code: 'transform-missing',
        message: `transforms/${module} does not exist.`,
      })
    }
  })

  test('a module path that is a symlink is judged by its target', async () => {
    const { configDir, root } = await createConfigDir()
    await chmod(configDir, 0o777)
    await writeFiles(root, { 'inside.ts': `export default () => 'inside'` })
    await writeFiles(configDir, { 'outside.ts': outsider, 'hooks/transforms-evil/x.ts': outsider })
    await symlink('inside.ts', join(root, 'in.ts'))
    await symlink(join(configDir, 'outside.ts'), join(root, 'out.ts'))
    await symlink('../transforms-evil', join(root, 'evil'))
    await symlink('nowhere.ts', join(root, 'dangling.ts'))
    expect(await (await load(root, 'in.ts')).run(toCall({}))).toMatchObject({ value: 'inside' })
    for (const module of ['out.ts', 'evil/x.ts']) {
      await expect(load(root, module)).rejects.toMatchObject({ code: 'config-invalid' })
    }
    expect((await load(root, 'dangling.ts')).problem).toMatchObject({ code: 'transform-missing' })
    expect(globalThis).not.toHaveProperty('leaked')
  })

  test('a module that is a link of the owner is followed, and its imports are those of the folder with the links', async () => {
    const { root } = await createConfigDir()
    const store = await createFolder()
    // like Nix: each file in a folder with another name, below a folder with the sticky bit
    await chmod(store, 0o1775)
    await writeFiles(store, {
      'a/x.ts': `import { word } from './lib/word.js'\nexport default () => word`,
      'b/word.ts': `export { word } from '../deep.ts'`,
      'c/deep.ts': `export const word = 'linked'`,
    })
    await mkdir(join(root, 'lib'))
    await symlink(join(store, 'a/x.ts'), join(root, 'step.ts'))
    await symlink('step.ts', join(root, 'x.ts'))
    await symlink(join(store, 'b/word.ts'), join(root, 'lib/word.ts'))
    await symlink(join(store, 'c/deep.ts'), join(root, 'deep.ts'))
    expect(await (await load(root, 'x.ts')).run(toCall({}))).toMatchObject({ value: 'linked' })
  })

  test.skipIf(process.getuid?.() !== 0)(
    'a link to a file of somebody else, and a link that somebody else made, are refused',
    async () => {
      const { root } = await createConfigDir()
      const other = await createFolder()
      await writeFiles(other, { 'x.ts': outsider, 'own.ts': outsider, 'mine.ts': outsider })
      await chown(join(other, 'x.ts'), 1234, 1234)
      await symlink(join(other, 'own.ts'), join(other, 'theirs.ts'))
      await lchown(join(other, 'theirs.ts'), 1234, 1234)
      await chmod(join(other, 'mine.ts'), 0o664)
      await symlink(join(other, 'x.ts'), join(root, 'x.ts'))
      await symlink(join(other, 'theirs.ts'), join(root, 'y.ts'))
      await symlink(join(other, 'mine.ts'), join(root, 'z.ts'))
      const label = (name: string) => `hooks.mappings[].transform.module "${name}": transforms/${name}`
      for (const [name, target, why] of [
        ['x.ts', 'x.ts', `${join(other, 'x.ts')} belongs to user 1234`],
        ['y.ts', 'own.ts', `${join(other, 'theirs.ts')} belongs to user 1234`],
        ['z.ts', 'mine.ts', `others can write ${join(other, 'mine.ts')} (mode 0664; "chmod go-w" ends that)`],
      ] as const) {
        await expect(load(root, name)).rejects.toThrow(
          `${label(name)} is a link to ${join(other, target)}, which is not followed: ${why}.`,
        )
      }
      await chmod(join(other, 'mine.ts'), 0o644)
      await chmod(other, 0o757)
      await expect(load(root, 'z.ts')).rejects.toThrow(`others can write ${other} (mode 0757`)
      expect(globalThis).not.toHaveProperty('leaked')
    },
  )

  test('the problem of a module whose path cannot be resolved shows the error of the system', async () => {
    const { root } = await createConfigDir()
    await symlink('x.ts', join(root, 'x.ts'))
    expect((await load(root, 'x.ts')).problem).toMatchObject({
      code: 'transform-load-failed',
      detail: 'transforms/x.ts could not be loaded.',
      frame: expect.stringContaining('ELOOP'),
    })
  })

  test.each([
    ['x.cjs', 'module.exports = () => require(FILE)()'],
    ['x.cjs', 'const load = require; module.exports = () => load(FILE)()'],
    ['x.cjs', 'module.exports = () => module.require(FILE)()'],
    ['x.cjs', 'module.exports = async () => (await import(FILE)).default()'],
    ['x.ts', 'export default () => require(FILE)()'],
    ['x.mjs', 'export default () => module.require(FILE)()'],
    ['x.mjs', 'export default () => module.constructor.createRequire(FILE)(FILE)()'],
    ['x.mjs', 'export default async () => (await jitiImport(FILE)).default()'],
    ['x.mjs', 'export default async () => (await import(FILE)).default()'],
  ])('a module cannot load an outside file by a computed name: %s, %s', async (name, text) => {
    const { configDir, root } = await createConfigDir()
    await writeFiles(configDir, { 'outside.cjs': `globalThis.leaked = true; module.exports = () => 'leaked'` })
    const file = `[${JSON.stringify(configDir)}, 'outside.cjs'].join('/')`
    await writeFiles(root, { [name]: text.replaceAll('FILE', file) })
    expect(await (await load(root, name)).run(toCall({}))).toMatchObject({ problem: { code: 'transform-failed' } })
    expect(globalThis).not.toHaveProperty('leaked')
  })

  // a hard link looks like any file, and a person who can create one in the root can copy the file too
  test('a module may be a hard link to an outside file', async () => {
    const { configDir, root } = await createConfigDir()
    await writeFiles(configDir, { 'outside.ts': `export default () => 'linked'` })
    await link(join(configDir, 'outside.ts'), join(root, 'x.ts'))
    expect(await (await load(root, 'x.ts')).run(toCall({}))).toMatchObject({ value: 'linked' })
  })
})

describe('files that are replaced by symlinks during a check', () => {
  test('a module that is replaced by a symlink between check and read is not read', async () => {
    const { configDir, root } = await createConfigDir()
    await writeFiles(configDir, { 'outside/x.ts': 'secret' })
    await writeFiles(root, { 'real/x.ts': 'harmless' })
    await chmod(configDir, 0o777)
    const real = join(root, 'real')
    // the symlink replaces the directory, so that a checked path leads elsewhere when it is opened
    const turn = async () => {
      await rename(real, `${real}.away`)
      await symlink(join(configDir, 'outside'), real)
      await new Promise(setImmediate)
      await rm(real)
      await rename(`${real}.away`, real)
      await new Promise(setImmediate)
    }
    const seen = new Set<string>()
    const over = new AbortController()
    const swaps = (async () => {
      while (!over.signal.aborted) await turn()
    })()
    const reads = (async () => {
      for (let round = 0; round < 30_000; round++) {
        const read = await readInside(root, join(real, 'x.ts')).catch((error: unknown) => String(error))
        seen.add(typeof read === 'string' ? read : Buffer.from(read.contents).toString())
      }
      over.abort()
    })()
    await Promise.all([swaps, reads])
    expect([...seen].some((text) => text.includes('secret'))).toBe(false)
    expect(seen).toContain('harmless')
    expect([...seen].some((text) => /^Error: is (outside the transforms directory$|a link to)/.test(text))).toBe(true)
  })

  test('a file behind a symlink to a parent directory that others can write is refused, and so is the root itself', async () => {
    const { configDir, root } = await createConfigDir()
    await chmod(configDir, 0o777)
    await writeFile(join(configDir, 'x.ts'), 'secret')
    await symlink(configDir, join(root, 'up'))
    await expect(readInside(root, join(root, 'up/x.ts'))).rejects.toThrow(`others can write ${configDir}`)
    await expect(readInside(root, root)).rejects.toThrow('outside')
  })

  test('a module that is replaced by a directory or a pipe is refused, without waiting for a writer', async () => {
    const { root } = await createConfigDir()
    await mkdir(join(root, 'folder.ts'))
    execFileSync('mkfifo', [join(root, 'pipe.ts')])
    for (const name of ['folder.ts', 'pipe.ts']) {
      await expect(readInside(root, join(root, name))).rejects.toThrow('is not a regular file')
    }
  })
})
