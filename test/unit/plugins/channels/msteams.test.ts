import { expect, it } from 'vitest'
import { msteamsChannel } from '../../../../src/plugins/channels/msteams.ts'
import { refuse, refuseLogin } from '../../../e2e/fakes/msteams.ts'
import { toOutgoing, openChannel, sectionOf } from './stage.ts'

const to = '19:ab12@thread.tacv2'

type Answer = { readonly status: number; readonly body?: unknown }

/** A fake Teams that counts the requests to its login and to its connector. */
function createStage({ login, connector }: { login?: () => Answer | Promise<Answer>; connector?: () => Answer } = {}) {
  const asked = { login: 0, connector: 0 }
  let now = 0
  const fetch: typeof globalThis.fetch = async (url) => {
    const isLogin = String(url).includes('/oauth2/')
    asked[isLogin ? 'login' : 'connector'] += 1
    const granted = { status: 200, body: { access_token: `token-${asked.login}`, expires_in: 3_600 } }
    const answer = isLogin ? await (login?.() ?? granted) : (connector?.() ?? { status: 201, body: { id: 'activity' } })
    return new Response(JSON.stringify(answer.body ?? {}), { status: answer.status })
  }
  const config = sectionOf(msteamsChannel).parse({ appId: 'app', appPassword: 'secret-of-app' })
  const channel = openChannel(msteamsChannel, config, { fetch, clock: () => now })
  return { asked, channel, send: () => channel.send(toOutgoing({ to })), pass: (ms: number) => void (now += ms) }
}

it.each([to, `conversation:${to}`, 'a:1pL6i0oY3C0K8oAj8', '19:x@thread.v2;messageid=1'])(
  'the conversation %s is a valid recipient',
  (id) => {
    expect(createStage().channel.whyNot(id)).toBeUndefined()
  },
)

it.each(['user:8d2f', 'https://teams.microsoft.com/l/channel/x', 'two words', ''])(
  'the recipient "%s" is refused',
  (id) => {
    expect(createStage().channel.whyNot(id)).toMatch(/expected the id of a conversation/)
  },
)

it.each(['.', '..', 'conversation:..', 'a/b', '../x', 'a\\b', '?x=1', 'a#b', '%2e%2e', '19:x@thread.v2%2f..'])(
  'the recipient "%s", which would change the address of the request, is refused',
  async (id) => {
    const { asked, channel } = createStage()
    expect(channel.whyNot(id)).toMatch(/expected the id of a conversation/)
    expect(await channel.send(toOutgoing({ to: id }))).toMatchObject({ kind: 'permanent' })
    expect(asked).toEqual({ login: 0, connector: 0 })
  },
)

it('an access token is kept until shortly before it expires', async () => {
  const { asked, send, pass } = createStage()
  await send()
  pass(3_500_000)
  await send()
  expect(asked).toEqual({ login: 1, connector: 2 })
  pass(60_000)
  await send()
  expect(asked).toEqual({ login: 2, connector: 3 })
})

it('messages at the same time share one request for a token', async () => {
  const { asked, send } = createStage()
  const results = await Promise.all([send(), send(), send()])
  expect(results.map(({ kind }) => kind)).toEqual(['sent', 'sent', 'sent'])
  expect(asked).toEqual({ login: 1, connector: 3 })
})

it('a failed login to Teams is not remembered: the next message asks again', async () => {
  let refuses = true
  const granted = { status: 200, body: { access_token: 'token', expires_in: '3600' } }
  const { asked, send } = createStage({ login: () => (refuses ? { status: 503 } : granted) })
  expect(await send()).toMatchObject({ kind: 'transient' })
  refuses = false
  expect(await send()).toMatchObject({ kind: 'sent' })
  expect(asked.login).toBe(2)
})

it('a refused token of Teams is dropped, so that the next attempt fetches another token', async () => {
  let refuses = true
  const { asked, send } = createStage({
    connector: () => (refuses ? refuse(401, 'Unauthorized', 'no') : { status: 201, body: { id: 'activity' } }),
  })
  expect(await send()).toMatchObject({ kind: 'transient' })
  refuses = false
  expect(await send()).toMatchObject({ kind: 'sent' })
  expect(asked).toEqual({ login: 2, connector: 2 })
})

it.each([
  [412, 'transient'],
  [429, 'rate-limited'],
  [500, 'ambiguous'],
  [502, 'transient'],
  [503, 'transient'],
  [504, 'transient'],
  [400, 'permanent'],
  [403, 'permanent'],
  [404, 'permanent'],
  [413, 'permanent'],
])('an answer of the connector with the status %i is a failure of the kind %s', async (status, kind) => {
  const result = await createStage({ connector: () => refuse(status, 'SomeCode', 'The build is green.') }).send()
  expect(result.kind).toBe(kind)
  expect(result).toHaveProperty('detail', expect.stringMatching(new RegExp(`${status}.*SomeCode`)))
  expect(JSON.stringify(result)).not.toMatch(/The build is green|token-1/)
})

it.each([
  [401, 'invalid_client', 'permanent', 'channels.msteams.appPassword'],
  [400, 'unauthorized_client', 'permanent', 'channels.msteams.appId'],
  [400, 'invalid_request', 'permanent', 'channels.msteams.tenantId'],
  [429, 'throttled', 'rate-limited', 'throttled'],
  // a login posts nothing, so an unknown result is harmless
  [500, 'server_error', 'transient', 'server_error'],
])('a login that is answered with %i %s is a failure of the kind %s', async (status, error, kind, named) => {
  const result = await createStage({ login: () => refuseLogin(status, error, 'AADSTS: secret-of-app') }).send()
  expect(result.kind).toBe(kind)
  expect(result).toHaveProperty('detail', expect.stringContaining(named))
  expect(JSON.stringify(result)).not.toContain('secret-of-app')
})
