// The type errors of transforms in `hookloom check --types` and `hookloom test`.
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { toTypesFinding } from '../../src/cli/checks/types.ts'
import { createEditorConfig } from '../../src/cli/scaffold/folder.ts'
import { runCommand } from './command.ts'
import { makeConfigDir } from './gateway.ts'

// a compiler starts in each test
vi.setConfig({ testTimeout: 120_000 })

const build = (field: string) => `import { defineTransform } from 'hookloom'

type Build = { project: string; branch: string }

export default defineTransform<Build>(({ payload }, { state, log }) => {
  void state.get<number>(payload.project)
  log('checked')
  return { message: payload.${field} }
})
`
const config = { hooks: { mappings: [{ match: { path: 'build' }, transform: { module: 'build.ts' } }] } }
const makeDir = (field: string) => makeConfigDir({ config, files: { 'hooks/transforms/build.ts': build(field) } })

/** Installs the TypeScript of this package in a config directory. */
function installTypeScript(dir: string): void {
  mkdirSync(join(dir, 'node_modules'))
  symlinkSync(join(import.meta.dirname, '../../node_modules/typescript'), join(dir, 'node_modules/typescript'))
}

test('hookloom check --types names file, line and column of a type error and exits 70, and exits 0 for code without one', async () => {
  const dir = makeDir('brunch')
  await createEditorConfig(dir)
  const wrong = await runCommand(['check', '--types'], { dir })
  const error = "hooks/transforms/build.ts:8:29 TS2551 Property 'brunch' does not exist on type 'Build'."
  expect(wrong.stdout + wrong.stderr).toContain(`types: ${error}`)
  expect(wrong.code).toBe(70)
  expect((await runCommand(['check'], { dir })).code).toBe(0)
  // the check also works in a directory without hooks/tsconfig.json
  const right = await runCommand(['check', '--types'], { dir: makeDir('branch') })
  expect(right.stdout).toContain('types: no type error in 1 module')
  expect(right.code).toBe(0)
})

test('for a wrong value deep inside the result, hookloom check --types shows only the value that does not fit', async () => {
  const module = `import { defineTransform } from 'hookloom'

export default defineTransform<{ branch: string }>(({ payload }, { log }) => {
  log(payload.branch)
  return { message: payload.branch, flow: { onNew: 'replce' } }
})
`
  const dir = makeConfigDir({ config, files: { 'hooks/transforms/build.ts': module } })
  const { stdout, stderr } = await runCommand(['check', '--types'], { dir })
  const [line = ''] = `${stdout}${stderr}`.split('\n').filter((text) => text.includes('types: '))
  expect(line).toMatch(/build\.ts:3:52 TS\d+ The types of 'flow\.onNew' are incompatible/)
  expect(line).toContain(`Did you mean '"replace"'?`)
  expect(line.length).toBeLessThan(250)
})

test('hookloom test prints type errors below the fixtures if TypeScript is installed in the folder, and does not fail because of them', async () => {
  const dir = makeDir('brunch')
  expect((await runCommand(['test'], { dir })).stdout).not.toContain('TS2551')
  installTypeScript(dir)
  const { code, stdout } = await runCommand(['test'], { dir })
  expect(stdout).toMatch(/type errors\n\s+hooks\/transforms\/build\.ts:8:29 TS2551/)
  expect(code).toBe(0)
  const [types] = (await runCommand(['test', '--json'], { dir })).json()
  expect(types).toEqual({ types: [expect.stringContaining('TS2551')] })
})

test('without TypeScript, hookloom check --types says how to install it, and does not fail', () => {
  expect(toTypesFinding(undefined)).toMatchObject({
    ok: false,
    severity: 'warning',
    detail: expect.stringContaining('npm install --save-dev typescript'),
  })
})
