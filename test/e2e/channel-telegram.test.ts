// Replies on Telegram, through a fake Bot API on loopback that refuses what the real one refuses.
import { Api } from 'grammy'
import { describe, expect, it } from 'vitest'
import { telegramChannel } from '../../src/plugins/channels/telegram.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { refuse, startFakeTelegram } from './fakes/telegram.ts'

const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
const group = -1_001_234_567_890
const section = sectionOf(telegramChannel)

async function start(config: object = {}, chats: Partial<Parameters<typeof startFakeTelegram>[0]> = {}) {
  const fake = await startFakeTelegram({ botToken, chats: [group, 42, '@announcements'], ...chats })
  const channel = openChannel(telegramChannel, section.parse({ botToken, baseUrl: fake.baseUrl, ...config }))
  return { channel, fake, to: String(group), secret: botToken }
}

it('a reply in Telegram is a message in HTML, without link previews', async () => {
  const { channel, fake, to } = await start()
  const text = '**Done**: `a < b`, see [the log](https://ci.example.com/1?a=1&b=2).'
  expect(await channel.send(toOutgoing({ to, text }))).toEqual({ kind: 'sent', id: '1' })
  expect(fake.posted).toEqual([
    {
      chat_id: group,
      text: '<b>Done</b>: <code>a &lt; b</code>, see <a href="https://ci.example.com/1?a=1&amp;b=2">the log</a>.',
      parse_mode: 'HTML',
      link_preview_options: { is_disabled: true },
    },
  ])
})

it('the request for a message is the one that grammY makes', async () => {
  const { channel, fake } = await start()
  await channel.send(toOutgoing({ to: `${group}:topic:7`, text: 'Done.' }))
  await new Api(botToken, { apiRoot: fake.url }).sendMessage(group, 'Done.', {
    message_thread_id: 7,
    parse_mode: 'HTML',
    link_preview_options: { is_disabled: true },
  })
  const [ours, theirs] = fake.received
  expect(ours?.body).toEqual(theirs?.body)
  expect([ours?.method, ours?.path]).toEqual([theirs?.method, theirs?.path])
})

it('a reply can go to a person, a public name or the configured recipient', async () => {
  const { channel, fake } = await start({ to: '42' })
  await channel.send(toOutgoing({ to: '@announcements' }))
  await channel.send(toOutgoing())
  expect(fake.posted.map(({ chat_id: chat }) => chat)).toEqual(['@announcements', 42])
})

it('a group that became a supergroup gets the reply under its new id', async () => {
  const { channel, fake } = await start({}, { moved: { '-7': group } })
  expect(await channel.send(toOutgoing({ to: '-7' }))).toMatchObject({ kind: 'sent' })
  expect(fake.posted).toMatchObject([{ chat_id: group }])
})

it('a reply arrives as plain text if Telegram cannot parse its tags', async () => {
  const { channel, fake, to } = await start({}, { noHtml: true })
  expect(await channel.send(toOutgoing({ to, text: '**Done** & <b>dusted</b>.' }))).toMatchObject({ kind: 'sent' })
  expect(fake.posted).toEqual([
    { chat_id: group, text: 'Done & <b>dusted</b>.', link_preview_options: { is_disabled: true } },
  ])
})

it('a long reply with code is split into messages that Telegram accepts', async () => {
  const { channel, fake, to } = await start()
  const text = `# Report\n\n${'All <well> & good. '.repeat(400)}\n\n\`\`\`ts\n${'const a = b < c\n'.repeat(500)}\`\`\`\n\nThe end.`
  for (const piece of channel.split(text)) {
    expect(await channel.send(toOutgoing({ to, text: piece }))).toMatchObject({ kind: 'sent' })
  }
  expect(fake.posted.length).toBeGreaterThan(3)
  expect(
    fake.posted.filter(({ text: html }) => html.includes('<pre><code class="language-ts">')).length,
  ).toBeGreaterThan(1)
})

it('the limit counts visible characters: 4,096 characters that need escapes are one message', async () => {
  const { channel, fake, to } = await start()
  const text = '&'.repeat(4_096)
  expect(channel.split(text)).toEqual([text])
  expect(channel.split(`${text}&`)).toHaveLength(2)
  expect(await channel.send(toOutgoing({ to, text }))).toMatchObject({ kind: 'sent' })
  expect(fake.posted[0]?.text).toHaveLength(5 * 4_096)
})

it.each([
  [401, 'Unauthorized', 'Check channels.telegram.botToken'],
  [400, 'Bad Request: chat not found', 'must write to the bot first'],
  [400, 'Bad Request: message thread not found', 'does not exist or is closed'],
  [403, 'Forbidden: bot was blocked by the user', 'Unblock it'],
])('the refusal %i %s is permanent, and its reason contains: %s', async (status, description, hint) => {
  const { channel, fake, to } = await start()
  fake.planAnswers(refuse(status, description))
  const result = await channel.send(toOutgoing({ to }))
  expect(result).toMatchObject({ kind: 'permanent', detail: expect.stringContaining(hint) })
})

it('a retry waits as long as Telegram says in the body of its flood control answer', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers(refuse(429, 'Too Many Requests: retry after 35', { retry_after: 35 }))
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'rate-limited', retryAfterMs: 35_000 })
})

it('a probe of Telegram names the bot, or says that the token is wrong without showing it', async () => {
  const { channel, fake } = await start()
  const { signal } = new AbortController()
  expect(await channel.probe?.(signal)).toEqual({ ok: true, detail: 'Telegram accepts the token of @hook_bot.' })
  const wrong = openChannel(telegramChannel, section.parse({ botToken: '1:wrong-one', baseUrl: fake.baseUrl }))
  const probe = await wrong.probe?.(signal)
  expect(probe).toMatchObject({ ok: false, detail: expect.stringContaining('Check channels.telegram.botToken') })
  expect(probe?.detail).not.toContain('wrong-one')
  expect(fake.posted).toEqual([])
})

describe('faults of the connection to Telegram', () => {
  testTroubles((options) => start(options))
})
