// A user who can write the code of a config directory can run code in the gateway. So `hookloom doctor` warns if other users can write it.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkCodeFolders } from '../../../src/cli/checks/code-folders.ts'

let dir: string

function write(file: string): void {
  mkdirSync(dirname(join(dir, file)), { recursive: true, mode: 0o755 })
  writeFileSync(join(dir, file), '', { mode: 0o644 })
}

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hookloom-code-'))
  for (const kind of ['presets/own', 'verifiers', 'channels', 'transforms/lib']) write(`hooks/${kind}/x.ts`)
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

describe.skipIf(process.platform === 'win32')('write access of other users to code', () => {
  test('code that only its owner can write is not reported, even if others can read it', async () => {
    expect(await checkCodeFolders(dir)).toMatchObject({ name: 'code-permissions', ok: true })
  })

  test.each([
    ['hooks', 0o775],
    ['hooks/transforms', 0o777],
    ['hooks/transforms/lib', 0o757],
    ['hooks/transforms/lib/x.ts', 0o664],
    ['hooks/presets', 0o770],
    ['hooks/presets/own/x.ts', 0o646],
    ['hooks/verifiers', 0o772],
    ['hooks/channels/x.ts', 0o666],
  ])('%s with mode %o is reported as writable by others', async (file, mode) => {
    chmodSync(join(dir, file), mode)
    expect(await checkCodeFolders(dir)).toEqual({
      name: 'code-permissions',
      ok: false,
      severity: 'warning',
      detail: `${file} (mode ${mode.toString(8)}) can be written by other users, who can then run code in the gateway. Run: chmod -R go-w ${join(dir, 'hooks')}`,
    })
  })

  test('code in a config directory that others can write is reported', async () => {
    chmodSync(dir, 0o777)
    const { detail } = await checkCodeFolders(dir)
    expect(detail).toBe(
      `${dir} (mode 777) can be written by other users, who can then run code in the gateway. Run: chmod go-w ${dir}`,
    )
  })

  test('at most five files that others can write are named', async () => {
    for (let index = 0; index < 7; index++) {
      write(`hooks/channels/c${index}.ts`)
      chmodSync(join(dir, `hooks/channels/c${index}.ts`), 0o666)
    }
    const { detail } = await checkCodeFolders(dir)
    expect(detail.match(/mode 666/g)).toHaveLength(5)
    expect(detail).toContain(' and 2 more can be written')
  })

  test('targets of links and installed packages are not checked for write access', async () => {
    write('elsewhere.ts')
    write('hooks/node_modules/p/index.js')
    for (const file of ['elsewhere.ts', 'hooks/node_modules/p/index.js']) chmodSync(join(dir, file), 0o666)
    symlinkSync('../../elsewhere.ts', join(dir, 'hooks/channels/link.ts'))
    expect(await checkCodeFolders(dir)).toMatchObject({ ok: true })
  })

  test('a config directory without code has no warning about write access', async () => {
    rmSync(join(dir, 'hooks'), { recursive: true })
    expect(await checkCodeFolders(dir)).toMatchObject({ ok: true })
  })
})
