// The guide of `hookloom skill`: its commands work as printed, in order, in a config directory with one received request.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readBlocks } from '../pages.ts'
import { runCommand } from './command.ts'
import { hookToken, makeFolder, post } from './gateway.ts'
import { startInside } from './inside.ts'

const page = 'src/cli/skill/SKILL.md'
const hook = 'orders'

/** Splits a shell line into words. Quoted text is one word. */
function toWords(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')
}

test(
  'hookloom skill prints at most 120 lines, and each command of the guide works as printed',
  { timeout: 120_000 },
  async () => {
    const printed = (await runCommand(['skill'], { dir: makeFolder() })).stdout
    expect(printed.split('\n').length).toBeLessThanOrEqual(121)
    expect(printed).toMatch(/^---\nname: hookloom\ndescription: /)
    const commands = readBlocks(page).flatMap(({ language, text }) =>
      language === 'sh' ? text.trim().split('\n') : [],
    )
    expect(commands.length).toBeGreaterThan(9)
    expect(commands.filter((line) => !printed.includes(line))).toEqual([])

    const { dir, url } = await startInside({
      config: {
        hooks: {
          retain: 50,
          transforms: { hold: true },
          mappings: [{ id: 'orders', match: { path: hook }, messageTemplate: '{{name}}', channel: 'slack', to: '?' }],
        },
        channels: { slack: { botToken: 'none', baseUrl: 'http://127.0.0.1:1024' } },
      },
    })
    await post({ url, token: hookToken }, hook, { name: 'Ada', total: 3 })
    const listDead = async () => (await runCommand(['list', '--dead', '--json'], { dir })).json()
    await expect.poll(listDead, { timeout: 60_000 }).toHaveLength(1)
    for (const line of commands) {
      const [program, ...words] = toWords(line)
      expect(program).toBe('hookloom')
      if (words[0] === 'publish') await waitUntilHeld(dir)
      const ran = await runCommand(words, { dir })
      expect([line, ran.code, ran.code === 0 ? '' : ran.stdout + ran.stderr]).toEqual([line, 0, ''])
      if (words[0] === 'try') expect(ran.stdout).toContain('Ada says hello')
      if (words[0] === 'new') expect(readFileSync(join(dir, 'hooks/transforms/orders.ts'), 'utf8')).toContain('payload')
    }
  },
)

/** Waits until the gateway has seen the new module and holds it back: a replay then compares with the live code. */
async function waitUntilHeld(dir: string): Promise<void> {
  const replay = async () => (await runCommand(['replay', '--json'], { dir })).json().at(-1)?.['compared']
  await expect.poll(replay, { timeout: 60_000 }).toBe('live')
}
