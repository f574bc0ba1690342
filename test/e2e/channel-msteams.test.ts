// Replies on Microsoft Teams, through a fake login and connector that check requests as documented.
import { describe, expect, it } from 'vitest'
import { msteamsChannel } from '../../src/plugins/channels/msteams.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { startFakeTeams } from './fakes/msteams.ts'

const credentials = { appId: '3f1c0c9e-app', appPassword: 'se+cr/et&=~' }
const to = '19:0a1b2c@thread.tacv2'

async function start(config: object = {}) {
  const teams = await startFakeTeams({ ...credentials, tenantId: 'contoso', conversations: [to] })
  const section = sectionOf(msteamsChannel)
  const channel = openChannel(
    msteamsChannel,
    section.parse({
      ...credentials,
      tenantId: 'contoso',
      baseUrl: `${teams.connector.url}/`,
      loginUrl: teams.login.url,
      ...config,
    }),
  )
  return { channel, teams, fake: teams.connector, to, secret: credentials.appPassword }
}

it('a reply in Teams is posted as an activity with a token of the bot', async () => {
  const { channel, teams } = await start()
  expect(await channel.send(toOutgoing({ to: `conversation:${to}` }))).toEqual({ kind: 'sent', id: 'activity-1' })
  expect(teams.posted).toEqual([{ conversation: to, text: 'The build is green.' }])
  expect(teams.connector.received[0]?.path).toBe('/v3/conversations/19%3A0a1b2c%40thread.tacv2/activities')
})

it('one token serves many messages; when it is revoked, one attempt fails, and the next attempt gets a new token', async () => {
  const { channel, teams } = await start()
  await channel.send(toOutgoing({ to }))
  await channel.send(toOutgoing({ to }))
  expect(teams.login.received).toHaveLength(1)
  teams.revoke()
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'transient' })
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'sent', id: 'activity-3' })
  expect(teams.login.received).toHaveLength(2)
})

it('the markup of a reply stays Markdown, and text from an outsider in it stays plain text', async () => {
  const { channel, teams } = await start()
  const text =
    '**Done**: [log](https://ci.example.com/a_(1)), <at>Everyone</at> <img src="https://spy.example/x">, 1 < 2'
  await channel.send(toOutgoing({ to, text }))
  const [{ text: sent } = { text: '' }] = teams.posted
  expect(sent).toContain('**Done**: [log](https://ci.example.com/a_%281%29)')
  expect(sent).toContain('1 &lt; 2')
  expect(sent).not.toMatch(/<(at|img)/)
})

it('a message to a conversation that Teams does not know fails permanently', async () => {
  const { channel } = await start()
  expect(await channel.send(toOutgoing({ to: '19:other@thread.tacv2' }))).toMatchObject({
    kind: 'permanent',
    detail: expect.stringContaining('ConversationNotFound'),
  })
})

it.each([
  [{ appPassword: 'guessed' }, 'channels.msteams.appPassword'],
  [{ appId: 'another' }, 'channels.msteams.appId'],
  [{ tenantId: 'elsewhere' }, 'channels.msteams.tenantId'],
])('a login to Teams with %o posts nothing, and the failure names the key to check', async (config, key) => {
  const { channel, teams } = await start(config)
  const result = await channel.send(toOutgoing({ to }))
  expect(result).toMatchObject({ kind: 'permanent', detail: expect.stringContaining(key) })
  expect(JSON.stringify(result)).not.toContain('guessed')
  expect(teams.connector.received).toEqual([])
})

it('a login to Teams that is cut off or never answered has posted nothing, so it is a transient failure', async () => {
  const { channel, teams } = await start({ timeoutMs: 300 })
  teams.login.planAnswers('reset', 'silence')
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'transient' })
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'transient' })
  expect(teams.connector.received).toEqual([])
})

it('a probe of Teams asks for a token and posts nothing', async () => {
  const { signal } = new AbortController()
  const { channel, teams } = await start()
  expect(await channel.probe?.(signal)).toMatchObject({ ok: true })
  expect(teams.connector.received).toEqual([])
  const wrong = await start({ appPassword: 'guessed' })
  expect(await wrong.channel.probe?.(signal)).toMatchObject({ ok: false })
})

describe('faults of the connection to Teams', () => {
  testTroubles((options) => start(options))
})
