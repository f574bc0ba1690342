// Comments on Linear, through a fake of its GraphQL API on loopback.
import { expect, it } from 'vitest'
import { linearChannel } from '../../src/plugins/channels/linear.ts'
import { isOwnCommentId } from '../../src/model/comment.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { linearApiKey, startFakeLinear, toLinearError } from './fakes/linear.ts'

const section = sectionOf(linearChannel)
const nonce = '0123456789abcdef012345678'

async function start(config: object = {}) {
  const fake = await startFakeLinear()
  const channel = openChannel(linearChannel, section.parse({ apiKey: linearApiKey, baseUrl: fake.url, ...config }))
  return { channel, fake, to: 'ENG-17', secret: linearApiKey }
}

it.each(['ENG-17', '539068e2-ae88-4d09-bd75-22eb4a59612f'])(
  'a reply to %s is a comment without mentions, and its id shows that Hookloom wrote it',
  async (to) => {
    const { channel, fake } = await start()
    const result = await channel.send(toOutgoing({ to, text: 'See @ada', nonce }))
    expect(result).toEqual({ kind: 'sent', id: fake.comments[0]?.id })
    expect(fake.comments.map(({ issueId, body }) => [issueId, body.replaceAll('\u200B', '|')])).toEqual([
      [to, 'See @|ada'],
    ])
    expect(isOwnCommentId(fake.comments[0]?.id ?? '')).toBe(true)
  },
)

it.each([
  ['a connection that is cut after the comment was posted', 'reset' as const],
  ['a 502 after the comment was posted', { status: 502, body: 'Bad Gateway' }],
])('after %s, the second attempt posts no second comment', async (_, ending) => {
  const { channel, fake, to } = await start()
  fake.loseAnswers(ending)
  expect(await channel.send(toOutgoing({ to, nonce }))).toMatchObject({ kind: 'ambiguous' })
  const again = await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))
  expect(again).toEqual({ kind: 'sent', id: fake.comments[0]?.id })
  expect(fake.comments).toHaveLength(1)
  await channel.send(toOutgoing({ to, nonce: `${nonce.slice(1)}9` }))
  expect(fake.comments).toHaveLength(2)
})

it('if the first attempt never arrived, the second attempt posts the comment once', async () => {
  const { channel, fake, to } = await start()
  expect(await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))).toMatchObject({ kind: 'sent' })
  expect(fake.comments).toHaveLength(1)
})

it('a second attempt does not fail permanently while Linear does not say whether the comment is there', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers(toLinearError(200, 'INPUT_ERROR'), toLinearError(400, 'RATELIMITED'))
  expect(await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))).toMatchObject({ kind: 'rate-limited' })
  fake.planAnswers(toLinearError(200, 'INPUT_ERROR'), { status: 502, body: 'Bad Gateway' })
  expect(await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))).toMatchObject({ kind: 'transient' })
})

it('a second attempt to an unknown issue is refused, because no comment is there', async () => {
  const { channel, fake } = await start()
  const result = await channel.send(toOutgoing({ to: 'ENG-99', nonce, maybeSince: Date.now() }))
  expect(result).toMatchObject({ kind: 'permanent' })
  expect(fake.comments).toEqual([])
})

it.each([
  ['a wrong API key', toLinearError(401, 'AUTHENTICATION_ERROR'), { kind: 'permanent' }],
  ['a missing permission', toLinearError(200, 'FORBIDDEN'), { kind: 'permanent' }],
  ['an invalid input', toLinearError(200, 'INPUT_ERROR'), { kind: 'permanent' }],
  ['an error inside Linear', toLinearError(200, 'INTERNAL_SERVER_ERROR'), { kind: 'ambiguous' }],
  ['a limit with Retry-After', toLinearError(400, 'RATELIMITED', { 'retry-after': '30' }), { retryAfterMs: 30_000 }],
  ['a limit without a time', toLinearError(400, 'RATELIMITED'), { kind: 'rate-limited' }],
])('the answer of Linear for %s decides whether and when the reply is tried again', async (_, reply, expected) => {
  const { channel, fake, to } = await start()
  fake.planAnswers(reply)
  const result = await channel.send(toOutgoing({ to }))
  expect(result).toMatchObject(expected)
  expect(JSON.stringify(result)).not.toMatch(/lin_api|words of Linear/)
})

it('a retry waits until the end of a rate limit, which Linear gives in milliseconds', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers(toLinearError(400, 'RATELIMITED', { 'x-ratelimit-requests-reset': String(Date.now() + 600_000) }))
  const result = await channel.send(toOutgoing({ to }))
  expect(result.kind).toBe('rate-limited')
  const waitMs = 'retryAfterMs' in result ? (result.retryAfterMs ?? 0) : 0
  expect(waitMs).toBeGreaterThan(0)
  expect(waitMs).toBeLessThanOrEqual(600_000)
})

it('Linear has no commit statuses, and a probe says whether it accepts the API key', async () => {
  const { channel, fake } = await start()
  expect(channel.setStatus).toBeUndefined()
  const { signal } = new AbortController()
  expect(await channel.probe?.(signal)).toEqual({ ok: true, detail: 'Linear accepts the API key.' })
  const other = openChannel(linearChannel, section.parse({ apiKey: 'lin_api_wrong', baseUrl: fake.url }))
  expect(await other.probe?.(signal)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('channels.linear.apiKey'),
  })
})

testTroubles(start)
