// Tokens with few rights on both ports: what each one may do. A call without the right gets the same 401 as a wrong token.
import { afterEach, describe, expect, test } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { readStore, type Inside, startInside } from './inside.ts'
import { readVerdict } from './answers.ts'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { type Headers, json, send } from './wire.ts'

const ci = 'ci-token-0123456789abcdef-0123456789'
const other = 'other-token-0123456789abcdef-0123456'
const deaf = 'deaf-token-0123456789abcdef-01234567'
const old = 'old-token-0123456789abcdef-012345678'
const reader = 'reader-token-0123456789abcdef-01234'
const operator = 'operator-token-0123456789abcdef-012'
const admin = 'admin-token-0123456789abcdef-0123456'

const tokens = {
  ci: { token: ci, may: ['send:deploy', 'send:ci-*', 'runs'] },
  other: { token: other, may: ['send:*', 'runs'] },
  deaf: { token: deaf, may: ['send:agent'] },
  old: { token: old, may: ['send:*', 'runs', 'admin'], expiresAt: '2020-01-01' },
  reader: { token: reader, may: ['read'] },
  operator: { token: operator, may: ['operate'] },
  admin: { token: admin, may: ['admin'] },
}
const mappings = ['deploy', 'ci-build', 'other'].map((path) => ({
  id: path,
  match: { path },
  messageTemplate: 'x',
  deliver: false,
}))

const start = () => startInside({ config: { hooks: { mappings }, tokens } })
const toBearer = (token: string): Headers => [['authorization', `Bearer ${token}`]]
const toPort = ({ adminUrl }: Inside) => Number(new URL(adminUrl).port)

function sendTo(port: number, hook: string, token: string, headers: Headers = []) {
  const body = JSON.stringify({ message: 'x' })
  return send(port, { target: `/hooks/${hook}`, headers: [...toBearer(token), ...json, ...headers], body })
}

async function startRun(port: number, hook: string, token: string): Promise<string> {
  const { status, body } = await sendTo(port, hook, token)
  expect(status).toBe(200)
  return (JSON.parse(body) as { runId: string }).runId
}

const askRun = (port: number, runId: string, token: string, method = 'GET') =>
  send(port, { method, target: `/hooks/runs/${runId}`, headers: toBearer(token) })

describe('a scoped token on the hook port', () => {
  test('a scoped token opens the hooks that its patterns match; for any other name, it gets the same answer as a wrong token', async () => {
    const { port } = await start()
    const readStatuses = async (token: string, hooks: readonly string[]) =>
      Promise.all(hooks.map(async (hook) => (await sendTo(port, hook, token)).status))
    expect(await readStatuses(ci, ['deploy', 'ci-build'])).toEqual([200, 200])
    expect(await readStatuses(other, ['deploy', 'ci-build', 'other', 'agent'])).toEqual([200, 200, 200, 200])
    const wrong = await sendTo(port, 'other', 'a-wrong-token')
    for (const hook of ['other', 'agent', 'wake', 'Deploy', 'deploy/x', 'nothing', '']) {
      const denied = await sendTo(port, hook, ci)
      expect([hook, denied.status, denied.body]).toEqual([hook, 401, wrong.body])
    }
    // a pattern may match a name that no hook has
    expect(readVerdict(await sendTo(port, 'ci-nothing', ci))).toBe('hook-unknown')
    for (const token of [old, reader, admin]) expect((await sendTo(port, 'deploy', token)).status).toBe(401)
  })

  test('a token without the right to a hook counts as a wrong one, and its client is locked out', async () => {
    const { port } = await start()
    for (let count = 0; count < 20; count += 1) expect((await sendTo(port, 'agent', ci)).status).toBe(401)
    expect((await sendTo(port, 'deploy', ci)).status).toBe(429)
    expect((await sendTo(port, 'deploy', hookToken)).status).toBe(429)
  })

  test('only the token that started a run sees and cancels it, and only with the right "runs"', async () => {
    const gateway = await start()
    const { port } = gateway
    await fetch(`${gateway.adminUrl}/api/pauses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${operator}` },
      body: '{"what":"all"}',
    })
    const run = await startRun(port, 'deploy', ci)
    expect((await askRun(port, run, ci)).status).toBe(200)
    for (const token of [other, hookToken]) {
      expect(readVerdict(await askRun(port, run, token))).toBe('not-found')
      expect(readVerdict(await askRun(port, run, token, 'DELETE'))).toBe('not-found')
    }
    const unseen = await startRun(port, 'agent', deaf)
    for (const method of ['GET', 'DELETE'])
      expect(readVerdict(await askRun(port, unseen, deaf, method))).toBe('unauthorized')
    // without the right "runs", a request does not wait either
    const waited = await sendTo(port, 'agent', deaf, [['prefer', 'wait=5']])
    expect([waited.status, waited.headers['location']]).toEqual([200, undefined])
    expect((await askRun(port, run, ci, 'DELETE')).status).toBe(200)
  })

  test('the list of refusals distinguishes a known token without the right from an unknown one', async () => {
    const { port, adminUrl } = await start()
    await sendTo(port, 'agent', ci)
    await sendTo(port, 'deploy', old)
    await sendTo(port, 'deploy', 'wrong')
    await sendTo(port, 'wake', deaf.replace('deaf', 'deax'))
    const answer = await fetch(`${adminUrl}/api/refusals`, { headers: { authorization: `Bearer ${reader}` } })
    const { refusals } = (await answer.json()) as { refusals: { credential: string }[] }
    expect(refusals.map(({ credential }) => credential).toSorted()).toEqual([
      'denied-token',
      'denied-token',
      'wrong-token',
      'wrong-token',
    ])
  })
})

describe('a scoped token on the admin port', () => {
  const calls: readonly (readonly [right: string, method: string, target: string])[] = [
    ['read', 'GET', '/api/deliveries'],
    ['read', 'GET', '/api/tokens'],
    ['operate', 'POST', '/api/deliveries/x/retry'],
    ['operate', 'POST', '/api/parked/drop'],
    ['operate', 'POST', '/api/cancel'],
    ['operate', 'POST', '/api/budgets/x/raise'],
    ['admin', 'POST', '/api/publish'],
    ['admin', 'POST', '/api/deliveries/x/capture'],
    ['admin', 'POST', '/api/mappings'],
    ['admin', 'POST', '/api/tokens'],
    ['admin', 'POST', '/api/tokens/x/revoke'],
    ['admin', 'POST', '/api/page/code'],
  ]
  const rights = ['read', 'operate', 'admin']

  test.each<[string, string, number]>([
    ['reader', reader, 0],
    ['operator', operator, 1],
    ['admin', admin, 2],
    ['gateway', gatewayToken, 2],
    ['ci', ci, -1],
    ['expired', old, -1],
  ])('the token "%s" can make the calls that its right includes, and no others', async (_, token, strength) => {
    const port = toPort(await start())
    const wrong = await send(port, {
      method: 'POST',
      target: '/api/publish',
      headers: toBearer('a-wrong-token'),
    })
    for (const [right, method, target] of calls) {
      const { status, body } = await send(port, { method, target, headers: toBearer(token) })
      if (rights.indexOf(right) <= strength) expect([target, status]).not.toEqual([target, 401])
      else expect([target, status, body]).toEqual([target, 401, wrong.body])
    }
  })

  test('a token without the right to a call locks its client out, and tokens that have the right still pass', async () => {
    const port = toPort(await start())
    const publish = (token: string) => send(port, { method: 'POST', target: '/api/publish', headers: toBearer(token) })
    for (let count = 0; count < 20; count += 1) expect((await publish(reader)).status).toBe(401)
    expect((await publish(reader)).status).toBe(429)
    expect((await publish(admin)).status).toBe(409)
  })
})

const list = async (gateway: Pick<Inside, 'dir'>) => (await runCommand(['token', 'list', '--json'], gateway)).json()

describe('hookloom token', () => {
  test('a new token works at once, is stored as a hash, and no longer works once it is revoked', async () => {
    const gateway = await start()
    const { port, dir } = gateway
    const made = await runCommand(['token', 'new', 'night', '--may', 'send:deploy', 'runs', '--expires', '1d'], { dir })
    const token = made.stdout.trim()
    expect([made.code, token]).toEqual([0, expect.stringMatching(/^hookloom_[\w-]{43}$/)])
    const run = await startRun(port, 'deploy', token)
    expect((await askRun(port, run, token)).status).toBe(200)
    expect((await sendTo(port, 'agent', token)).status).toBe(401)
    const stored = await readStore(dir, (store) => store.cursors(''))
    expect(JSON.stringify(stored)).toContain('night')
    expect(JSON.stringify(stored)).not.toContain(token)
    const shown = await list(gateway)
    expect(shown).toHaveLength(Object.keys(tokens).length + 1)
    expect(shown).toContainEqual(
      expect.objectContaining({ name: 'night', from: 'store', may: ['send:deploy', 'runs'], expired: false }),
    )
    expect(JSON.stringify(shown)).not.toContain(ci)
    expect((await runCommand(['token', 'new', 'night', '--may', 'read'], { dir })).code).not.toBe(0)
    expect((await runCommand(['token', 'new', 'ci', '--may', 'read'], { dir })).stderr).toContain('configuration')
    expect((await runCommand(['token', 'new', 'x', '--may', 'sing'], { dir })).stderr).toContain('send:<hook>')
    expect((await runCommand(['token', 'revoke', 'night'], { dir })).code).toBe(0)
    expect((await sendTo(port, 'deploy', token)).status).toBe(401)
    expect((await runCommand(['token', 'revoke', 'night'], { dir })).stderr).toContain('hookloom token list')
    expect((await runCommand(['token', 'revoke', 'ci'], { dir })).stderr).toContain('configuration')
  })

  test('a stored token survives a restart, and expires by the clock', async () => {
    let now = Date.now()
    const first = await startInside({ config: { hooks: { mappings } }, clock: () => now })
    const made = await fetch(`${first.adminUrl}/api/tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gatewayToken}` },
      body: JSON.stringify({ name: 'brief', may: ['send:*'], expiresAt: new Date(now + 60_000).toISOString() }),
    })
    const { token } = (await made.json()) as { token: string }
    await first.stop()
    const again = await startInside({ dir: first.dir, clock: () => now })
    expect((await sendTo(again.port, 'deploy', token)).status).toBe(200)
    now += 60_000
    expect((await sendTo(again.port, 'deploy', token)).status).toBe(401)
  })
})

let closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

describe.skipIf(whyNoPostgres !== undefined)(`two gateways on one Postgres (${whyNoPostgres ?? 'available'})`, () => {
  test(
    'a token that one gateway makes or revokes becomes valid or invalid at the other gateway',
    { timeout: 120_000 },
    async () => {
      const { url, drop } = await newSchema()
      closing.push(drop)
      const open = async () => {
        const gateway = await startInside({ store: createPostgresStore({ url }), config: { hooks: { mappings } } })
        closing.push(gateway.stop)
        return gateway
      }
      const [one, two] = [await open(), await open()]
      const ask = async (gateway: Inside, path: string, body: object) =>
        (await (
          await fetch(`${gateway.adminUrl}/api/tokens${path}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${gatewayToken}` },
            body: JSON.stringify(body),
          })
        ).json()) as { token: string }
      const made = await Promise.all(
        ['a', 'b', 'c', 'd'].map((name, index) =>
          ask(index % 2 ? one : two, '', { name, may: ['send:deploy', 'runs'] }),
        ),
      )
      const readStatus = async ({ port }: Inside, token = '') => (await sendTo(port, 'deploy', token)).status
      for (const { token } of made)
        for (const gateway of [one, two])
          await expect.poll(() => readStatus(gateway, token), { interval: 1_000 }).toBe(200)
      // the token that started a run at one gateway sees the run at the other gateway too
      const [{ token } = { token: '' }] = made
      const run = await startRun(one.port, 'deploy', token)
      expect((await askRun(two.port, run, token)).status).toBe(200)
      await ask(two, '/a/revoke', {})
      await expect.poll(() => readStatus(one, token), { interval: 1_000 }).toBe(401)
    },
  )
})
