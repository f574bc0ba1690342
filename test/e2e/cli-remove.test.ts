// `hookloom remove` undoes what `new` and `add` made, and keeps what somebody edited.
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { makeConfigDir } from './gateway.ts'

const root = 'hooks/transforms'

function createStage(mappings: object[] = []) {
  const dir = makeConfigDir({ config: { hooks: { mappings } }, files: { 'order.json': '{"order":{"title":"Tea"}}' } })
  const readConfig = () => readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
  const run = (...args: string[]) => runCommand(args, { dir })
  const listFiles = () => readdirSync(join(dir, root), { recursive: true, encoding: 'utf8' }).toSorted()
  return { dir, run, readConfig, listFiles, order: join(dir, 'order.json') }
}

test.each([[[]], [['--from', 'order.json']], [['--from', 'github']]])(
  'hookloom remove undoes hookloom new %j: the module, its fixture, its types and its mapping',
  async (args) => {
    const { dir, run, readConfig, listFiles, order } = createStage()
    const before = readConfig()
    const from = args.map((arg) => (arg === 'order.json' ? order : arg))
    expect(await run('new', 'mine', ...from)).toMatchObject({ code: 0 })
    const removed = await run('remove', 'mine')
    expect(removed).toMatchObject({ code: 0, stderr: '' })
    expect(removed.stdout).toMatch(/removed +the mapping "mine"\n.*mine\.ts\n.*first\.json/)
    expect(removed.stdout.includes('GITHUB_WEBHOOK_SECRET in .env is no longer used')).toBe(args.includes('github'))
    expect(JSON.parse(readConfig())).toEqual(JSON.parse(before))
    expect(listFiles().filter((file) => file !== 'payloads')).toEqual([])
    expect(existsSync(join(dir, root, 'mine.fixtures'))).toBe(false)
  },
)

test('hookloom remove undoes hookloom add transform and hookloom add preset', async () => {
  const { dir, run, readConfig, listFiles } = createStage()
  await run('add', 'transform', 'github-pull-request')
  expect(await run('remove', 'github-pull-request')).toMatchObject({ code: 0 })
  expect(listFiles()).toEqual([])
  await run('add', 'preset', 'stripe')
  expect(await run('remove', 'stripe')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('STRIPE_WEBHOOK_SECRET'),
  })
  expect(JSON.parse(readConfig()).hooks.presets).toEqual([])
  expect(readFileSync(join(dir, '.env'), 'utf8')).toContain('STRIPE_WEBHOOK_SECRET')
})

test('hookloom remove deletes an edited module and further fixtures only with --force, and without it nothing', async () => {
  const { dir, run, readConfig, listFiles, order } = createStage()
  await run('new', 'mine', '--from', order)
  appendFileSync(join(dir, root, 'mine.ts'), '// mine\n')
  writeFileSync(join(dir, root, 'mine.fixtures/second.json'), '{}')
  const [config, files] = [readConfig(), listFiles()]
  const refused = await run('remove', 'mine')
  expect(refused).toMatchObject({ code: 65, stderr: expect.stringContaining('--force') })
  for (const file of ['mine.ts', 'second.json']) expect(refused.stderr).toContain(file)
  expect(refused.stderr).not.toContain('first.json')
  expect([readConfig(), listFiles()]).toEqual([config, files])
  expect(await run('remove', 'mine', '--force')).toMatchObject({ code: 0 })
  expect(listFiles().filter((file) => file !== 'payloads')).toEqual([])
})

test('hookloom remove leaves a mapping with keys of its own, without the transform that hookloom new added', async () => {
  const mapping = { id: 'mine', match: { path: 'mine' }, deliver: false }
  const { run, readConfig, order } = createStage([mapping])
  await run('new', 'mine', '--from', order)
  const removed = await run('remove', 'mine')
  expect(removed).toMatchObject({ code: 0, stdout: expect.stringContaining('its other keys stay') })
  expect(JSON.parse(readConfig()).hooks.mappings).toEqual([mapping])
})

test('hookloom remove of an unknown name, or of a path, removes nothing', async () => {
  const { dir, run, order } = createStage()
  await run('new', 'mine', '--from', order)
  expect(await run('remove', 'mime')).toMatchObject({
    code: 65,
    stderr: expect.stringContaining('Did you mean "mine"?'),
  })
  writeFileSync(join(dir, 'hooks/x.ts'), '')
  expect(await run('remove', '../x', '--force')).toMatchObject({ code: 65 })
  expect(existsSync(join(dir, 'hooks/x.ts'))).toBe(true)
})
