// What heartbeats cost: doctor and the page show the turns and the tokens of the last 24 hours.
import { expect, test } from 'vitest'
import type { OutletsFields } from '../../src/model/api/health.ts'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { chatCompletions } from './fakes/chat-completions.ts'
import { apiKey, startFakeProvider } from './fakes/provider.ts'
import { gatewayToken } from './gateway.ts'
import { post } from './wire.ts'

describeEngines('the cost of heartbeats', (start) => {
  test('doctor and the API show the turn of a heartbeat with its tokens, and not the turn of the webhook before it', async () => {
    const fake = await startFakeProvider(chatCompletions)
    const { dir, port, adminUrl } = await start({
      config: {
        models: { providers: { mine: { kind: 'openai-compatible', baseUrl: fake.baseUrl, apiKey } } },
        agents: { defaults: { model: 'mine/small' } },
      },
    })
    const headers = { authorization: `Bearer ${gatewayToken}` }
    const read = async () =>
      ((await (await fetch(`${adminUrl}/api/outlets`, { headers })).json()) as OutletsFields).heartbeats
    const examine = async () =>
      (await runCommand(['doctor', '--json'], { dir })).json().find(({ name }) => name === 'heartbeats')
    expect(await examine()).toEqual({ name: 'heartbeats', ok: true, detail: '0 turns in the last 24 hours' })
    await post(port, '/hooks/agent', { message: 'The build is red.' })
    await expect.poll(read).toEqual({ turns: 1, uncounted: 0, inputTokens: 11, outputTokens: 7 })
    expect(await examine()).toMatchObject({ detail: '1 turn in the last 24 hours, with 11 tokens in and 7 tokens out' })
    fake.close()
  })
})
