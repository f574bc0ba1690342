// The first page prints a command for each hook. Each one is run as it is printed.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { hookToken } from '../e2e/gateway.ts'
import { findBarriers, hasBrowser, shoot, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const run = promisify(execFile)
const main = join(import.meta.dirname, '../../dist/main.js')
const mapping = (id: string, others: object) => ({ id, match: { path: id }, deliver: false, ...others })
const config = {
  hooks: {
    path: '/in/our-hooks',
    mappings: [
      mapping('plain', { messageTemplate: 'Say {{text}} to {{user.name}}' }),
      mapping('opened', {
        match: { path: 'teams/opened', payload: { action: ['opened', 'closed'], 'issue.state': 'open' } },
        messageTemplate: '{{action}} {{issue.title}}',
      }),
      mapping('review', { transform: { module: 'review.ts' } }),
      mapping('github', {
        verify: { scheme: 'github', secret: 'github-secret-0123456789abcdef' },
        messageTemplate: '{{payload}}',
      }),
    ],
  },
}
const files = {
  'hooks/transforms/review.ts': `export default ({ payload }) => ({ message: 'Review ' + JSON.stringify(payload) })`,
}

describe.skipIf(!hasBrowser)('the first page', () => {
  test('each printed command, run as it is, is accepted by its hook', async () => {
    const stage = await startStage({ config, files })
    try {
      const page = await stage.open()
      const start = page.getByLabel('First steps')
      const hook = start.getByLabel('hook')
      await hook.waitFor(wait)
      const names = await hook.locator('option').allInnerTexts()
      expect(names).toEqual(['plain', 'teams/opened', 'review', 'github', 'agent', 'wake'])
      expect(await start.innerText()).toContain(`. '${stage.gateway.dir}/.env'`)
      const commands: string[] = []
      for (const name of names) {
        await hook.selectOption(name)
        const command = start.getByLabel('A command that sends a request')
        await command.filter({ hasText: name }).waitFor(wait)
        commands.push(await command.innerText())
      }
      await shoot(page, 'first-commands')
      expect(await findBarriers(page)).toEqual([])
      for (const [at, command] of commands.entries()) {
        const script = `hookloom() { node ${main} "$@" --json; }\n${command.startsWith('curl') ? `${command} -w '%{http_code}'` : command}`
        const { stdout } = await run('bash', ['-c', script], {
          env: { PATH: process.env['PATH'], HOOKLOOM_TOKEN: hookToken },
        })
        expect([names[at], stdout]).toEqual([names[at], expect.stringMatching(/200$|"status":200/)])
        const { deliveries } = (await stage.ask('/api/deliveries')) as { deliveries: { hook: string; state: string }[] }
        expect(deliveries).toHaveLength(at + 1)
        expect(deliveries.at(-1)).toMatchObject({ hook: names[at], state: 'accepted' })
      }
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })
})
