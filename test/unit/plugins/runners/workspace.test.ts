// The files of a workspace: the operator's files are read, and links that an agent may have put in their place are not.
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createWorkspaceReader, readWorkspaceFile } from '../../../../src/plugins/runners/shared/workspace.ts'

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
  test('a workspace file is read, even through a link inside the folder or if the folder is a link', async () => {
    await writeFile(join(folder, 'checks.md'), '- look at the tide\n')
    await symlink('checks.md', join(folder, 'HEARTBEAT.md'))
    expect(await read()).toEqual({ text: '- look at the tide' })
    await symlink(folder, join(dir, 'linked'))
    expect(await readWorkspaceFile(join(dir, 'linked'), 'HEARTBEAT.md')).toEqual({ text: '- look at the tide' })
  })

  test('a workspace file is not read if a link leads out of the folder', async () => {
    await writeFile(join(dir, '.env'), 'TOKEN=hidden')
    await symlink('../.env', join(folder, 'HEARTBEAT.md'))
    expect(await read()).toEqual({
      refused: `${join(folder, 'HEARTBEAT.md')} is not read: it is a link that leads out of the workspace. Put the file itself there.`,
    })
  })

  test.skipIf(process.platform === 'win32')('a workspace file that is a pipe blocks nothing', async () => {
    execFileSync('mkfifo', [join(folder, 'HEARTBEAT.md')])
    expect((await read()).refused).toContain('it is not a regular file')
  })

  test('a missing workspace file gives neither a text nor a refusal, with or without a folder', async () => {
    expect(await read()).toEqual({})
    expect(await readWorkspaceFile(join(dir, 'nowhere'), 'AGENTS.md')).toEqual({})
    expect(await readWorkspaceFile(undefined, 'AGENTS.md')).toEqual({})
  })

  test('a workspace file with only headings and empty items counts as empty', async () => {
    await writeFile(join(folder, 'HEARTBEAT.md'), '# Checks\n\n- [ ]\n-\n')
    expect(await read()).toEqual({})
  })

  test('a workspace file that cannot be read is logged once, and again if it was readable in between', async () => {
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
