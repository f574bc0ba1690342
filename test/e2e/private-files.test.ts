// Files of the gateway and its commands: only the owner can read their secrets, and a foreign link is never followed.
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { mainFile, makeConfigDir, makeFolder, toChildEnv } from './gateway.ts'
import { startInside } from './inside.ts'

const readMode = (file: string) => statSync(file).mode & 0o777

describe('address file of the gateway', () => {
  test('the address file replaces a symlink and does not follow it', async () => {
    const dir = makeConfigDir()
    const target = join(makeFolder(), 'target')
    writeFileSync(target, 'somebody else’s')
    mkdirSync(join(dir, 'state'), { mode: 0o700 })
    symlinkSync(target, join(dir, 'state/gateway.json'))
    const gateway = await startInside({ dir })
    const file = join(dir, 'state/gateway.json')
    expect(readFileSync(target, 'utf8')).toBe('somebody else’s')
    expect([lstatSync(file).isSymbolicLink(), readMode(file)]).toEqual([false, 0o600])
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ url: gateway.url })
    await gateway.stop()
    expect(existsSync(file)).toBe(false)
  })

  test('the address file is written even if the store is elsewhere', async () => {
    const gateway = await startInside({ config: { store: { file: join(makeFolder(), 'x.db') } } })
    expect(readMode(join(gateway.dir, 'state'))).toBe(0o700)
    expect(readMode(join(gateway.dir, 'state/gateway.json'))).toBe(0o600)
  })
})

test.skipIf(process.platform === 'win32')(
  'only the owner can write a config directory or read its secrets, even with the umask 000',
  { timeout: 120_000 },
  () => {
    // a folder that all users may enter does not protect its files
    const dir = join(makeFolder(), 'config')
    mkdirSync(dir, { mode: 0o755 })
    const run = (args: string) => {
      const script = `umask 000; exec "${process.execPath}" "${mainFile}" ${args} --config-dir "${dir}"`
      const { status, stderr } = spawnSync('sh', ['-c', script], {
        env: toChildEnv(),
        encoding: 'utf8',
        timeout: 30_000,
      })
      expect([args, status, stderr]).toEqual([args, 0, expect.any(String)])
    }
    run('init')
    run('new in-from-outside')
    run('add transform slack-message')
    const made = readdirSync(dir, { recursive: true, encoding: 'utf8' }).map((name) => join(dir, name))
    expect(made.length).toBeGreaterThan(8)
    expect(made.filter((file) => (readMode(file) & 0o022) !== 0)).toEqual([])
    for (const name of ['.env', 'hookloom.jsonc']) expect(readMode(join(dir, name))).toBe(0o600)
  },
)
