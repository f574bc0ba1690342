// The refusals of Google, and what each one advises the operator to do.
import { describe, expect, test } from 'vitest'
import { createCall, toGoogleProblem } from '../../../../../src/plugins/sources/gmail/call.ts'
import { GmailConfig } from '../../../../../src/model/config/gmail.ts'
import { startLoopback } from '../../../../e2e/fakes/loopback.ts'

const request = { method: 'GET' as const, url: 'https://gmail.example/gmail/v1/users/me/profile' }
const refusals: [number, object][] = [
  [400, { error: 'invalid_grant' }],
  [401, { error: 'unauthorized_client' }],
  [401, { error: 'invalid_client' }],
  [403, { error: { errors: [{ reason: 'insufficientPermissions' }] } }],
  [401, { error: { status: 'UNAUTHENTICATED' } }],
]

describe('a refusal of Google', () => {
  test.each(refusals)('the refusal %i %j of a consent advises "gmail auth"', (status, body) => {
    expect(toGoogleProblem(request, { status, body }, 'consent').message).toContain('hookloom gmail auth')
  })

  test.each(refusals)('the refusal %i %j of a service account does not name "gmail auth"', (status, body) => {
    const { message } = toGoogleProblem(request, { status, body }, 'service-account')
    expect(message).not.toContain('gmail auth')
    expect(message).toMatch(/service account|serviceAccountKey/)
  })
})

describe('renewMinutes', () => {
  test('a renewMinutes below a quarter of an hour is refused, because the watch is not checked more often', () => {
    expect(GmailConfig.safeParse({ renewMinutes: 15 }).success).toBe(true)
    expect(GmailConfig.safeParse({ renewMinutes: 14 }).error?.issues).toMatchObject([
      { path: ['renewMinutes'], message: expect.stringContaining('must be at least 15') },
    ])
  })
})

describe('a call to Google', () => {
  test('a call that fails again and again ends, even if the token is renewed at its last attempt', async () => {
    const fake = await startLoopback(() => ({ status: 503, body: {} }))
    const failed = { status: 503, body: {} }
    fake.planAnswers(failed, failed, failed, failed, { status: 401, body: {} })
    const tokens = {
      kind: 'consent' as const,
      get: async () => ({ kind: 'token' as const, token: 'token', until: Infinity }),
      drop() {},
    }
    const call = createCall({ tokens, pause: async () => {}, random: () => 0.5, signal: AbortSignal.timeout(5_000) })
    await expect(call({ method: 'GET', url: fake.url })).rejects.toMatchObject({ code: 'gmail-unavailable' })
    expect(fake.received).toHaveLength(6)
  })
})
