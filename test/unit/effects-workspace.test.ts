// The folder of an agent: what its operator wrote is read, and what the agent may have put there in its place is not.
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readWorkspaceFile } from '../../src/effects/workspace.ts'

let dir: string
let folder: string

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'hookloom-'))
  folder = join(dir, 'agent')
  await mkdir(folder)
})
afterEach(() => rm(dir, { recursive: true }))

const read = () => readWorkspaceFile(folder, 'HEARTBEAT.md')

describe('a file of a workspace', () => {
  test('is read, also by a link inside the folder, and of a folder that is a link itself', async () => {
    await writeFile(join(folder, 'checks.md'), '- look at the tide\n')
    await symlink('checks.md', join(folder, 'HEARTBEAT.md'))
    expect(await read()).toBe('- look at the tide')
    await symlink(folder, join(dir, 'linked'))
    expect(await readWorkspaceFile(join(dir, 'linked'), 'HEARTBEAT.md')).toBe('- look at the tide')
  })

  test('is not read where a link leads out of the folder: an agent would see what only the gateway may', async () => {
    await writeFile(join(dir, '.env'), 'TOKEN=hidden')
    await symlink('../.env', join(folder, 'HEARTBEAT.md'))
    expect(await read()).toBeUndefined()
  })

  test.skipIf(process.platform === 'win32')('does not hold anybody up where it is a pipe', async () => {
    execFileSync('mkfifo', [join(folder, 'HEARTBEAT.md')])
    expect(await read()).toBeUndefined()
  })

  test('says nothing with headings and empty items alone', async () => {
    await writeFile(join(folder, 'HEARTBEAT.md'), '# Checks\n\n- [ ]\n-\n')
    expect(await read()).toBeUndefined()
  })
})
