// Replies on Signal, through a fake daemon that answers like signal-cli.
import { describe, expect, it } from 'vitest'
import { signalChannel } from '../../src/plugins/channels/signal.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { buildRpcError, startFakeSignal, toResult } from './fakes/signal.ts'

const to = '+15550100'

async function start(config: object = {}, accounts?: readonly string[]) {
  const fake = await startFakeSignal(accounts && { accounts })
  const channel = openChannel(signalChannel, sectionOf(signalChannel).parse({ baseUrl: fake.url, ...config }))
  // the daemon has no password, so every client that reaches it may send
  return { channel, fake, to, secret: 'no secret' }
}

it.each([
  [to, { recipient: ['+15550100'] }],
  ['uuid:0b7a3b3c-58a4-4b13-8f55-3b2e6f1c9c11', { recipient: ['0b7a3b3c-58a4-4b13-8f55-3b2e6f1c9c11'] }],
  ['username:alice.42', { username: ['alice.42'] }],
  ['group:Pmpi+EfPWmsxiomLe9Nx2XF9HOE483p6iKiFj65iMwI=', { groupId: 'Pmpi+EfPWmsxiomLe9Nx2XF9HOE483p6iKiFj65iMwI=' }],
])('a reply to %s is one call of the method send', async (recipient, params) => {
  const { channel, fake } = await start()
  expect(await channel.send(toOutgoing({ to: recipient }))).toEqual({ kind: 'sent', id: '1700000000001' })
  expect(fake.posted).toEqual([{ ...params, message: 'The build is green.' }])
})

it('Markdown becomes plain text with style ranges in UTF-16 units', async () => {
  const { channel, fake } = await start()
  await channel.send(toOutgoing({ to, text: '😀 **Привет** and `code`' }))
  expect(fake.posted).toEqual([
    {
      recipient: [to],
      message: '😀 Привет and code',
      textStyle: expect.arrayContaining(['3:6:BOLD', '14:4:MONOSPACE']),
    },
  ])
})

it('a daemon with several accounts needs the number of the account that sends', async () => {
  const unnamed = await start({}, ['+15550199'])
  expect(await unnamed.channel.send(toOutgoing({ to }))).toMatchObject({
    kind: 'permanent',
    detail: expect.stringContaining('channels.signal.account'),
  })
  const named = await start({ account: '+15550199' }, ['+15550199'])
  expect(await named.channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'sent' })
})

it('a challenge of Signal counts as a rate limit, and its token is not shown', async () => {
  const { channel, fake } = await start()
  const results = [toResult('RATE_LIMIT_FAILURE', { token: 'challenge', retryAfterSeconds: 3_600 })]
  fake.planAnswers(buildRpcError(-5, 'Failed to send message due to rate limiting', results))
  const result = await channel.send(toOutgoing({ to }))
  expect(result).toMatchObject({ kind: 'rate-limited', retryAfterMs: 3_600_000 })
  expect(JSON.stringify(result)).not.toContain('"challenge"')
})

it('a probe of Signal asks whether the daemon is running', async () => {
  const { signal } = new AbortController()
  const { channel, fake } = await start()
  expect(await channel.probe?.(signal)).toMatchObject({ ok: true })
  fake.close()
  expect(await channel.probe?.(signal)).toMatchObject({ ok: false })
})

describe('faults of the connection to Signal', () => {
  testTroubles((options) => start(options))
})
