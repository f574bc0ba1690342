// Replies in rooms of Matrix, through a fake homeserver on loopback that refuses what the specification refuses.
import { describe, expect, it } from 'vitest'
import { matrixChannel } from '../../src/plugins/channels/matrix.ts'
import { openChannel, sectionOf, toOutgoing } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { startFakeMatrix } from './fakes/matrix.ts'

const token = 'syt_aG9va3M_oi6k8wg3kfyjpx8kuz9e_1x2y3z'
const room = '!town:example.org'
const section = sectionOf(matrixChannel)

async function start(config: object = {}) {
  const fake = await startFakeMatrix({ token, rooms: [room, '!new'], aliases: { '#town:example.org': room } })
  const channel = openChannel(matrixChannel, section.parse({ accessToken: token, baseUrl: fake.url, ...config }))
  return { channel, fake, to: room, secret: token }
}

it('a reply in Matrix is a notice with its text and its HTML, and mentions nobody', async () => {
  const { channel, fake, to } = await start()
  const text = '**Done** <script>x</script> @room ![a](https://evil.example/?secret=1)\nnext line\n\n```js\na\nb\n```'
  expect(await channel.send(toOutgoing({ to, text }))).toEqual({ kind: 'sent', id: '$event1' })
  const [event] = fake.posted
  expect(event?.['m.mentions']).toEqual({})
  expect(event?.formatted_body).toContain('<b>Done</b> &lt;script&gt;x&lt;/script&gt; @\u200Broom')
  expect(event?.formatted_body).toContain('next line<br>')
  expect(event?.formatted_body).toContain('<pre><code class="language-js">a\nb</code></pre>')
  expect(event?.formatted_body).not.toMatch(/<img|<script/)
  expect(event?.body).toMatch(/^Done <script>x<\/script> @\u200Broom/)
})

it('a room is found by its id, with a server or without one, and by its name', async () => {
  const { channel, fake } = await start()
  for (const to of [room, '!new', '#town:example.org']) await channel.send(toOutgoing({ to, nonce: to.slice(0, 5) }))
  expect(fake.posted.map((event) => event.room)).toEqual([room, '!new', room])
})

it('a repeated attempt makes no second event', async () => {
  const { channel, fake, to } = await start()
  expect(channel.dedupes).toBe(true)
  const results = [await channel.send(toOutgoing({ to })), await channel.send(toOutgoing({ to }))]
  expect(results).toEqual([
    { kind: 'sent', id: '$event1' },
    { kind: 'sent', id: '$event1' },
  ])
  expect(fake.posted).toHaveLength(1)
})

it('a long reply is split into events that the server takes', async () => {
  const { channel, fake, to } = await start()
  const pieces = channel.split('**Ahoy** & <all> "of" you ⛵️\n\n'.repeat(4_000))
  for (const [index, text] of pieces.entries()) {
    const sent = await channel.send(toOutgoing({ to, text, nonce: `n${index}` }))
    expect(sent).toMatchObject({ kind: 'sent' })
  }
  expect(fake.posted.length).toBe(pieces.length)
  expect(pieces.length).toBeGreaterThan(3)
})

it.each([
  ['a room without the bot', '!other:example.org', /403 \(M_FORBIDDEN\)\. The bot is not in the room/],
  ['a name that nothing has', '#pier:example.org', /404 \(M_NOT_FOUND\)\. The room does not exist/],
  ['a person', '@ada:example.org', /is not a recipient on matrix/],
])('%s is a failure that no repetition mends', async (_, to, detail) => {
  const { channel, fake } = await start()
  expect(await channel.send(toOutgoing({ to }))).toEqual({ kind: 'permanent', detail: expect.stringMatching(detail) })
  expect(fake.posted).toEqual([])
})

it('a retry waits for as long as the homeserver asks in its answer', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers({ status: 429, body: { errcode: 'M_LIMIT_EXCEEDED', error: 'x', retry_after_ms: 2_000 } })
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'rate-limited', retryAfterMs: 2_000 })
})

it('a probe of Matrix names the bot, or says that the token is wrong without showing it', async () => {
  const { channel, fake } = await start()
  const { signal } = new AbortController()
  expect(await channel.probe?.(signal)).toEqual({ ok: true, detail: 'Matrix accepts the token of @hooks:example.org.' })
  const wrong = openChannel(matrixChannel, section.parse({ accessToken: 'wrong-one', baseUrl: fake.url }))
  const probe = await wrong.probe?.(signal)
  expect(probe).toMatchObject({ ok: false, detail: expect.stringContaining('channels.matrix.accessToken') })
  expect(probe?.detail).not.toContain('wrong-one')
})

describe('faults of the connection to Matrix', () => {
  testTroubles((options) => start(options))
})
