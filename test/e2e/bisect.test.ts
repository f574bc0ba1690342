// The saves that went live are remembered, and hookloom bisect finds the save that changed an outcome.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { readSaves } from '../../src/gateway/reload/saves.ts'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { hookToken, mainFile, makeConfigDir, makeFolder, post, toChildEnv, writeFiles } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'

vi.setConfig({ testTimeout: 180_000 })

const module = 'hooks/transforms/x.ts'
const buildCode = (word: string, filler: string) => `import { word } from './lib/word.ts'
// ${filler}
export default ({ payload }) => ({ message: word + ' ${word} ' + payload.n, name: 'at ' + process.hrtime.bigint() })\n`
const buildHelper = (word: string) => ({ 'hooks/transforms/lib/word.ts': `export const word = '${word}'\n` })
const mappings = [{ id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false }]
const config = { hooks: { retain: 50, mappings } }

async function save(gateway: Inside, files: Record<string, string>): Promise<void> {
  const before = (await readSaves(gateway.dir)).length
  writeFiles(gateway.dir, files)
  await expect.poll(async () => (await readSaves(gateway.dir)).length).toBe(before + 1)
}

describeEngines('hookloom bisect', (start) => {
  test('hookloom bisect names the save that changed the outcome, with its files, among saves that changed nothing', async () => {
    const gateway = await start({
      config,
      files: { [module]: buildCode('one', '0'), ...buildHelper('say'), '.env': 'SOME_SECRET=never-in-a-save\n' },
    })
    await expect.poll(() => readSaves(gateway.dir)).toHaveLength(1)
    const sent = await post({ url: gateway.url, token: hookToken }, 'x', { n: 1 })
    const id = String(sent['deliveryId'])
    expect(await runCommand(['bisect', id], gateway)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^No save since .* changed the outcome\. Looked at 1 of 1 remembered save/),
    })
    for (const filler of ['1', '2']) await save(gateway, { [module]: buildCode('one', filler) })
    await save(gateway, buildHelper('tell'))
    for (const filler of ['3', '4', '5']) await save(gateway, { [module]: buildCode('one', filler) })
    const ran = await runCommand(['bisect', id.slice(0, 20), '--json'], gateway)
    const saves = await readSaves(gateway.dir)
    expect(ran.json()).toEqual([
      {
        deliveryId: id,
        save: {
          at: new Date(saves[3]?.at ?? 0).toISOString(),
          files: [{ name: 'hooks/transforms/lib/word.ts', what: 'changed' }],
        },
        class: 'changed',
        changes: [{ path: 'actions[0].message', before: 'say one 1', after: 'tell one 1' }],
        since: new Date(saves[0]?.at ?? 0).toISOString(),
        looked: expect.any(Number),
        remembered: 7,
      },
    ])
    expect(Number(ran.json()[0]?.['looked'])).toBeLessThan(7)
    // the gateway need not run, and a restart with the same files does not count as a save
    await gateway.stop()
    expect((await runCommand(['bisect', id], gateway)).stdout).toMatch(
      /changed +hooks\/transforms\/lib\/word\.ts\n[^]*- say one 1\n\s+\+ tell one 1/,
    )
    const again = await start({ dir: gateway.dir })
    await again.stop()
    expect(await readSaves(gateway.dir)).toHaveLength(7)
  })
})

describe('the remembered saves', () => {
  test('a stored save does not contain a secret of the configuration, and bisect still finds the change of an outcome', async () => {
    const secret = 'a-secret-that-was-written-into-the-file'
    const gateway = await startInside({
      config: {
        hooks: {
          ...config.hooks,
          mappings: [...mappings, { match: { path: 'y' }, verify: { scheme: 'github', secret } }],
        },
        channels: { webhook: { endpoints: { chat: { url: `https://chat.test/${secret}`, secret } } } },
      },
      files: { [module]: buildCode('one', '0'), ...buildHelper('say') },
    })
    await expect.poll(() => readSaves(gateway.dir), { timeout: 30_000 }).toHaveLength(1)
    const sent = await post({ url: gateway.url, token: hookToken }, 'x', { n: 1 })
    await save(gateway, buildHelper('tell'))
    const texts = JSON.stringify(await readSaves(gateway.dir))
    for (const each of [secret, hookToken]) expect(texts).not.toContain(each)
    expect(texts).toContain('https://removed.invalid')
    const ran = await runCommand(['bisect', String(sent['deliveryId'])], gateway)
    expect(ran.stdout).toContain('+ tell one 1')
  })

  test('a stored save has no .env, no packages and no fixtures, and only its owner can read it', async () => {
    const gateway = await startInside({
      config,
      files: {
        [module]: buildCode('one', '0'),
        ...buildHelper('say'),
        '.env': 'SOME_SECRET=never-in-a-save\n',
        'hooks/transforms/node_modules/some/index.js': 'package',
        'hooks/transforms/x.fixtures/one.json':
          '{"request":{"path":"x","payload":{"n":1}},"expect":{"decision":"accept"}}',
      },
    })
    await gateway.stop()
    const [only, ...others] = await readSaves(gateway.dir)
    expect(others).toEqual([])
    expect(Object.keys(only?.files ?? {})).toEqual(['hookloom.jsonc', 'hooks/transforms/lib/word.ts', module])
    expect(JSON.stringify(only)).not.toContain('never-in-a-save')
    const folder = join(gateway.dir, 'state/saves')
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual([0o600])
  })

  test('code that fails to load is not kept as a save, because it never went live', async () => {
    const lines: string[] = []
    const add = (_: object, line: string) => void lines.push(line)
    const gateway = await startInside({
      config,
      files: { [module]: buildCode('one', '0'), ...buildHelper('say') },
      log: { debug: add, info: add, warn: add, error: add },
    })
    await expect.poll(() => readSaves(gateway.dir)).toHaveLength(1)
    writeFiles(gateway.dir, { [module]: 'export default ({' })
    // without this wait, the gateway may see only the next save
    await expect.poll(() => lines.join('\n')).toContain('does not build')
    await save(gateway, { [module]: buildCode('two', '1') })
    const texts = (await readSaves(gateway.dir)).map(({ files }) => files[module])
    expect(texts).toEqual([buildCode('one', '0'), buildCode('two', '1')])
    await gateway.stop()
  })

  test('the number of stored saves is limited: the oldest are deleted first, and damaged ones are ignored', async () => {
    const dir = makeConfigDir({ config, files: { [module]: buildCode('one', '0'), ...buildHelper('say') } })
    const folder = join(dir, 'state/saves')
    mkdirSync(folder, { recursive: true })
    for (let at = 1; at <= 250; at += 1)
      writeFileSync(join(folder, `${String(at).padStart(15, '0')}-${'0'.repeat(16)}`), 'x')
    const gateway = await startInside({ dir })
    await gateway.stop()
    const names = readdirSync(folder).toSorted()
    expect(names).toHaveLength(200)
    expect(names[0]).toMatch(/^0{12}052-/)
    expect(await readSaves(dir)).toHaveLength(1)
  })

  test('Ctrl-C ends hookloom bisect, and leaves no copy of the saves in the temporary folder', async () => {
    const gateway = await startInside({ config, files: { [module]: buildCode('one', '0'), ...buildHelper('say') } })
    await expect.poll(() => readSaves(gateway.dir)).toHaveLength(1)
    await post({ url: gateway.url, token: hookToken }, 'x', { n: 1 })
    await gateway.stop()
    const folder = makeFolder()
    const args = [mainFile, 'bisect', 'last', '--config-dir', gateway.dir]
    const child = spawn(process.execPath, args, { env: { ...toChildEnv(), TMPDIR: folder }, stdio: 'ignore' })
    const ended = once(child, 'close')
    await expect.poll(() => readdirSync(folder), { interval: 1 }).toEqual([expect.stringMatching(/^hookloom-bisect-/)])
    child.kill('SIGINT')
    expect(await ended).toEqual([130, null])
    expect(readdirSync(folder)).toEqual([])
  })

  test('an error of bisect says what is missing: the delivery, its request, or saves', async () => {
    const gateway = await startInside({
      config: { hooks: { mappings: [{ match: { path: 'x' }, messageTemplate: 'x', deliver: false }] } },
    })
    const sent = await post({ url: gateway.url, token: hookToken }, 'x', { n: 1 })
    const id = String(sent['deliveryId'])
    await gateway.stop()
    expect(await runCommand(['bisect', id], gateway)).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('"retain"'),
    })
    expect(await runCommand(['bisect', 'nobody'], gateway)).toMatchObject({ stderr: expect.stringContaining('nobody') })
    const kept = await startInside({ config, files: { [module]: buildCode('one', '0'), ...buildHelper('say') } })
    await post({ url: kept.url, token: hookToken }, 'x', { n: 1 })
    await kept.stop()
    rmSync(join(kept.dir, 'state/saves'), { recursive: true })
    expect(await runCommand(['bisect', 'last'], kept)).toMatchObject({
      stderr: expect.stringContaining('No save is remembered'),
    })
  })
})
