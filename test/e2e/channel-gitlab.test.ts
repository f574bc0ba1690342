// Comments and commit statuses on GitLab, through a fake API on loopback that refuses what the real one refuses.
import { expect, it } from 'vitest'
import { signNonce } from '../../src/model/comment.ts'
import { gitlabChannel } from '../../src/plugins/channels/gitlab.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { gitlabApiToken, startFakeGitLab } from './fakes/gitlab.ts'

const section = sectionOf(gitlabChannel)
const issue = 'acme/tools/app#17'
const commit = 'acme/tools/app@0123456789abcdef0123456789abcdef01234567'
const nonce = '0123456789abcdef012345678'
const mark = signNonce(nonce, gitlabApiToken)

async function start(config: object = {}) {
  const fake = await startFakeGitLab()
  const channel = openChannel(gitlabChannel, section.parse({ token: gitlabApiToken, baseUrl: fake.url, ...config }))
  return { channel, fake, to: issue, secret: gitlabApiToken }
}

const pending = {
  commit,
  name: 'review',
  state: 'pending',
  description: 'Run 0193 has not ended.',
  signal: new AbortController().signal,
} as const

it.each([
  [issue, '/projects/acme%2Ftools%2Fapp/issues/17/notes'],
  ['acme/tools/app!9', '/projects/acme%2Ftools%2Fapp/merge_requests/9/notes'],
])('a reply to %s is a note with a hidden marker, without mentions, references or commands', async (to, path) => {
  const { channel, fake } = await start()
  const result = await channel.send(toOutgoing({ to, text: 'See @ada and !3\n\n/close', nonce }))
  expect(result).toEqual({ kind: 'sent', id: String(fake.notes[0]?.id) })
  expect(fake.notes.map(({ place, body }) => [place, body.replaceAll('\u200B', '|')])).toEqual([
    [to, `See @|ada and !|3\n\n|/close\n\n<!-- hookloom:${mark} -->`],
  ])
  expect(fake.received.map((request) => [request.method, request.path])).toEqual([['POST', path]])
})

it.each([
  ['a connection that is cut after the note was posted', 'reset' as const],
  ['a 502 after the note was posted', { status: 502, body: 'Bad Gateway' }],
])('after %s, the second attempt finds the note and posts no other', async (_, ending) => {
  const { channel, fake, to } = await start()
  fake.loseAnswers(ending)
  expect(await channel.send(toOutgoing({ to, nonce }))).toMatchObject({ kind: 'ambiguous' })
  for (let more = 0; more < 120; more += 1) fake.addOthers(issue, 'More.')
  const again = await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))
  expect(again).toEqual({ kind: 'sent', id: String(fake.notes[0]?.id) })
  expect(fake.notes.filter(({ body }) => body.includes(mark))).toHaveLength(1)
})

it('if the first attempt never arrived, the second attempt reads one page of older notes and posts the note once', async () => {
  const { channel, fake, to } = await start()
  for (let more = 0; more < 450; more += 1) fake.addOthers(issue, 'Old.', Date.now() - 3_600_000)
  expect(await channel.send(toOutgoing({ to, nonce, maybeSince: Date.now() }))).toMatchObject({ kind: 'sent' })
  expect(fake.notes.filter(({ body }) => body.includes(mark))).toHaveLength(1)
  expect(fake.received.map(({ method }) => method)).toEqual(['GET', 'POST'])
})

it('a second attempt that cannot look up the note posts no note, and is tried again', async () => {
  const { channel, fake, to } = await start()
  fake.planAnswers({ status: 502, body: 'Bad Gateway' })
  expect(await channel.send(toOutgoing({ to, nonce, maybeSince: 0 }))).toMatchObject({ kind: 'transient' })
  expect(fake.notes).toEqual([])
})

it.each([
  ['401', { status: 401, body: { message: '401 Unauthorized' } }, { kind: 'permanent' }],
  ['403', { status: 403, body: { message: '403 Forbidden' } }, { kind: 'permanent' }],
  ['404', { status: 404, body: { message: '404 Not Found' } }, { kind: 'permanent' }],
  ['a limit with a time', { status: 429, headers: { 'retry-after': '30' } }, { retryAfterMs: 30_000 }],
  ['a limit without a time', { status: 429, body: 'Retry later' }, { kind: 'rate-limited', retryAfterMs: 60_000 }],
])('the answer of GitLab for %s decides whether and when the reply is tried again', async (_, reply, expected) => {
  const { channel, fake, to } = await start()
  fake.planAnswers(reply)
  const result = await channel.send(toOutgoing({ to }))
  expect(result).toMatchObject(expected)
  expect(JSON.stringify(result)).not.toContain(gitlabApiToken)
})

it('a commit status is set once, however often it is tried, and the state "error" becomes "failed" at GitLab', async () => {
  const { channel, fake } = await start()
  fake.loseAnswers('reset')
  expect(await channel.setStatus?.(pending)).toMatchObject({ kind: 'ambiguous' })
  expect(await channel.setStatus?.(pending)).toMatchObject({ kind: 'sent' })
  const ended = { ...pending, state: 'error', description: 'Run 0193 failed.' } as const
  fake.loseAnswers({ status: 502, body: 'Bad Gateway' })
  expect(await channel.setStatus?.(ended)).toMatchObject({ kind: 'ambiguous' })
  expect(await channel.setStatus?.(ended)).toMatchObject({ kind: 'sent' })
  expect(fake.changes).toEqual(['pending: Run 0193 has not ended.', 'failed: Run 0193 failed.'])
})

it('a status that the commit already has from another run counts as set, although GitLab refuses it', async () => {
  const { channel, fake } = await start()
  await channel.setStatus?.(pending)
  expect(await channel.setStatus?.({ ...pending, description: 'Run 0194 has not ended.' })).toMatchObject({
    kind: 'sent',
  })
  await channel.setStatus?.({ ...pending, state: 'success', description: 'Run 0194 is done.' })
  await channel.setStatus?.({ ...pending, description: 'Run 0195 has not ended.' })
  await channel.setStatus?.({ ...pending, name: 'tests' })
  expect(fake.changes.map((change) => change.split(':')[0])).toEqual(['pending', 'success', 'pending', 'pending'])
})

it.each([
  ['a refusal with another reason', { status: 400, body: { message: 'Validation failed' } }],
  [
    'a refused transition to a state that the commit does not have',
    { status: 400, body: { message: 'Cannot transition status via :run from :canceled' } },
  ],
])('%s for a commit status is a permanent failure', async (_, reply) => {
  const { channel, fake } = await start()
  fake.planAnswers({ status: 200, body: [] }, reply)
  expect(await channel.setStatus?.(pending)).toMatchObject({ kind: 'permanent' })
})

it('a malformed commit is refused without a request', async () => {
  const { channel, fake } = await start()
  for (const wrong of ['acme/app', 'acme/../x@0123456', 'app@0123456', 'acme/app@main'])
    expect(await channel.setStatus?.({ ...pending, commit: wrong })).toMatchObject({ kind: 'permanent' })
  expect(fake.received).toEqual([])
})

it('a probe says whether GitLab accepts the token', async () => {
  const { channel, fake } = await start()
  const { signal } = new AbortController()
  expect(await channel.probe?.(signal)).toEqual({ ok: true, detail: 'GitLab accepts the token.' })
  const other = openChannel(gitlabChannel, section.parse({ token: 'glpat-wrong', baseUrl: fake.url }))
  expect(await other.probe?.(signal)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('channels.gitlab.token'),
  })
})

testTroubles(start)
