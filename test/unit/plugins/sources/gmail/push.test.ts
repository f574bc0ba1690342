// The receiver of pushes: which pushes it accepts, and their effects.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCall } from '../../../../../src/plugins/sources/gmail/call.ts'
import { type PushReceiver, startPushReceiver } from '../../../../../src/plugins/sources/gmail/push.ts'
import type { Log } from '../../../../../src/base/log.ts'
import { createClientLookup } from '../../../../../src/gateway/http/client.ts'
import { createThrottle } from '../../../../../src/gateway/http/throttle.ts'
import { account, type FakeGoogle, pushServiceAccount, startGoogle } from '../../../../e2e/fakes/google.ts'
import { toGmail, toVerifier } from './stage.ts'

const audience = 'https://mail.example.org/gmail-pubsub'
const now = Date.now()
let google: FakeGoogle
let receiver: PushReceiver
let wakes: number
let later: number
let warnings: object[]
const log: Log = { debug() {}, info() {}, warn: (fields) => void warnings.push(fields), error() {} }
const clock = () => now + later
const createGate = () => ({ ...createThrottle({ clock }), clientOf: createClientLookup([]) })

beforeEach(async () => {
  google = await startGoogle({ clock: () => now })
  wakes = 0
  later = 0
  warnings = []
  const push = { port: 0, endpoint: audience, serviceAccount: pushServiceAccount }
  receiver = await startPushReceiver({
    gmail: toGmail(google, { mode: 'push', project: 'proj-123456', push }),
    call: createCall({ pause: async () => {}, random: () => 0.5, signal: new AbortController().signal }),
    clock,
    onNotification: () => void (wakes += 1),
    gate: createGate(),
    verifier: toVerifier(clock),
    log,
  })
})
afterEach(() => receiver.close())

const buildEnvelope = (emailAddress: string) => {
  const data = Buffer.from(JSON.stringify({ emailAddress, historyId: 12 })).toString('base64')
  return JSON.stringify({ message: { data, messageId: '1' }, subscription: 's' })
}

async function push(
  token: string | undefined,
  { path = '/gmail-pubsub', method = 'POST', body = buildEnvelope(account), mark = {} } = {},
) {
  const headers = { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...mark }
  const sent = method === 'POST' ? { body } : {}
  const { status } = await fetch(`http://127.0.0.1:${receiver.port}${path}`, { method, headers, ...sent })
  return status
}

describe('a push', () => {
  test('a push with Google’s token is answered 204 and starts a sync', async () => {
    expect(await push(google.signPush({ aud: audience }))).toBe(204)
    expect(wakes).toBe(1)
  })

  test.each<[string, object, { foreignKey?: boolean; now?: number }]>([
    ['signed with another key', { aud: audience }, { foreignKey: true }],
    ['that has expired', { aud: audience }, { now: now - 2 * 3_600_000 }],
    ['from the future', { aud: audience }, { now: now + 3_600_000 }],
    ['for another audience', { aud: 'https://other.example.org/gmail-pubsub' }, {}],
    ['without an audience', {}, {}],
    ['of another issuer', { aud: audience, iss: 'https://accounts.example.org' }, {}],
    ['of another service account', { aud: audience, email: 'other@proj-123456.iam.example' }, {}],
    ['whose address is not verified', { aud: audience, email_verified: false }, {}],
    ['whose email_verified is a text', { aud: audience, email_verified: 'true' }, {}],
    ['that never expires', { aud: audience, exp: undefined }, {}],
  ])('a push with a token %s is answered 401 and starts no sync', async (_, claims, options) => {
    expect(await push(google.signPush(claims, options))).toBe(401)
    expect(wakes).toBe(0)
  })

  test('a push without a token, or with an invalid one, is answered 401', async () => {
    expect([await push(undefined), await push('secret')]).toEqual([401, 401])
  })

  test('a push from a page of another site is answered 403, whatever its token, and is not logged', async () => {
    for (const mark of [{ origin: 'https://evil.test' }, { 'sec-fetch-site': 'cross-site' }]) {
      expect(await push(google.signPush({ aud: audience }), { mark })).toBe(403)
      expect(await push(undefined, { mark })).toBe(403)
    }
    expect([wakes, warnings]).toEqual([0, []])
  })

  test('after twenty pushes without a token, further ones get 429 for a minute, while a valid push still passes', async () => {
    for (let count = 0; count < 20; count += 1) expect(await push(undefined)).toBe(401)
    expect(await push(undefined)).toBe(429)
    expect(await push(google.signPush({ aud: audience }))).toBe(204)
    const locked = await fetch(`http://127.0.0.1:${receiver.port}/gmail-pubsub`, { method: 'POST', body: '{}' })
    expect(locked.headers.get('retry-after')).toBe('60')
    later = 60_000
    expect(await push(undefined)).toBe(401)
  })

  test('refused pushes are logged at most once a minute, with their number', async () => {
    for (let count = 0; count < 10; count += 1) await push(undefined)
    expect(warnings).toEqual([expect.objectContaining({ pushes: 1 })])
    later = 60_000
    await push(undefined)
    expect(warnings).toEqual([expect.anything(), expect.objectContaining({ pushes: 10 })])
  })

  test('a push whose token names the algorithm "none" is answered 401', async () => {
    const [, claims] = google.signPush({ aud: audience }).split('.')
    const head = Buffer.from('{"alg":"none","kid":"k1"}').toString('base64url')
    expect(await push(`${head}.${claims}.`)).toBe(401)
  })

  test('a push for another mailbox is accepted and ignored', async () => {
    expect(await push(google.signPush({ aud: audience }), { body: buildEnvelope('other@example.org') })).toBe(204)
    expect(wakes).toBe(0)
  })

  test('a request that is not a push is refused: another path, another method, no envelope, too large', async () => {
    const token = google.signPush({ aud: audience })
    expect(await push(token, { path: '/hooks/gmail' })).toBe(404)
    expect(await push(token, { method: 'GET' })).toBe(405)
    expect(await push(token, { body: '{}' })).toBe(400)
    expect(await push(token, { body: 'x'.repeat(100_000) })).toBe(413)
    expect(wakes).toBe(0)
  })

  test('a push is answered with 503 while Google’s keys cannot be fetched, so that Google repeats it', async () => {
    google.fail('/certs', { status: 404 })
    expect(await push(google.signPush({ aud: audience }))).toBe(503)
    expect(await push(google.signPush({ aud: audience }))).toBe(204)
  })

  test('concurrent pushes before the first fetch of Google’s keys cause one fetch', async () => {
    const token = google.signPush({ aud: audience })
    const crowd = Array.from({ length: 5 }, () => push(token))
    expect(await Promise.all(crowd)).toEqual([204, 204, 204, 204, 204])
    expect(google.requests.filter((request) => request === 'GET /certs')).toHaveLength(1)
  })

  test('a port that is in use is reported in one sentence that names the key', async () => {
    const taken = { port: receiver.port, endpoint: audience, serviceAccount: pushServiceAccount }
    const gmail = toGmail(google, { mode: 'push', project: 'proj-123456', push: taken })
    const call = createCall({ pause: async () => {}, random: () => 0.5, signal: new AbortController().signal })
    await expect(
      startPushReceiver({
        gmail,
        call,
        clock,
        onNotification: () => {},
        gate: createGate(),
        verifier: toVerifier(clock),
        log,
      }),
    ).rejects.toThrow(/hooks\.gmail\.push\.port/)
  })
})
