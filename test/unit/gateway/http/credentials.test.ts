import { describe, expect, test } from 'vitest'
import { hasTokenInQuery, readToken, toHeaders } from '../../../../src/gateway/http/admission.ts'
import { createSecretSet } from '../../../../src/gateway/proofs/verifiers/proof.ts'
import { dropCredentials } from '../../../../src/core/mapping/delivery.ts'

describe('the token of a request', () => {
  test.each([
    [['Authorization', 'Bearer hook-secret']],
    [['authorization', 'bearer hook-secret']],
    [['AUTHORIZATION', 'BEARER   hook-secret']],
    [['X-Service-Token', 'hook-secret']],
    [['Authorization', 'Bearer hook-secret', 'x-service-token', 'other']],
    [['Authorization', 'Basic aG9vaw==', 'x-service-token', 'hook-secret']],
    [['x-service-token', 'hook-secret', 'authorization', 'Bearerhook']],
    [['Authorization', '', 'x-service-token', 'hook-secret']],
  ])('the token of %j is hook-secret', (headers) => {
    expect(readToken(headers)).toEqual({ kind: 'token', token: 'hook-secret' })
  })

  test.each([
    [[]],
    [['Authorization', 'hook-secret']],
    [['Authorization', 'Basic aG9vay1zZWNyZXQ=']],
    [['Authorization', 'Bearerhook-secret']],
    [['Authorization', 'Bearer']],
    [['Authorization', '']],
    [['x-service-token', '']],
    [['Cookie', 'authorization=Bearer hook-secret']],
    [['Authorization', 'Basic aG9vaw==', 'x-service-token', '']],
    [['Authorization', 'Bearer']],
    [['Authorization', 'bearer ']],
  ])('the headers %j have no token', (headers) => {
    expect(readToken(headers)).toEqual({ kind: 'none' })
  })

  test('an empty Bearer token counts as little as an Authorization header of a proxy', () => {
    for (const empty of ['Bearer', 'bearer ', 'Bearer   ']) {
      const headers = ['Authorization', empty, 'x-service-token', 'hook-secret']
      expect(readToken(headers)).toEqual({ kind: 'token', token: 'hook-secret' })
    }
  })

  test.each([
    [['Authorization', 'Bearer a', 'authorization', 'Bearer b']],
    [['Authorization', 'Bearer a', 'Authorization', 'Bearer a']],
    [['x-service-token', 'a', 'X-Service-Token', 'a']],
    [['Authorization', 'Bearer a', 'x-service-token', 'a', 'x-service-token', 'b']],
    [['Authorization', 'Bearer a', 'Authorization', '']],
  ])('the token of %j is ambiguous, because a header is repeated', (headers) => {
    expect(readToken(headers)).toEqual({ kind: 'ambiguous' })
  })

  test('a token with characters outside of ASCII is read as UTF-8', () => {
    const onTheWire = Buffer.from('Bearer schlüssel').toString('latin1')
    expect(readToken(['Authorization', onTheWire])).toEqual({ kind: 'token', token: 'schlüssel' })
  })
})

describe('the check of a secret', () => {
  const isToken = createSecretSet(['hook-secret'])

  test('the configured secret passes the check', () => {
    expect(isToken('hook-secret')).toBe(true)
  })

  test.each(['', 'hook-secre', 'hook-secret ', 'Hook-secret', 'hook-secret\0', 'hook-secrey', 'x'.repeat(100_000)])(
    'a text that differs from the secret does not pass the check, whatever its length: %#',
    (given) => {
      expect(isToken(given)).toBe(false)
    },
  )
})

const dropFrom = (rawHeaders: readonly string[]) => dropCredentials(toHeaders(rawHeaders), new Set(['x-own-secret']))

describe('headers of a delivery', () => {
  test('a header with a sender’s secret keeps its name and loses its value', () => {
    expect(dropFrom(['X-Gitlab-Token', 'canary', 'X-Own-Secret', 'canary', 'x-a', '1'])).toEqual({
      'x-gitlab-token': '[secret]',
      'x-own-secret': '[secret]',
      'x-a': '1',
    })
  })

  test.each([
    'x-api-key',
    'X-Auth-Token',
    'api-key',
    'X-Access-Token',
    'X-Amz-Security-Token',
    'Cf-Access-Jwt-Assertion',
    'X-Acme-Token',
    'Acme-Webhook-Secret',
  ])('the value of the header %s is removed', (name) => {
    expect(dropFrom([name, 'canary'])).toEqual({ [name.toLowerCase()]: '[secret]' })
  })

  test('an idempotency token keeps its value, and so does a header whose name only begins like that of a secret', () => {
    const headers = { 'i-twilio-idempotency-token': 'id-1', 'x-token-type': 'bot' }
    expect(dropFrom(Object.entries(headers).flat())).toEqual(headers)
  })

  test('no credential in a header is kept, in upper or lower case, alone or repeated', () => {
    const names = ['Authorization', 'AUTHORIZATION', 'X-Service-Token', 'Proxy-Authorization', 'Cookie', 'cookie']
    const headers = dropFrom(['X-GitHub-Event', 'push', ...names.flatMap((name) => [name, 'canary'])])
    expect(JSON.stringify(headers)).toBe('{"x-github-event":"push"}')
  })

  test('repeated headers are joined in their order', () => {
    expect(dropFrom(['Via', 'a', 'X-A', '1', 'via', 'b'])).toEqual({ via: 'a, b', 'x-a': '1' })
  })

  test('a header with the name of an inherited property is a header like any other', () => {
    const headers = dropFrom(['__proto__', 'a', '__proto__', 'b', 'constructor', 'c'])
    expect(Object.entries(headers)).toEqual([
      ['__proto__', 'a, b'],
      ['constructor', 'c'],
    ])
    expect(dropFrom([])['toString']).toBeUndefined()
  })
})

describe('tokens in the query', () => {
  test.each([
    '/hooks/wake?token=hook-secret',
    '/hooks/wake?token=',
    '/hooks/wake?token',
    '/hooks/wake?a=1&token=x&b=2',
    '/hooks/wake?token=a&token=b',
    '/hooks/wake?%74oken=x',
    '/hooks/wake?%74%6F%6b%65%6e=x',
    '/hooks/wake?%zz&token=x',
    '/hooks/wake?a=%FF&token=x',
    '/hooks/wake?&&token=x',
    '/hooks/wake?a?b&token=x',
    'http://hooks.test/hooks/wake?token=x',
  ])('a token is found in the query of %s', (url) => {
    expect(hasTokenInQuery(url)).toBe(true)
  })

  test.each([
    '/hooks/wake',
    '/hooks/token',
    '/hooks/token=x',
    '/hooks/wake?',
    '/hooks/wake?tokens=x',
    '/hooks/wake?access_token=x',
    '/hooks/wake?x=token',
    '/hooks/wake?x=a%26token=y',
    '/hooks/wake?a=1;token=x',
    '/hooks/wake?%2574oken=x',
  ])('no token is found in the query of %s', (url) => {
    expect(hasTokenInQuery(url)).toBe(false)
  })
})
