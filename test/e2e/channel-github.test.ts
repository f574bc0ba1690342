// Comments and commit statuses on GitHub, through a fake API on loopback that refuses what the real one refuses.
import { describe, expect, it } from 'vitest'
import { signNonce, toMarker } from '../../src/model/comment.ts'
import { githubChannel } from '../../src/plugins/channels/github.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { githubApiToken, startFakeGitHub } from './fakes/github.ts'
import { githubApp } from './fakes/github-deliveries.ts'

const section = sectionOf(githubChannel)
const issue = 'acme/app#17'
const commit = 'acme/app@0123456789abcdef0123456789abcdef01234567'
const nonce = '0123456789abcdef012345678'
const mark = signNonce(nonce, githubApiToken)
const privateKey = githubApp.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

async function start(config: object = {}) {
  const fake = await startFakeGitHub()
  const channel = openChannel(githubChannel, section.parse({ token: githubApiToken, baseUrl: fake.url, ...config }))
  return { channel, fake, to: issue, secret: githubApiToken }
}

async function startApp(clock: () => number = Date.now) {
  const fake = await startFakeGitHub({ clock })
  const config = section.parse({ appId: githubApp.id, privateKey, baseUrl: fake.url })
  return { channel: openChannel(githubChannel, config, { clock }), fake }
}

const pending = {
  commit,
  name: 'review',
  state: 'pending',
  description: 'Run 0193 waits.',
  signal: new AbortController().signal,
} as const

it('a reply on GitHub is a comment with a hidden marker, without mentions, tags or references to other issues', async () => {
  const { channel, fake, to } = await start()
  const text = '**Done** @ada <img src="https://evil.example/x.png"> like #12 and acme/app#3 <!-- x -->'
  const result = await channel.send(toOutgoing({ to, text, nonce }))
  expect(result).toEqual({ kind: 'sent', id: String(fake.comments[0]?.id) })
  expect(fake.comments.map(({ issue: place, body }) => [place, body.replaceAll('\u200B', '|')])).toEqual([
    [
      issue,
      '**Done** @|ada &lt;img src="https://evil.example/x.png"> like #|12 and acme/app#|3 &lt;\\!-- x -->\n\n' +
        `<!-- hookloom:${mark} -->`,
    ],
  ])
  const [{ method, path, headers } = { method: '', path: '', headers: {} }] = fake.received
  expect([method, path]).toEqual(['POST', '/repos/acme/app/issues/17/comments'])
  expect(headers).toMatchObject({ accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' })
})

it.each([
  ['a connection that is cut after the comment was posted', 'reset' as const],
  ['a 502 after the comment was posted', { status: 502, body: 'Bad Gateway' }],
])('after %s, the second attempt finds the comment and posts no other', async (_, ending) => {
  const { channel, fake, to } = await start()
  fake.loseAnswers(ending)
  expect(await channel.send(toOutgoing({ to, nonce }))).toMatchObject({ kind: 'ambiguous' })
  for (let more = 0; more < 120; more += 1) fake.addOthers(issue, 'More.')
  const again = await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))
  expect(again).toEqual({ kind: 'sent', id: String(fake.comments[0]?.id) })
  expect(fake.comments.filter(({ body }) => body.includes(mark))).toHaveLength(1)
})

it('if the first attempt never arrived, the second attempt posts the comment once', async () => {
  const { channel, fake, to } = await start()
  for (let more = 0; more < 120; more += 1) fake.addOthers(issue, 'More.')
  expect(await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))).toMatchObject({ kind: 'sent' })
  expect(fake.comments.filter(({ body }) => body.includes(mark))).toHaveLength(1)
})

it('a comment by somebody who knows the nonce of the reply, but not the credential, is not taken for the reply', async () => {
  const { channel, fake, to } = await start()
  fake.addOthers(issue, `Mine.\n\n${toMarker(nonce)}`)
  fake.addOthers(issue, `Mine.\n\n${toMarker(signNonce(nonce, 'guessed'))}`)
  expect(await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))).toMatchObject({ kind: 'sent' })
  expect(fake.comments).toHaveLength(3)
})

it('a second attempt that cannot look up the comment posts no comment, and is tried again', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers({ status: 502, body: 'Bad Gateway' })
  expect(await channel.send(toOutgoing({ to, nonce, maybeSince: 0 }))).toMatchObject({ kind: 'transient' })
  expect(fake.comments).toEqual([])
})

it.each([
  ['401', { status: 401, body: { message: 'Bad credentials' } }, { kind: 'permanent' }],
  ['403', { status: 403, body: { message: 'Resource not accessible by integration' } }, { kind: 'permanent' }],
  ['404', { status: 404, body: { message: 'Not Found' } }, { kind: 'permanent' }],
  ['422', { status: 422, body: { message: 'Validation Failed' } }, { kind: 'permanent' }],
  [
    'the primary rate limit',
    {
      status: 403,
      headers: {
        date: 'Sun, 01 Mar 2026 10:00:00 GMT',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': String(Date.parse('2026-03-01T10:20:00Z') / 1_000),
      },
      body: { message: 'API rate limit exceeded' },
    },
    { kind: 'rate-limited', retryAfterMs: 1_201_000 },
  ],
  [
    'the secondary rate limit with a time',
    { status: 403, headers: { 'retry-after': '30' }, body: { message: 'You have exceeded a secondary rate limit' } },
    { kind: 'rate-limited', retryAfterMs: 30_000 },
  ],
  [
    'the secondary rate limit without a time',
    { status: 403, body: { message: 'You have exceeded a secondary rate limit' } },
    { kind: 'rate-limited', retryAfterMs: 60_000 },
  ],
])('the answer of GitHub for %s decides whether and when the reply is tried again', async (_, reply, expected) => {
  const { channel, fake, to } = await start()
  fake.planAnswers(reply)
  const result = await channel.send(toOutgoing({ to }))
  expect(result).toMatchObject(expected)
  expect(JSON.stringify(result)).not.toContain(githubApiToken)
})

it('a GitHub App gets one token for an owner, keeps it until it expires, and fetches another after a refusal', async () => {
  let now = Date.now()
  const { channel, fake } = await startApp(() => now)
  expect(await channel.send(toOutgoing({ to: issue }))).toMatchObject({ kind: 'sent' })
  expect(await channel.send(toOutgoing({ to: issue }))).toMatchObject({ kind: 'sent' })
  expect(fake.tokens).toHaveLength(1)
  now += 3_600_000
  expect(await channel.send(toOutgoing({ to: issue }))).toMatchObject({ kind: 'sent' })
  expect(fake.tokens).toHaveLength(2)
  fake.revoke()
  expect(await channel.send(toOutgoing({ to: issue }))).toMatchObject({ kind: 'transient' })
  expect(await channel.send(toOutgoing({ to: issue }))).toMatchObject({ kind: 'sent' })
  expect(fake.tokens).toHaveLength(3)
})

it('the error for an App key that is not in PEM format names the key without showing it', async () => {
  const fake = await startFakeGitHub()
  const channel = openChannel(githubChannel, section.parse({ appId: 1, privateKey: 'my-key', baseUrl: fake.url }))
  const result = await channel.send(toOutgoing({ to: issue }))
  expect(result).toMatchObject({ kind: 'permanent', detail: expect.stringContaining('channels.github.privateKey') })
  expect(JSON.stringify(result)).not.toContain('my-key')
})

it('a commit status is set once, however often it is tried', async () => {
  const { channel, fake } = await start()
  fake.loseAnswers('reset')
  expect(await channel.setStatus?.(pending)).toMatchObject({ kind: 'ambiguous' })
  expect(await channel.setStatus?.(pending)).toEqual({ kind: 'sent', id: String(fake.statuses[0]?.id) })
  const ended = { ...pending, state: 'success', description: 'Run 0193 ended: pass.' } as const
  expect(await channel.setStatus?.(ended)).toMatchObject({ kind: 'sent' })
  expect(await channel.setStatus?.(ended)).toMatchObject({ kind: 'sent' })
  expect(fake.statuses.map(({ state, description }) => [state, description])).toEqual([
    ['pending', 'Run 0193 waits.'],
    ['success', 'Run 0193 ended: pass.'],
  ])
})

it('a status with another name or from another run does not count as set', async () => {
  const { channel, fake } = await start()
  await channel.setStatus?.(pending)
  await channel.setStatus?.({ ...pending, name: 'tests' })
  await channel.setStatus?.({ ...pending, description: 'Run 0194 waits.' })
  expect(fake.statuses.map(({ context }) => context)).toEqual(['review', 'tests', 'review'])
})

it.each([
  'acme/app',
  'acme/app#17/../../x',
  '#17',
  'acme/app/x#1',
  'https://github.com/acme/app#1',
  '../app#17',
  'acme/..#17',
  './.#17',
])('the recipient "%s" is refused, and nothing is called', async (to) => {
  const { channel, fake } = await start()
  expect(channel.whyNot(to)).toContain('is not a recipient on github: expected <owner>/<repository>#<number')
  expect(await channel.send(toOutgoing({ to }))).toEqual({ kind: 'permanent', detail: channel.whyNot(to) })
  expect(fake.received).toEqual([])
})

it.each(['../app', 'acme/..', 'acme/.'])(
  'a status for a commit of the repository "%s" is refused, and nothing is called',
  async (of) => {
    const { channel, fake } = await start()
    const wrong = { ...pending, commit: `${of}@0123456789abcdef0123456789abcdef01234567` }
    expect(await channel.setStatus?.(wrong)).toMatchObject({ kind: 'permanent' })
    expect(fake.received).toEqual([])
  },
)

it('an owner or repository name that merely contains dots is valid', async () => {
  const { channel } = await start()
  expect(channel.whyNot('.github/..app#17')).toBeUndefined()
  expect(channel.whyNot('acme/.github#17')).toBeUndefined()
})

it('the credential is a token or an App, and is never sent to a host over plain HTTP', () => {
  expect(section.safeParse({}).success).toBe(false)
  expect(section.safeParse({ token: 't', appId: 1, privateKey }).success).toBe(false)
  expect(section.safeParse({ appId: 1 }).success).toBe(false)
  expect(section.safeParse({ token: 't', baseUrl: 'http://github.example/api/v3' }).success).toBe(false)
})

it('a probe says whether GitHub accepts the token', async () => {
  const { channel, fake } = await start()
  const { signal } = new AbortController()
  expect(await channel.probe?.(signal)).toEqual({ ok: true, detail: 'GitHub accepts the token.' })
  const wrong = openChannel(githubChannel, section.parse({ token: 'ghp_wrong', baseUrl: fake.url }))
  expect(await wrong.probe?.(signal)).toMatchObject({ ok: false, detail: expect.stringContaining('channels.github') })
})

describe('faults of the connection to GitHub', () => {
  testTroubles((options) => start(options))
})
