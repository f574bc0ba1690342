// `hookloom new plugin`: what it writes has no error in an editor, passes its own test, and loads with its section.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import ts from 'typescript'
import { expect, test, vi } from 'vitest'
import { editConfig } from '../../src/gateway/config/config-file.ts'
import { runCommand, runProcess } from './command.ts'
import { makeConfigDir, makeFolder } from './gateway.ts'

// a compiler starts here
vi.setConfig({ testTimeout: 120_000 })

const kinds = ['channel', 'runner', 'sender', 'outbox', 'source'] as const
const env = { TIDE_TOKEN: 'tk_0123456789', TIDE_WEBHOOK_SECRET: 'a-secret-of-the-tide' }
const place = 'hooks/plugins/tide'

/** The configuration with what the command asks to add, and with a server in place of the placeholder. */
function addPrinted(text: string, stdout: string): string {
  const [, place, lines = ''] = /add to (.*):\n\n([^]*?)\n\nNext\n/.exec(stdout) ?? []
  const printed = lines.replaceAll('.example/', '.test/')
  if (place === 'hooks.mappings in hookloom.jsonc')
    return editConfig(text, ['hooks', 'mappings', -1], JSON.parse(printed))
  const { hooks, ...sections } = JSON.parse(`{${printed}}`)
  const before = hooks === undefined ? text : editConfig(text, ['hooks', 'mappings', -1], hooks.mappings[0])
  const added = Object.entries(sections)
  return added.reduce((edited, [key, value]) => editConfig(edited, [key], value), before)
}

/** Installs this package into a config directory. */
function linkPackage(dir: string): void {
  mkdirSync(join(dir, 'node_modules'))
  symlinkSync(resolve('.'), join(dir, 'node_modules/hookloom'))
  symlinkSync(resolve('node_modules/zod'), join(dir, 'node_modules/zod'))
}

function listTypeErrors(dir: string): string[] {
  const { config } = ts.readConfigFile(join(dir, 'hooks/tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, join(dir, 'hooks'))
  const files = ['.ts', '.test.ts'].map((end) => join(dir, place + end))
  return ts
    .getPreEmitDiagnostics(ts.createProgram(files, options))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

test.each(kinds)('a new %s has no type error, passes its test, and loads with its section', async (kind) => {
  const dir = join(makeFolder(), 'config')
  await runCommand(['init'], { dir })
  const made = await runCommand(['new', 'plugin', 'tide', '--kind', kind], { dir })
  expect(made).toMatchObject({ code: 0, stderr: '' })
  expect(listTypeErrors(dir)).toEqual([])
  linkPackage(dir)
  const jiti = resolve('node_modules/jiti/lib/jiti-cli.mjs')
  const tested = await runProcess(process.execPath, [jiti, `${place}.test.ts`], { env: { PATH: '' }, cwd: dir })
  expect(tested).toMatchObject({ code: 0, stdout: expect.stringMatching(/# pass [2-9]\n# fail 0\n/) })
  const file = join(dir, 'hookloom.jsonc')
  const before = readFileSync(file, 'utf8')
  expect(before).toContain('//')
  writeFileSync(file, addPrinted(before, made.stdout))
  const checked = await runCommand(['check', '--json'], { dir, env })
  expect(checked.json().filter(({ ok }) => ok === false)).toEqual([])
  expect(checked.code).toBe(0)
  expect(checked.json()).toContainEqual(
    expect.objectContaining(
      kind === 'channel'
        ? { name: 'channel tide', ok: true }
        : { name: 'plugin ./plugins/tide.ts', ok: true, detail: expect.stringMatching(new RegExp(`: ${kind} tide$`)) },
    ),
  )
})

test('a new plugin is a channel, is added to the other plugins, and is not overwritten', async () => {
  const dir = makeConfigDir({ config: { plugins: ['@acme/hookloom-harbour'] } })
  const made = await runCommand(['new', 'plugin', 'tide'], { dir })
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('npx jiti hooks/plugins/tide.test.ts') })
  const config = readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
  expect(JSON.parse(config).plugins).toEqual(['@acme/hookloom-harbour', './plugins/tide.ts'])
  writeFileSync(join(dir, `${place}.ts`), '// mine')
  expect(await runCommand(['new', 'plugin', 'tide'], { dir })).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('exists already. Nothing was overwritten.'),
  })
  expect(readFileSync(join(dir, `${place}.ts`), 'utf8')).toBe('// mine')
  expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).toBe(config)
})

test.each([
  ['slack', 'channel', 'The channel "slack" is built in.'],
  ['command', 'runner', 'The runner "command" is built in.'],
  ['github', 'sender', 'The sender "github" is built in.'],
  ['stripe', 'outbox', 'The outbox "stripe" is built in.'],
  ['gmail', 'source', 'The source "gmail" is built in.'],
  ['../tide', 'channel', 'has only lower-case letters'],
  ['@acme/tide', 'channel', 'is the name of a package. To use a package, install it with npm'],
  ['tide', 'preset', 'Expected one of channel, runner, sender, outbox, source'],
])('hookloom new plugin %s --kind %s is refused', async (name, kind, why) => {
  const dir = makeConfigDir()
  expect(await runCommand(['new', 'plugin', name, '--kind', kind], { dir })).toMatchObject({
    code: 64,
    stderr: expect.stringContaining(why),
  })
})

test('the schema of the editor knows a plugin as soon as it is made, and no longer when it is removed', async () => {
  const dir = join(makeFolder(), 'config')
  await runCommand(['init'], { dir })
  const readKinds = () =>
    JSON.stringify(JSON.parse(readFileSync(join(dir, 'hookloom.schema.json'), 'utf8')).properties.runners)
  const before = readKinds()
  await runCommand(['new', 'plugin', 'tide', '--kind', 'runner'], { dir })
  expect(readKinds()).toContain('"tide"')
  expect(await runCommand(['remove', 'tide'], { dir })).toMatchObject({ code: 0, stderr: '' })
  expect(readKinds()).toBe(before)
})

test.each(kinds)('hookloom remove undoes hookloom new plugin --kind %s', async (kind) => {
  const dir = makeConfigDir({ config: { plugins: ['@acme/hookloom-harbour'] } })
  const read = () => readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
  const before = read()
  await runCommand(['new', 'plugin', 'tide', '--kind', kind], { dir })
  const removed = await runCommand(['remove', 'tide'], { dir })
  expect(removed).toMatchObject({ code: 0, stderr: '' })
  expect(removed.stdout).toMatch(/removed +"\.\/plugins\/tide\.ts" from plugins\n.*tide\.ts\n.*tide\.test\.ts/)
  expect(JSON.parse(read())).toEqual(JSON.parse(before))
  expect(['.ts', '.test.ts'].filter((end) => existsSync(join(dir, place + end)))).toEqual([])
})

test('hookloom remove of the last plugin leaves no empty list, and every comment', async () => {
  const dir = makeConfigDir()
  const file = join(dir, 'hookloom.jsonc')
  const before = '{\n  // the hooks\n  "hooks": {}, // of mine\n  // the end\n}\n'
  writeFileSync(file, before)
  await runCommand(['new', 'plugin', 'tide'], { dir })
  expect(readFileSync(file, 'utf8')).toContain('"./plugins/tide.ts"')
  expect(await runCommand(['remove', 'tide'], { dir })).toMatchObject({ code: 0, stderr: '' })
  const after = readFileSync(file, 'utf8')
  expect(after).not.toContain('plugins')
  for (const comment of ['// the hooks', '// of mine', '// the end']) expect(after).toContain(comment)
})

test('hookloom remove deletes an edited plugin only with --force, and without it nothing', async () => {
  const dir = makeConfigDir()
  await runCommand(['new', 'plugin', 'tide'], { dir })
  writeFileSync(join(dir, `${place}.ts`), '// mine')
  const before = readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
  const refused = await runCommand(['remove', 'tide'], { dir })
  expect(refused).toMatchObject({ code: 65, stderr: expect.stringContaining('tide.ts') })
  expect(refused.stderr).not.toContain('tide.test.ts')
  expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).toBe(before)
  expect(await runCommand(['remove', 'tide', '--force'], { dir })).toMatchObject({ code: 0 })
  expect(existsSync(join(dir, `${place}.ts`))).toBe(false)
})

test.each([
  ['channels', { tide: { url: 'https://tide.test/', token: 'tk_0123456789', to: 'builds' } }, 'channel'],
  ['runners', { mine: { kind: 'tide', url: 'https://tide.test/', token: 'tk_0123456789' } }, 'runner'],
  ['hooks', { mappings: [{ match: { path: 'tide' }, verify: { scheme: 'tide', secret: 'x'.repeat(16) } }] }, 'sender'],
  ['hooks', { mappings: [{ match: { path: 'tide' }, recover: { sender: 'tide' } }] }, 'outbox'],
] as const)('hookloom remove keeps a plugin that a section of %s uses, and names it', async (key, section, kind) => {
  const dir = makeConfigDir()
  const file = join(dir, 'hookloom.jsonc')
  await runCommand(['new', 'plugin', 'tide', '--kind', kind], { dir })
  const before = editConfig(readFileSync(file, 'utf8'), [key], section)
  writeFileSync(file, before)
  const refused = await runCommand(['remove', 'tide'], { dir })
  expect(refused.code).not.toBe(0)
  expect(refused.stderr).toContain(key)
  expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).toBe(before)
})
