// The folder of an agent: what its operator wrote is read, and what the agent may have put there in its place is not.
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createWorkspaceReader, readWorkspaceFile } from '../../../src/runners/workspace.ts'

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
    expect(await read()).toEqual({ text: '- look at the tide' })
    await symlink(folder, join(dir, 'linked'))
    expect(await readWorkspaceFile(join(dir, 'linked'), 'HEARTBEAT.md')).toEqual({ text: '- look at the tide' })
  })

  test('is not read where a link leads out of the folder: an agent would see what only the gateway may', async () => {
    await writeFile(join(dir, '.env'), 'TOKEN=hidden')
    await symlink('../.env', join(folder, 'HEARTBEAT.md'))
    expect(await read()).toEqual({
      refused: `${join(folder, 'HEARTBEAT.md')} is not read: it is a link that leads out of the workspace. Put the file itself there.`,
    })
  })

  test.skipIf(process.platform === 'win32')('does not hold anybody up where it is a pipe', async () => {
    execFileSync('mkfifo', [join(folder, 'HEARTBEAT.md')])
    expect((await read()).refused).toContain('it is not a regular file')
  })

  test('that is not there, in a folder or without one, is no news', async () => {
    expect(await read()).toEqual({})
    expect(await readWorkspaceFile(join(dir, 'nowhere'), 'AGENTS.md')).toEqual({})
    expect(await readWorkspaceFile(undefined, 'AGENTS.md')).toEqual({})
  })

  test('says nothing with headings and empty items alone', async () => {
    await writeFile(join(folder, 'HEARTBEAT.md'), '# Checks\n\n- [ ]\n-\n')
    expect(await read()).toEqual({})
  })

  test('that is not read is told once, and again after it was read in between', async () => {
    const lines: string[] = []
    const readFor = createWorkspaceReader({ warn: (_fields, text) => void lines.push(text) })
    const file = join(folder, 'AGENTS.md')
    await symlink('../elsewhere.md', file)
    await writeFile(join(dir, 'elsewhere.md'), 'You are somebody else.')
    for (let turn = 0; turn < 3; turn++) expect(await readFor(folder, 'AGENTS.md')).toBeUndefined()
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(`${file} is not read: it is a link`)
    await rm(file)
    await writeFile(file, 'You are Mira.')
    expect(await readFor(folder, 'AGENTS.md')).toBe('You are Mira.')
    await rm(file)
    await symlink('../elsewhere.md', file)
    await readFor(folder, 'AGENTS.md')
    expect(lines).toHaveLength(2)
  })
})
