import { chmod, mkdir, readdir, rm, stat, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildModule } from '../../../../src/core/transforms/modules/build.ts'
import { evaluateBundle, pickExport } from '../../../../src/core/transforms/modules/evaluate.ts'
import { createConfigDir, writeFiles } from './stage.ts'

/** Builds x.ts with these files, and returns the problem. */
async function readBuildProblem(files: Record<string, string>, around: Record<string, string> = {}) {
  const { configDir, root } = await createConfigDir()
  await writeFiles(root, files)
  await writeFiles(configDir, around)
  const built = await buildModule({ root, file: join(root, 'x.ts') }).catch((error: unknown) => error)
  expect(built).toMatchObject({ code: 'transform-build-failed' })
  const { message, frame } = built as { message: string; frame: string } // as: checked one line above
  expect(`${message}${frame}`).not.toContain(configDir)
  return { message, frame }
}

describe('build failures', () => {
  test('a build failure shows file, line and code frame, with paths relative to the transforms directory', async () => {
    const { message, frame } = await readBuildProblem({
      'x.ts': `import './lib/y.ts'`,
      'lib/y.ts': 'const a = 1\nconst = 2\n',
    })
    expect(message).toBe('transforms/x.ts does not build at lib/y.ts:2: Expected identifier but found "=".')
    expect(frame).toContain('lib/y.ts:2:6:')
    expect(frame).toContain('const = 2')
  })

  test('an import that the package of the gateway does not have shows the code of the author only', async () => {
    const named = await readBuildProblem({
      'x.ts': `import { defineTransfrom } from 'hookloom'\nexport default defineTransfrom`,
    })
    expect(named.message).toBe(
      'transforms/x.ts does not build at x.ts:1: No matching export in "hookloom" for import "defineTransfrom".',
    )
    expect(named.frame).toContain(`import { defineTransfrom } from 'hookloom'`)
    expect(named.frame).toContain('Did you mean to import "defineTransform" instead?')
    const byDefault = await readBuildProblem({ 'x.ts': `import hookloom from 'hookloom'\nexport default hookloom` })
    expect(byDefault.message).toContain(
      'Import its functions by their names: import { defineTransform } from "hookloom".',
    )
    const builtIn = await readBuildProblem({
      'x.ts': `export * as own from 'hookloom'\nimport { x } from 'hookloom/define'\nexport default x`,
    })
    for (const { message, frame } of [named, byDefault, builtIn])
      expect(message + frame).not.toMatch(/provided|globalThis/)
  })

  test('the error for a missing file shows its import', async () => {
    const { message, frame } = await readBuildProblem({ 'x.ts': `\nimport './gone.ts'` })
    expect(message).toBe('transforms/x.ts does not build at x.ts:2: Could not resolve "./gone.ts".')
    expect(frame).toContain(`import './gone.ts'`)
  })

  test.each([
    ['ms', 'ms'],
    ['@scope/name/deep.js', '@scope/name'],
  ])(
    'if the package of the import %s is missing, the error names the command that installs the package, and the folder',
    async (specifier, name) => {
      const { message } = await readBuildProblem({ 'x.ts': `import '${specifier}'` })
      expect(message).toBe(
        `transforms/x.ts does not build at x.ts:1: Could not resolve "${specifier}". Run "npm install ${name}" in hooks/transforms.`,
      )
    },
  )

  test.each([
    ['@app/money', '@app/*'],
    ['lib/money', 'lib/*'],
    ['money', 'money'],
  ])(
    'the error for the import %s names the alias of the tsconfig, and never a package to install',
    async (specifier, alias) => {
      const { message } = await readBuildProblem(
        { 'x.ts': `import '${specifier}'` },
        {
          'hooks/tsconfig.json': '{ "extends": "./base.json" }',
          'hooks/base.json': `{ /* a comment */ "compilerOptions": { "paths": { "${alias}": ["./transforms/lib/*"], } } }`,
        },
      )
      expect(message).toContain(`"${alias}" is an alias of hooks/tsconfig.json, and the gateway does not read`)
      expect(message).not.toContain('npm install')
    },
  )

  test('the imports of a package.json next to a module are the aliases that the gateway reads', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, {
      'x.ts': `export { default } from '#lib/y.ts'`,
      'lib/y.ts': `export default () => 'aliased'`,
      'package.json': '{"imports":{"#lib/*":"./lib/*"}}',
    })
    expect((await buildModule({ root, file: join(root, 'x.ts') })).code).toContain('aliased')
  })

  test('a module that was deleted before the build is reported as missing', async () => {
    const { root } = await createConfigDir()
    await expect(buildModule({ root, file: join(root, 'x.ts') })).rejects.toMatchObject({
      code: 'transform-missing',
      message: 'transforms/x.ts does not exist.',
    })
  })
})

describe('an import', () => {
  const secret = { 'secret.js': `export default 'secret'`, 'hooks/transforms-evil/x.js': '', 'hooks/y.json': '{}' }
  test.each(['../../secret.js', '../transforms-evil/x.js', '../y.json', '/etc/passwd', './out/secret.js', './out.js'])(
    'an import cannot reach %s outside the transforms directory',
    async (path) => {
      const { configDir, root } = await createConfigDir()
      await chmod(configDir, 0o777)
      await writeFiles(configDir, secret)
      await symlink(configDir, join(root, 'out'))
      await symlink(join(configDir, 'secret.js'), join(root, 'out.js'))
      for (const text of [
        `import '${path}'`,
        `require('${path}')`,
        `export * from '${path}'`,
        `void import('${path}')`,
      ]) {
        await writeFiles(root, { 'x.ts': `\n${text}` })
        await expect(buildModule({ root, file: join(root, 'x.ts') })).rejects.toMatchObject({
          code: 'transform-build-failed',
          message: path.startsWith('./')
            ? expect.stringMatching(
                /^transforms\/x\.ts does not build.*: transforms\/out.* is a link to .*, which is not followed: /,
              )
            : `transforms/x.ts does not build at x.ts:2: "${path}" is outside the transforms directory.`,
        })
      }
    },
  )

  test('an import cannot reach a package outside the transforms directory, neither by a symlink nor by the config of a parent directory', async () => {
    const around = { 'node_modules/far/index.js': '', 'node_modules/far/package.json': '{"name":"far"}' }
    const { message } = await readBuildProblem({ 'x.ts': `import 'far'` }, around)
    expect(message).toBe(
      'transforms/x.ts does not build at x.ts:1: "far" is not installed next to the transforms: only packages in their own node_modules are bundled. Run "npm install far" in hooks/transforms.',
    )
    const tsconfig = { ...around, 'tsconfig.json': '{"compilerOptions":{"paths":{"near":["./node_modules/far"]}}}' }
    expect((await readBuildProblem({ 'x.ts': `import 'near'` }, tsconfig)).message).toContain(
      'Could not resolve "near". "near" is an alias of tsconfig.json, and the gateway does not read the paths',
    )
    const imports = { ...around, 'package.json': '{"imports":{"#far":"./far.js"}}', 'far.js': '' }
    expect((await readBuildProblem({ 'x.ts': `import '#far'` }, imports)).message).toContain('"#far" is not installed')

    const { configDir, root } = await createConfigDir()
    await writeFiles(configDir, around)
    await mkdir(join(root, 'node_modules'))
    await symlink(join(configDir, 'node_modules/far'), join(root, 'node_modules/far'))
    await writeFiles(root, { 'x.ts': `import 'far'` })
    await expect(buildModule({ root, file: join(root, 'x.ts') })).rejects.toThrow('"far" is not installed')
  })

  test.each(['https://example.com/x.js', 'data:text/javascript,0'])('an import of %s fails', async (path) => {
    const { message } = await readBuildProblem({ 'x.ts': `import '${path}'` })
    expect(message).toContain(`"${path}" is not a file of the transforms directory`)
  })

  test('an import of a native addon or a style sheet fails', async () => {
    expect((await readBuildProblem({ 'x.ts': `import './a.node'`, 'a.node': 'x' })).message).toContain(
      '"./a.node" is a native addon, which a transform cannot load',
    )
    expect((await readBuildProblem({ 'x.ts': `import './a.css'`, 'a.css': '' })).message).toContain(
      '".css" cannot be imported',
    )
  })
})

describe('bundles', () => {
  test('a bundle lists every file that the build read, with its state at that time', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, {
      'x.ts': `import './a.mjs'\nimport w from './w.json'\nimport type { T } from './types.ts'\nimport { defineTransform } from 'hookloom'\nexport default [w, defineTransform]`,
      'a.mjs': 'import "node:fs"; globalThis.a = 1',
      'w.json': '{}',
      'types.ts': 'export type T = string',
      'unused.ts': '',
    })
    const { inputs } = await buildModule({ root, file: join(root, 'x.ts') })
    expect(inputs.map(({ file }) => basename(file)).toSorted()).toEqual(['a.mjs', 'w.json', 'x.ts'])
    for (const { file, mtimeNs, size } of inputs) {
      expect(await stat(file, { bigint: true })).toMatchObject({ mtimeNs, size })
    }
  })

  test('bundles of the same code have the same hash in any directory, and other code has another hash', async () => {
    const hashes: string[] = []
    for (const n of [1, 1, 2]) {
      const { root } = await createConfigDir()
      await writeFiles(root, { 'x.ts': `export default () => ${n}` })
      hashes.push((await buildModule({ root, file: join(root, 'x.ts') })).hash)
    }
    expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(hashes[1]).toBe(hashes[0])
    expect(hashes[2]).not.toBe(hashes[0])
  })

  test('a bundle works after its files are deleted, and the build writes no files', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'x.ts': `import a from './a.ts'\nexport default () => a`, 'a.ts': `export default 'a'` })
    const bundle = await buildModule({ root, file: join(root, 'x.ts') })
    const { code } = bundle
    expect((await readdir(root)).toSorted()).toEqual(['a.ts', 'x.ts'])
    await rm(root, { recursive: true })
    expect(await pickExport(await evaluateBundle(bundle, 5_000), undefined)({}, {})).toBe('a')
    expect(code).not.toMatch(/^(import|export)\b/m)
    expect(code).not.toContain(root)
  })
})
