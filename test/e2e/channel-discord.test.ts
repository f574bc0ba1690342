// Replies on Discord, through a fake API on loopback that refuses what the real one refuses.
import { REST } from '@discordjs/rest'
import { describe, expect, it } from 'vitest'
import { discordChannel } from '../../src/plugins/channels/discord.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { refuse, startFakeDiscord, toDirectId } from './fakes/discord.ts'

const botToken = 'MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs'
const room = '381870553235193857'
const ada = '175928847299117063'
const grace = '175928847299117064'
const section = sectionOf(discordChannel)

async function start(config: object = {}) {
  const fake = await startFakeDiscord({ botToken, channels: [room], users: [ada, grace], silent: [grace] })
  const channel = openChannel(discordChannel, section.parse({ botToken, baseUrl: fake.baseUrl, ...config }))
  return { channel, fake, to: room, secret: botToken }
}

it('a reply in Discord is a message without mentions or link previews', async () => {
  const { channel, fake, to } = await start()
  const text = '**Done** @everyone <@175928847299117063>, see https://ci.example.com/1'
  expect(await channel.send(toOutgoing({ to, text }))).toEqual({ kind: 'sent', id: '1000001' })
  expect(fake.posted).toEqual([
    {
      channel: room,
      content: '**Done** @\u200Beveryone <\u200B@\u200B175928847299117063>, see <https://ci.example.com/1>',
      nonce: 'nonce-1',
      enforce_nonce: true,
      allowed_mentions: { parse: [] },
      flags: 4,
    },
  ])
})

it('the request for a message is the one that discord.js makes', async () => {
  const { channel, fake, to } = await start()
  await channel.send(toOutgoing({ to }))
  const [ours] = fake.received
  const rest = new REST({ version: '10', api: `${fake.url}/api` }).setToken(botToken)
  await rest.post(`/channels/${room}/messages`, { body: ours?.body })
  rest.clearHashSweeper()
  rest.clearHandlerSweeper()
  const [, theirs] = fake.received
  expect([ours?.method, ours?.path, ours?.body]).toEqual([theirs?.method, theirs?.path, theirs?.body])
  expect(ours?.headers.authorization).toBe(theirs?.headers.authorization)
  expect(theirs?.headers['user-agent']).toMatch(/^DiscordBot \(/)
})

it('an attempt with an unknown result is repeated under its nonce, and people see one message', async () => {
  const { channel, fake, to } = await start()
  const message = toOutgoing({ to })
  expect(await channel.send(message)).toEqual({ kind: 'sent', id: '1000001' })
  fake.planAnswers('reset')
  expect(await channel.send(message)).toMatchObject({ kind: 'ambiguous' })
  expect(await channel.send(message)).toEqual({ kind: 'sent', id: '1000001' })
  expect(await channel.send({ ...message, nonce: 'nonce-2' })).toEqual({ kind: 'sent', id: '1000002' })
  expect(fake.posted).toHaveLength(2)
  expect(channel.dedupes).toBe('briefly')
})

it('a reply to a person goes to a direct channel that is opened once', async () => {
  const { channel, fake } = await start({ to: `user:${ada}` })
  await channel.send(toOutgoing())
  await channel.send(toOutgoing({ nonce: 'nonce-2' }))
  expect(fake.posted.map((message) => message.channel)).toEqual([toDirectId(ada), toDirectId(ada)])
  expect(fake.received.filter(({ path }) => path.endsWith('/users/@me/channels'))).toHaveLength(1)
})

it('a reply whose direct channel could not be opened is tried again, because nothing was posted', async () => {
  const { channel, fake } = await start()
  const message = toOutgoing({ to: `user:${ada}` })
  fake.planAnswers('reset')
  expect(await channel.send(message)).toMatchObject({ kind: 'transient' })
  expect(await channel.send(message)).toMatchObject({ kind: 'sent' })
})

it('a direct message to a person who accepts none, or who does not exist, fails permanently and says so', async () => {
  const { channel } = await start()
  expect(await channel.send(toOutgoing({ to: `user:${grace}` }))).toEqual({
    kind: 'permanent',
    detail:
      'Discord answered 403 (50007). The user does not accept direct messages from the bot. Name a channel, or ask the user to allow messages from the server.',
  })
  expect(await channel.send(toOutgoing({ to: 'user:175928847299117099' }))).toMatchObject({
    kind: 'permanent',
    detail: expect.stringContaining('user does not exist'),
  })
})

it('the error for a channel that the bot may not see names the missing permission', async () => {
  const { channel } = await start()
  const result = await channel.send(toOutgoing({ to: '381870553235193999' }))
  expect(result).toMatchObject({ kind: 'permanent', detail: expect.stringContaining('grant it View Channel') })
})

it('a retry waits as long as Discord asks for, to the fraction of a second', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers({
    status: 429,
    headers: { 'retry-after': '1' },
    body: { message: 'You are being rate limited.', retry_after: 0.4567, global: false },
  })
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'rate-limited', retryAfterMs: 457 })
})

it('a long reply is split into messages that Discord accepts', async () => {
  const { channel, fake, to } = await start()
  const text = `${'Ein längerer Satz mit <Zeichen> & @jemand. '.repeat(120)}\n\n\`\`\`js\n${'let x = 1\n'.repeat(400)}\`\`\``
  const pieces = channel.split(text)
  for (const [index, piece] of pieces.entries()) {
    expect(await channel.send(toOutgoing({ to, text: piece, nonce: `n-${index}` }))).toMatchObject({ kind: 'sent' })
  }
  expect(fake.posted.length).toBe(pieces.length)
})

it('a probe of Discord names the bot, or says that the token is wrong without showing it', async () => {
  const { channel, fake } = await start()
  const { signal } = new AbortController()
  expect(await channel.probe?.(signal)).toEqual({ ok: true, detail: 'Discord accepts the token of hooks.' })
  fake.planAnswers(refuse(401, 0, '401: Unauthorized'))
  expect(await channel.probe?.(signal)).toEqual({
    ok: false,
    detail: 'Discord answered 401. The bot token is wrong. Check channels.discord.botToken.',
  })
})

describe('faults of the connection to Discord', () => {
  testTroubles((options) => start(options))
})
