import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { type CommandResult, runCommand } from './command.ts'
import { type Gateway, makeFolder, post, startGateway, writeFiles } from './gateway.ts'

const config = {
  store: { file: 'elsewhere/kept.db' },
  agents: { defaults: { heartbeat: { every: 0 } } },
  hooks: { mappings: [{ match: { path: 'later' }, transform: { module: 'later.ts' } }] },
}
const files = { 'hooks/transforms/later.ts': 'export default () => {\n  throw new Error("not yet")\n}\n' }

/** Expects one line on stderr, with the reason and the next command. */
function expectWarned({ stderr }: CommandResult, reason: string): void {
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringContaining(reason)])
  expect(stderr).toContain('"hookloom check"')
}

describe('an invalid configuration next to a running gateway', () => {
  let gateway: Gateway
  let sound: string
  let deliveryId: string

  beforeAll(async () => {
    gateway = await startGateway({ config, files })
    sound = readFileSync(join(gateway.dir, 'hookloom.jsonc'), 'utf8')
    await post(gateway, 'wake', { text: 'The kettle boils' })
    deliveryId = String((await post(gateway, 'later', {}))['deliveryId'])
  })

  const save = (text: string) => writeFileSync(join(gateway.dir, 'hookloom.jsonc'), text)
  const run = (...args: string[]) => runCommand(args, { dir: gateway.dir })
  const edits: [string, () => void, string][] = [
    ['does not parse', () => save('{ "hooks": {{ '), 'hookloom.jsonc:1:'],
    ['has an unknown key', () => save(sound.replace('"hooks"', '"hoks": 1, "hooks"')), 'hoks is an unknown key'],
    ['is missing', () => rmSync(join(gateway.dir, 'hookloom.jsonc')), 'There is no hookloom.jsonc'],
  ]

  test.each(edits)(
    'reading commands work, with a one-line warning, if the configuration %s',
    async (_what, edit, reason) => {
      edit()
      for (const args of [['list'], ['show', deliveryId], ['events'], ['sessions'], ['list', '--dead']]) {
        const ran = await run(...args, '--json')
        expect({ args, code: ran.code }).toEqual({ args, code: 0 })
        expectWarned(ran, reason)
        if (args.includes('--dead')) expect(ran.json()).toEqual([])
        else expect(ran.json()).not.toEqual([])
      }
      const checked = await run('check')
      expect({ check: checked.code }).toEqual({ check: 78 })
    },
  )

  test('commands that use the admin port need no valid configuration, only the gateway token', async () => {
    save(sound.replace('"hooks"', '"hoks": 1, "hooks"'))
    const refused = await run('list', '--refused', '--json')
    expect(refused).toMatchObject({ code: 0 })
    expectWarned(refused, 'hoks is an unknown key')
    const retried = await run('retry', deliveryId, '--json')
    expect(retried.json()).toMatchObject([{ deliveryId, state: 'parked' }])
    const all = await run('retry', '--dead')
    expect(all).toMatchObject({ code: 0, stdout: 'No run is dead.\n' })
    expectWarned(all, 'hoks is an unknown key')
    const dropped = await run('drop', deliveryId, '--json')
    expect(dropped.json()).toEqual([{ deliveryId, state: 'dropped' }])
  })

  test('a command that cannot read the gateway token fails with the reason', async () => {
    save('{ "gateway": { "token": "${NOT_SET_ANYWHERE}" } }')
    const ran = await run('drop', deliveryId)
    expect(ran).toMatchObject({ code: 78, stdout: '' })
    expect(ran.stderr).toContain('NOT_SET_ANYWHERE')
  })

  test('hookloom list reads the store of the running gateway, even if an edit names another store', async () => {
    save(sound.replace('elsewhere/kept.db', 'elsewhere/next.db'))
    const ran = await run('list', '--json')
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(ran.json()).toHaveLength(2)
  })
})

describe('an invalid configuration without a gateway', () => {
  test('without a gateway, hookloom list finds the store in the readable part of the configuration, or at its default place', async () => {
    for (const file of ['elsewhere/kept.db', 'state/hookloom.db']) {
      const gateway = await startGateway({ config: { ...config, store: { file } }, files })
      await post(gateway, 'wake', { text: 'The kettle boils' })
      await gateway.stop()
      const store = file === 'elsewhere/kept.db' ? '"store": { "file": "${DATA_DIR}/kept.db", "retainDayz": 3 },' : ''
      writeFiles(gateway.dir, { 'hookloom.jsonc': `{ ${store} "hooks": { "enabled" tru` })
      const ran = await runCommand(['list', '--json'], { dir: gateway.dir, env: { DATA_DIR: 'elsewhere' } })
      expect(ran.code).toBe(0)
      expectWarned(ran, 'hookloom.jsonc:1:')
      expect(ran.json()).toHaveLength(1)
    }
  })

  test('the error for a folder without a configuration and without a store names hookloom init', async () => {
    const ran = await runCommand(['list'], { dir: makeFolder() })
    expect(ran).toMatchObject({ code: 78, stdout: '' })
    expect(ran.stderr).toContain('"hookloom init" makes one')
  })
})
