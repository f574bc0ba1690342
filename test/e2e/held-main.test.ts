// A wake is heard at once, although runs of the session main wait for something that is not about the heartbeat.
import { expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { chatCompletions } from './fakes/chat-completions.ts'
import { apiKey, startFakeProvider } from './fakes/provider.ts'
import { gatewayToken } from './gateway.ts'
import type { Inside } from './inside.ts'
import { post } from './wire.ts'

const config = {
  budgets: { small: { turns: 1, period: '1d' } },
  hooks: {
    mappings: ['paused', 'spent'].map((id) => ({
      id,
      match: { path: id },
      sessionKey: 'main',
      messageTemplate: 'Report {{n}}',
      wakeMode: 'next-heartbeat',
      deliver: false,
      ...(id === 'spent' && { budgets: ['small'] }),
    })),
  },
}

async function listWaits({ adminUrl }: Pick<Inside, 'adminUrl'>): Promise<readonly (string | undefined)[]> {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const answer = await fetch(`${adminUrl}/api/deliveries?state=accepted`, { headers })
  const { deliveries } = (await answer.json()) as { deliveries: { hook: string; waits?: string }[] }
  return deliveries.filter(({ hook }) => hook !== 'wake').map(({ waits }) => waits)
}

describeEngines('a wake while runs of the session main are held back', (start) => {
  test.each([
    ['the pause of their mapping', 'paused', [/paused its mapping/, /paused its mapping/, /paused its mapping/]],
    ['a used-up budget', 'spent', [undefined, /for the budget small/, /1 earlier run of its session/]],
  ] as const)('by %s is heard at once, and the runs still wait', async (_, hook, expected) => {
    const fake = await startFakeProvider(chatCompletions)
    const gateway = await start({
      config: {
        ...config,
        models: { providers: { mine: { kind: 'openai-compatible', baseUrl: fake.baseUrl, apiKey } } },
        agents: { defaults: { model: 'mine/small' } },
      },
    })
    if (hook === 'paused') await runCommand(['pause', 'paused'], { dir: gateway.dir })
    for (let n = 0; n < 3; n += 1) await post(gateway.port, `/hooks/${hook}`, { n })
    const areHeld = expected.map((why) => why && expect.stringMatching(why))
    await expect.poll(() => listWaits(gateway)).toEqual(areHeld)
    await post(gateway.port, '/hooks/wake', { text: 'Somebody rings.', mode: 'now' })
    const heard = () => fake.received.filter(({ text }) => text.includes('Somebody rings.'))
    await expect.poll(() => heard().length).toBe(1)
    expect(heard()[0]?.text).toContain('This is a heartbeat.')
    await expect.poll(() => listWaits(gateway)).toEqual(areHeld)
    await gateway.stop()
    fake.close()
  })
})
