// The runner `ai` with the real packages of each provider, against fakes of their APIs.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { aiRunner } from '../../src/plugins/runners/ai.ts'
import { createRunner } from '../unit/plugins/runners/stage.ts'
import { thinkingLevels } from '../../src/core/model/action.ts'
import { anthropic } from './fakes/anthropic.ts'
import { chatCompletions } from './fakes/chat-completions.ts'
import { google } from './fakes/gemini.ts'
import { openai } from './fakes/openai.ts'
import {
  apiKey,
  breakOff,
  failInStream,
  type FakeProvider,
  staySilent,
  answerEndlessly,
  refuseWith,
  replyWith,
  stall,
  startFakeProvider,
} from './fakes/provider.ts'
import { run, toModels } from './runner-stage.ts'

const at = 1_700_000_000_000
const history = [
  { role: 'assistant', text: 'A reply that lost its question.', runId: 'a', at },
  { role: 'user', text: 'Who is Mira?', runId: 'b', at },
  { role: 'assistant', text: 'The harbour master.', runId: 'b', at },
  { role: 'system', text: 'The harbour is closed.', runId: 'c', at },
] as const

const thinkingSeen: Record<string, readonly unknown[]> = {
  openai: ['none', 'low', 'low', 'medium', 'high', 'xhigh'].map((effort) => ({ effort })),
  anthropic: [
    { type: 'disabled' },
    ...['low', 'low', 'medium', 'high', 'xhigh'].map((effort) => ({ type: 'adaptive', effort })),
  ],
  google: ['minimal', 'minimal', 'low', 'medium', 'high', 'high'].map((thinkingLevel) => ({ thinkingLevel })),
  'openai-compatible': [undefined, 'low', 'low', 'medium', 'high', 'high'],
}

const answeredBy: Record<string, string> = {
  openai: 'mine/gpt-5.2-2025-12-11',
  anthropic: 'mine/claude-opus-4-7-20260416',
  google: 'mine/gemini-3-flash-preview',
  'openai-compatible': 'mine/hf.co/qwen/qwen3:8b',
}

describe.each([openai, anthropic, google, chatCompletions])('the API $kind', (api) => {
  let fake: FakeProvider

  beforeEach(async () => {
    fake = await startFakeProvider(api)
  })
  afterEach(() => fake.close())

  test.each([true, false])(
    'a run is one request with the conversation from its first question on, and returns the reply (stream: %s)',
    async (stream) => {
      fake.answer = replyWith('Hello, ', 'Mira.')
      const { result, lines } = await run({
        api,
        fake,
        provider: { stream, headers: { 'x-tenant': 'harbour' } },
        request: { system: 'You greet people.', history },
      })
      expect(result).toEqual({
        status: 'ok',
        text: 'Hello, Mira.',
        model: answeredBy[api.kind],
        usage: {
          inputTokens: 11,
          outputTokens: 7,
          cachedInputTokens: 4,
          ...(api.kind === 'anthropic' ? {} : { reasoningTokens: 2 }),
        },
      })
      expect(lines).toEqual([])
      expect(fake.received).toHaveLength(1)
      const [seen] = fake.received
      expect(seen?.headers['x-tenant']).toBe('harbour')
      expect(seen && api.isStreamed(seen)).toBe(stream)
      const sent = JSON.stringify(seen?.body)
      for (const text of [
        'You greet people.',
        'Who is Mira?',
        'The harbour master.',
        'The harbour is closed.',
        'Look at this',
      ]) {
        expect(sent).toContain(text)
      }
      expect(sent).not.toContain('lost its question')
    },
  )

  test('each thinking level is sent to the model in the form of its API', async () => {
    for (const thinking of thinkingLevels) await run({ api, fake, request: { thinking } })
    await run({ api, fake })
    expect(fake.received.map(({ body }) => api.findThinking(body))).toEqual([
      ...(thinkingSeen[api.kind] ?? []),
      undefined,
    ])
  })

  test.each([true, false])(
    'a rate limit is reported with its Retry-After, after one request (stream: %s)',
    async (stream) => {
      fake.answer = refuseWith(429, { 'retry-after': '7' })
      const { result } = await run({ api, fake, provider: { stream } })
      expect(result).toMatchObject({ status: 'unavailable', retryAfterMs: 7_000 })
      expect(fake.received).toHaveLength(1)
    },
  )

  test.each([
    [500, { status: 'unavailable' }],
    [503, { status: 'unavailable' }],
    [529, { status: 'unavailable' }],
    [400, { status: 'error', retryable: false }],
    [401, { status: 'error', retryable: false, detail: expect.stringContaining('models.providers.mine.apiKey') }],
    [403, { status: 'error', retryable: false, detail: expect.stringContaining('models.providers.mine.apiKey') }],
    [404, { status: 'error', retryable: false, detail: expect.stringContaining(api.model) }],
  ])('the status %i is reported without the text of the provider', async (status, expected) => {
    fake.answer = refuseWith(status)
    for (const stream of [true, false]) {
      const { result } = await run({ api, fake, provider: { stream } })
      expect(result).toMatchObject(expected)
      expect(JSON.stringify(result)).not.toMatch(/sk-Test|Refused|Say hello/)
    }
    expect(fake.received).toHaveLength(2)
  })

  test.each(['reset', 'end'] as const)('a stream that ends early is an error and not a reply (by %s)', async (how) => {
    fake.answer = breakOff(how)
    const { result } = await run({ api, fake })
    expect(result).toMatchObject({
      status: 'error',
      retryable: true,
      detail: expect.stringContaining('ended before its reply'),
    })
  })

  test('an error inside a stream is the result of the run, and closes the connection', async () => {
    fake.answer = failInStream()
    const { result } = await run({ api, fake })
    expect(result).toMatchObject({ status: 'unavailable' })
    await fake.received[0]?.closed
  })

  test.each([
    ['before it answers', staySilent],
    ['in the middle of a stream', stall()],
  ])('the connection to a provider that stops answering %s is closed when the run ends', async (_, answer) => {
    fake.answer = answer
    const limit = new AbortController()
    const asked = fake.nextRequest()
    const ran = run({ api, fake, signal: limit.signal })
    const { closed } = await asked
    limit.abort(new DOMException('The time is up.', 'TimeoutError'))
    expect((await ran).result).toMatchObject({ status: 'timeout' })
    await closed
  })

  test('a model that sends no first byte in time counts as unavailable, and the connection is closed', async () => {
    fake.answer = staySilent
    const { result } = await run({ api, fake, provider: { firstByteSeconds: 0.05 } })
    expect(result).toMatchObject({
      status: 'unavailable',
      detail: expect.stringContaining('raise models.providers.mine.firstByteSeconds'),
    })
    await fake.received[0]?.closed
    fake.answer = replyWith('Late, but ', 'in time.')
    const slow = await run({ api, fake, provider: { firstByteSeconds: 30 } })
    expect(slow.result).toMatchObject({ status: 'ok', text: 'Late, but in time.' })
  })

  test.each([200, 500])(
    'an answer that never ends is cut off before it fills the memory (status %i)',
    async (status) => {
      fake.answer = answerEndlessly(status)
      const { result } = await run({ api, fake })
      expect(result).toMatchObject({ status: 'error', retryable: false, detail: expect.stringContaining('64 MB') })
      await fake.received[0]?.closed
    },
  )

  test('a reply of more than one megabyte counts as a failure', async () => {
    fake.answer = replyWith('a'.repeat(1_048_577))
    const { result } = await run({ api, fake })
    expect(result).toMatchObject({ status: 'error', retryable: false, detail: expect.stringContaining('1 MB') })
  })

  test('a run that a shutdown stops may be tried again', async () => {
    fake.answer = staySilent
    const limit = new AbortController()
    const asked = fake.nextRequest()
    const ran = run({ api, fake, signal: limit.signal })
    await asked
    limit.abort()
    expect((await ran).result).toMatchObject({ status: 'error', retryable: true })
  })

  test.each([true, false])(
    'an empty reply is an error that gives the reason why the model stopped (stream: %s)',
    async (stream) => {
      fake.answer = replyWith(' ')
      const { result } = await run({ api, fake, provider: { stream } })
      expect(result).toMatchObject({ status: 'error', retryable: true, detail: expect.stringContaining('stop') })
    },
  )

  test('the error for an answer that is not JSON names the URL to check', async () => {
    fake.answer = (_api, _request, response) => void response.writeHead(200).end('<html>Welcome</html>')
    const { result } = await run({ api, fake, provider: { stream: false } })
    expect(result).toMatchObject({ status: 'error', detail: expect.stringContaining('models.providers.mine.baseUrl') })
  })

  test('an address that cannot be reached counts as unavailable, and the failure names its host, not the key', async () => {
    const { baseUrl } = fake
    fake.close()
    const { result } = await run({ api, fake: { baseUrl } })
    expect(result).toMatchObject({ status: 'unavailable' })
    expect(JSON.stringify(result)).toContain(new URL(baseUrl).host)
    expect(JSON.stringify(result)).not.toContain(apiKey)
    fake = await startFakeProvider(api)
  })

  test('a run of a model prints nothing, whatever its result', async () => {
    const printed: unknown[] = []
    for (const method of ['error', 'warn', 'info', 'log'] as const) {
      vi.spyOn(console, method).mockImplementation((...words: unknown[]) => void printed.push(words))
    }
    try {
      for (const answer of [replyWith('Hello'), refuseWith(400), failInStream(), breakOff('end')]) {
        fake.answer = answer
        await run({ api, fake })
      }
    } finally {
      vi.restoreAllMocks()
    }
    expect(fake.received).toHaveLength(4)
    expect(printed).toEqual([])
  })

  test('a probe of a model asks for the list of models, with the key', async () => {
    const runner = createRunner(aiRunner, {}, { models: toModels(api, fake) })
    const { signal } = new AbortController()
    expect(await runner.probe?.(signal)).toEqual({ ok: true, detail: 'mine answers.' })
    fake.answer = refuseWith(401)
    expect(await runner.probe?.(signal)).toMatchObject({ ok: false, detail: expect.stringContaining('apiKey') })
    expect(fake.received.map(({ method, path }) => [method, path])).toEqual([
      ['GET', api.listPath],
      ['GET', api.listPath],
    ])
  })
})
