// hookloom sessions clear and trim: an operator shortens the transcript of a session.
import { afterEach, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { gatewayToken } from './gateway.ts'
import type { Inside } from './inside.ts'
import { post } from './wire.ts'

let closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

const config = {
  hooks: {
    mappings: [
      {
        match: { path: 'ticket' },
        sessionKey: 'hook:ticket',
        sessionMode: 'persistent',
        messageTemplate: 'Comment {{n}}',
        wakeMode: 'next-heartbeat',
      },
    ],
  },
}

const ofTicket = { agentId: 'main', sessionKey: 'hook:ticket' }

type Shown = { messages: { role: string; text: string }[]; events: object[] }
type Entries = { entries: { act: string; outcome: string; target: string }[] }

async function read<Answer>({ adminUrl }: Pick<Inside, 'adminUrl'>, path: string): Promise<Answer> {
  const response = await fetch(`${adminUrl}${path}`, { headers: { authorization: `Bearer ${gatewayToken}` } })
  return (await response.json()) as Answer
}

const readMessages = async (gateway: Pick<Inside, 'adminUrl'>) =>
  (await read<Partial<Shown>>(gateway, '/api/sessions/hook%3Aticket')).messages ?? []

describeEngines('a session', (start) => {
  test('sessions trim keeps the newest exchanges, sessions clear none, and the audit log has both; a token that may only read may do neither', async () => {
    const gateway = await start({ config })
    closing.push(gateway.stop)
    for (let n = 0; n < 3; n += 1) await post(gateway.port, '/hooks/ticket', { n })
    await expect.poll(async () => (await readMessages(gateway)).length, { timeout: 60_000 }).toBe(6)
    const { dir, adminUrl } = gateway
    const run = (...args: string[]) => runCommand(['sessions', ...args], { dir })
    const trimmed = await run('trim', 'hook:ticket', '--keep', '1')
    expect(trimmed.stdout).toMatch(/^4 messages of the session hook:ticket deleted\.\n/)
    expect((await readMessages(gateway)).map(({ role, text }) => [role, text.includes('Comment 2')])).toEqual([
      ['user', true],
      ['assistant', true],
    ])
    const { events } = await read<Shown>(gateway, '/api/sessions/main')
    expect(events).toHaveLength(3)
    expect(JSON.parse((await run('clear', 'hook:ticket', '--json')).stdout)).toMatchObject({ ...ofTicket, deleted: 2 })
    expect(await readMessages(gateway)).toEqual([])
    expect((await run('clear', 'main')).stdout).toMatch(/^0 messages/)
    expect((await read<Shown>(gateway, '/api/sessions/main')).events).toEqual(events)
    expect(await run('clear', 'hook:none')).toMatchObject({ stderr: expect.stringContaining('has this key') })

    const { token } = JSON.parse(
      (await runCommand(['token', 'new', 'viewer', '--may', 'read', '--json'], { dir })).stdout,
    ) as { token: string }
    const call = async (bearer: string, query: string) => {
      const headers = { authorization: `Bearer ${bearer}` }
      return (await fetch(`${adminUrl}/api/sessions/main/trim${query}`, { method: 'POST', headers })).status
    }
    expect(await call(token, '?keep=0')).toBe(401)
    expect(await call(gatewayToken, '')).toBe(400)
    const { entries } = await read<Entries>(gateway, '/api/audit')
    const mine = entries.filter(({ act, outcome }) => act === 'session.trim' && outcome === 'done')
    expect(mine.map(({ target }) => target).toSorted()).toEqual(['hook:ticket', 'hook:ticket', 'main'])
  })
})
