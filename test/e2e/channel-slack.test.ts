// Replies on Slack, through a fake Web API on loopback that refuses what the real one refuses.
import { WebClient } from '@slack/web-api'
import { describe, expect, it } from 'vitest'
import { slackChannel } from '../../src/plugins/channels/slack.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { refuse, startFakeSlack, toArguments } from './fakes/slack.ts'

const botToken = 'xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzbqgy'
const room = 'C024BE91L'
const section = sectionOf(slackChannel)

async function start(config: object = {}) {
  const users = { U024BE7LH: 'D024BFF1M' }
  const fake = await startFakeSlack({ botToken, channels: [room], others: ['C024BE92M'], users })
  const channel = openChannel(slackChannel, section.parse({ botToken, baseUrl: fake.baseUrl, ...config }))
  return { channel, fake, to: room, secret: botToken }
}

it('a reply in Slack is mrkdwn without mentions or link previews', async () => {
  const { channel, fake, to } = await start()
  const text = '**Done** <!channel> <@U024BE7LH> & [the log](https://ci.example.com/1?a=1&b=2|x)'
  expect(await channel.send(toOutgoing({ to, text }))).toEqual({ kind: 'sent', id: '1700000000.000001' })
  expect(fake.posted).toEqual([
    {
      channel: room,
      text: '*Done* &lt;!channel&gt; &lt;@U024BE7LH&gt; &amp; <https://ci.example.com/1?a=1&amp;b=2%7Cx|the log>',
      unfurl_links: false,
      unfurl_media: false,
      metadata: { event_type: 'hookloom_reply', event_payload: { run_id: 'run-1', nonce: 'nonce-1' } },
    },
  ])
})

it('the request for a message is the one that Slack’s own client makes', async () => {
  const { channel, fake, to } = await start()
  await channel.send(toOutgoing({ to }))
  const client = new WebClient(botToken, { slackApiUrl: `${fake.baseUrl}/`, retryConfig: { retries: 0 } })
  const [message] = fake.posted
  if (message === undefined) throw new Error('nothing was posted')
  await client.apiCall('chat.postMessage', message)
  const [ours, theirs] = fake.received
  if (ours === undefined || theirs === undefined) throw new Error('a request is missing')
  expect(toArguments(ours)).toEqual(toArguments(theirs))
  expect([ours.method, ours.path, ours.headers.authorization]).toEqual([
    theirs.method,
    theirs.path,
    theirs.headers.authorization,
  ])
})

it('a message goes to the thread that its recipient names', async () => {
  const { channel, fake } = await start()
  await channel.send(toOutgoing({ to: `channel:${room}:thread:1700000000.000001` }))
  await channel.send(toOutgoing({ to: room }))
  expect(fake.posted.map((message) => [message.channel, message.thread_ts])).toEqual([
    [room, '1700000000.000001'],
    [room, undefined],
  ])
})

it('a person is reached through a direct channel that is opened once', async () => {
  const { channel, fake } = await start()
  await channel.send(toOutgoing({ to: 'user:U024BE7LH' }))
  await channel.send(toOutgoing({ to: 'user:U024BE7LH' }))
  expect(fake.posted.map((message) => message.channel)).toEqual(['D024BFF1M', 'D024BFF1M'])
  expect(fake.received.filter(({ path }) => path.endsWith('conversations.open'))).toHaveLength(1)
})

it.each([
  ['not_in_channel', 'permanent', '/invite'],
  ['invalid_auth', 'permanent', 'channels.slack.botToken'],
  ['missing_scope', 'permanent', 'chat:write'],
  ['some_new_error', 'permanent', 'See the errors of chat.postMessage'],
  ['ratelimited', 'rate-limited', 'Too many'],
  ['service_unavailable', 'transient', 'at the moment'],
  ['internal_error', 'ambiguous', 'while it posted'],
])(
  'the error %s, which Slack answers with status 200, is %s and its reason contains: %s',
  async (error, kind, hint) => {
    const { channel, fake, to } = await start()
    fake.planAnswers(refuse(error))
    const result = await channel.send(toOutgoing({ to }))
    expect(result).toMatchObject({
      kind,
      detail: expect.stringMatching(`^Slack answered 200 \\(${error}\\)\\. .*${hint}`),
    })
  },
)

it('an error text that could quote the message is not shown', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers(refuse('The build is green.'))
  const result = await channel.send(toOutgoing({ to }))
  expect(result.kind).toBe('permanent')
  expect(JSON.stringify(result)).not.toContain('The build is green')
})

it('a message to a channel without the app, or to one that does not exist, fails permanently', async () => {
  const { channel } = await start()
  expect(await channel.send(toOutgoing({ to: 'C024BE92M' }))).toMatchObject({ kind: 'permanent' })
  expect(await channel.send(toOutgoing({ to: 'channel:C999BE92M' }))).toMatchObject({ kind: 'permanent' })
})

it('a long reply is split into messages of four thousand characters with their escapes', async () => {
  const { channel, fake, to } = await start()
  for (const piece of channel.split('if a < b && c > d then stop. '.repeat(500))) {
    await channel.send(toOutgoing({ to, text: piece }))
  }
  expect(fake.posted.length).toBeGreaterThan(4)
  expect(Math.max(...fake.posted.map(({ text }) => text.length))).toBeLessThanOrEqual(4_000)
})

it('a probe of Slack names the app, or says that the token is wrong without showing it', async () => {
  const { channel, fake } = await start()
  const { signal } = new AbortController()
  expect(await channel.probe?.(signal)).toEqual({ ok: true, detail: 'Slack accepts the token of hooks in Example.' })
  const wrong = openChannel(slackChannel, section.parse({ botToken: 'xoxb-wrong', baseUrl: fake.baseUrl }))
  const probe = await wrong.probe?.(signal)
  expect(probe).toMatchObject({ ok: false, detail: expect.stringContaining('channels.slack.botToken') })
  expect(probe?.detail).not.toContain('xoxb')
})

describe('faults of the connection to Slack', () => {
  testTroubles((options) => start(options))
})
