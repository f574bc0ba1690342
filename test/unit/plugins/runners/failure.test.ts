import { APICallError } from 'ai'
import { describe, expect, test } from 'vitest'
import { toModelFailure } from '../../../../src/plugins/runners/shared/ai/failure.ts'
import { toStartFailure } from '../../../../src/plugins/runners/shared/command/failure.ts'
import { ProviderConfig } from '../../../../src/model/config/agents.ts'

const now = Date.parse('2026-01-01T00:00:00Z')
const provider = {
  name: 'mine',
  config: ProviderConfig.parse({ kind: 'openai', apiKey: 'sk-Test' }),
  baseUrl: 'https://user:sk-Test@api.example.com/v1',
}

function failureOf(thrown: unknown, begun = false, thinking: string | undefined = 'high') {
  return toModelFailure(thrown, { provider, model: 'gpt-5.2', thinking, begun }, now)
}

function buildRefusal(statusCode: number, error: object, responseHeaders: Record<string, string> = {}) {
  return new APICallError({
    message: 'It said: Say hello sk-Test',
    url: 'https://user:sk-Test@api.example.com/v1/responses',
    requestBodyValues: { input: 'Say hello' },
    statusCode,
    responseHeaders,
    responseBody: JSON.stringify({ error: { message: 'Say hello sk-Test', ...error } }),
  })
}

const permanent = { status: 'error', retryable: false }
const retryable = { status: 'error', retryable: true }
const unavailable = { status: 'unavailable' }
const tooLong = { status: 'too-long' }
const overContext = 'longer than the context'

describe('a failure of a provider', () => {
  test.each([
    ['an exhausted quota is not a rate limit', buildRefusal(429, { code: 'insufficient_quota' }), permanent, 'billing'],
    ['no credit ends the run', buildRefusal(402, {}), permanent, 'billing'],
    ['OpenAI on a long prompt', buildRefusal(400, { code: 'context_length_exceeded' }), tooLong, overContext],
    [
      'Anthropic on a long prompt',
      buildRefusal(400, { message: 'prompt is too long: 210000 tokens' }),
      tooLong,
      overContext,
    ],
    [
      'vLLM on a long prompt',
      buildRefusal(400, { message: 'maximum context length is 4096 tokens' }),
      tooLong,
      overContext,
    ],
    [
      'newer vLLM on a long prompt',
      buildRefusal(400, { message: 'longer than the maximum model length of 9' }),
      tooLong,
      overContext,
    ],
    ['llama.cpp on a long prompt', buildRefusal(400, { type: 'exceed_context_size_error' }), tooLong, overContext],
    ['xAI on a long prompt', buildRefusal(400, { message: 'maximum prompt length is 131072' }), tooLong, overContext],
    [
      'a prompt that is longer than the token limit of a minute',
      buildRefusal(429, { message: 'Request too large for gpt-5.2 on tokens per min' }),
      tooLong,
      overContext,
    ],
    [
      'a 429 for too many tokens is a rate limit',
      buildRefusal(429, { message: 'Too many tokens, please wait' }),
      unavailable,
      '(429',
    ],
    [
      'Google on a long prompt',
      buildRefusal(400, { message: 'The input token count exceeds 9' }),
      tooLong,
      overContext,
    ],
    ['a request that is too large', buildRefusal(413, { type: 'request_too_large' }), tooLong, overContext],
    [
      'a 400 is shown with its codes',
      buildRefusal(400, { code: 'unsupported_value', type: 'invalid_request_error', param: 'reasoning.effort' }),
      permanent,
      '(400, unsupported_value, invalid_request_error, reasoning.effort)',
    ],
    [
      'Google’s 400 for a wrong key is about the key',
      buildRefusal(400, { status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] }),
      permanent,
      'models.providers.mine.apiKey',
    ],
    ['an unknown model', buildRefusal(404, { code: 'model_not_found' }), permanent, 'has no "gpt-5.2"'],
    [
      'a 500 counts as a failure of the provider, even with the code of an invalid request',
      buildRefusal(500, { type: 'invalid_request_error' }),
      unavailable,
      '(500',
    ],
    [
      'a rate limit to which the AI SDK gives the status 500',
      buildRefusal(500, { type: 'rate_limit_error' }),
      unavailable,
      '(429',
    ],
    ['a redirect is not followed', buildRefusal(301, {}), permanent, '(301)'],
    ['overload inside a stream', { type: 'overloaded_error', message: 'Overloaded' }, unavailable, 'overloaded'],
    ['a status inside a stream', { error: { code: 502, message: 'Upstream' } }, unavailable, '(502)'],
    ['an error with a message only', { message: 'Something' }, unavailable, '(500)'],
    ['a text instead of an error', 'a word', retryable, 'baseUrl'],
    ['an undefined exception', undefined, retryable, 'baseUrl'],
  ])('a failure of a provider is described correctly: %s', (_, thrown, expected, words) => {
    const failure = failureOf(thrown)
    expect(failure).toMatchObject({ ...expected, detail: expect.stringContaining(words) })
    expect(JSON.stringify(failure)).not.toMatch(/sk-Test|Say hello/)
  })

  test('the detail of a failure does not repeat a code that is not a word', () => {
    expect(JSON.stringify(failureOf(buildRefusal(400, { code: 'sk-Test', type: 'Say hello' })))).not.toMatch(
      /sk-Test|Say hello/,
    )
  })

  test.each([
    ['ECONNREFUSED', unavailable, 'api.example.com'],
    ['ENOTFOUND', unavailable, 'api.example.com'],
    ['CERT_HAS_EXPIRED', unavailable, 'models.providers.mine.baseUrl'],
    ['ECONNRESET', retryable, 'ended before its reply'],
  ])('the network error %s is the failure %j, described without the credential of the URL', (code, expected, words) => {
    const cause = Object.assign(new Error('connect to https://user:sk-Test@api.example.com'), { code })
    const failure = failureOf(new Error('Cannot connect to API', { cause }))
    expect(failure).toMatchObject({ ...expected, detail: expect.stringContaining(words) })
    expect(JSON.stringify(failure)).not.toContain('sk-Test')
  })

  test('a 503 after a partial reply counts as an attempt, because it may have cost tokens', () => {
    expect(failureOf(buildRefusal(503, {}), true)).toMatchObject(retryable)
  })

  test('an unexpected error after a partial reply is reported as a truncated stream', () => {
    expect(failureOf(new Error('odd'), true)).toMatchObject({
      ...retryable,
      detail: expect.stringContaining('ended before its reply'),
    })
  })

  test('invalid provider options are reported as an error of the configuration', () => {
    const thrown = Object.assign(new Error('invalid openai provider options'), { name: 'AI_InvalidArgumentError' })
    expect(failureOf(thrown)).toMatchObject({
      ...permanent,
      detail: expect.stringContaining('models.providers.mine.thinking'),
    })
  })

  test('a rate-limited run waits as long as the body of Google’s answer says', () => {
    const error = { status: 'RESOURCE_EXHAUSTED', details: [{ '@type': 'QuotaFailure' }, { retryDelay: '34.5s' }] }
    expect(failureOf(buildRefusal(429, error))).toMatchObject({ status: 'unavailable', retryAfterMs: 34_500 })
  })
})

test.each([
  ['ETXTBSY', { status: 'unavailable' }],
  ['EAGAIN', { status: 'unavailable' }],
  ['ENOENT', { status: 'error', retryable: false }],
  ['EACCES', { status: 'error', retryable: false }],
])('a program that cannot start because of %s is the failure %j', (code, failure) => {
  expect(toStartFailure({ id: 'mine', command: 'agent', secrets: [] }, code)).toMatchObject(failure)
})
