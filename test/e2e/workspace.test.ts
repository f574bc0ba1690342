// The folder of an agent is made for the runners that work in it.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startInside } from './inside.ts'
import { post } from './wire.ts'

test('a turn of a program makes the folder of its agent, and a turn of echo makes none', async () => {
  const command = { kind: 'command', command: process.execPath, args: ['-e', 'console.log(process.cwd())'] }
  const gateway = await startInside({
    config: {
      hooks: {
        mappings: ['quiet', 'works'].map((agentId) => ({
          match: { path: agentId },
          messageTemplate: '{{text}}',
          agentId,
          deliver: false,
        })),
      },
      runners: { command },
      agents: {
        list: [
          { id: 'main', runner: 'echo' },
          { id: 'quiet', runner: 'echo' },
          { id: 'works', runner: 'command' },
        ],
      },
    },
  })
  const run = async (path: string) => {
    const { status, body } = await post(gateway.port, `/hooks/${path}`, { text: 'Hello' }, [['prefer', 'wait=30']])
    expect([status, body]).toEqual([200, expect.stringContaining('"ok":true')])
  }
  await run('quiet')
  await run('works')
  expect(['quiet', 'works'].map((id) => existsSync(join(gateway.dir, 'agents', id)))).toEqual([false, true])
})
