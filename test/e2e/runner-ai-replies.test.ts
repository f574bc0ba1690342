// Abnormal replies to the runner `ai`.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { chatCompletions as api } from './fakes/chat-completions.ts'
import { anthropic } from './fakes/anthropic.ts'
import { openai } from './fakes/openai.ts'
import { type Answer, type FakeProvider, replyWith, startFakeProvider } from './fakes/provider.ts'
import { run } from './runner-stage.ts'

let fake: FakeProvider

beforeEach(async () => {
  fake = await startFakeProvider(api)
})
afterEach(() => fake.close())

const whole = { stream: false } as const

function stopsFor(finish_reason: string, content: string | null): Answer {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason }]
  return (_api, _request, response) => void response.writeHead(200).end(JSON.stringify({ id: 'x', choices }))
}

test('a reply that reached the length limit of the model is delivered, and the log says so', async () => {
  fake.answer = stopsFor('length', 'It was long')
  const { result, lines } = await run({ api, fake, provider: whole })
  expect(result).toMatchObject({ status: 'ok', text: 'It was long' })
  expect(lines).toEqual(['mine: the reply reached its maximum length and is incomplete.'])
})

test('a model that spent its whole output on thinking is not called again', async () => {
  fake.answer = stopsFor('length', '')
  const { result } = await run({ api, fake, provider: whole })
  expect(result).toEqual({
    status: 'error',
    retryable: false,
    detail:
      'mine gave an empty reply (finish reason length). ' +
      'It reached its maximum length before it wrote any text: lower the thinking level.',
  })
})

test('if a content filter stops a reply, the part that came before is not delivered', async () => {
  fake.answer = stopsFor('content_filter', 'It was ab')
  const { result } = await run({ api, fake, provider: whole })
  expect(result).toMatchObject({ status: 'error', retryable: false, detail: expect.stringContaining('content-filter') })
  expect(JSON.stringify(result)).not.toContain('It was ab')
})

test('a reply without usage is delivered', async () => {
  fake.answer = stopsFor('stop', 'Hello')
  const { result } = await run({ api, fake, provider: whole })
  expect(result).toEqual({ status: 'ok', text: 'Hello', model: `mine/${api.model}` })
})

const plainJson: Answer = ({ toReplyBody }, _request, response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(toReplyBody('Hello there')))

test.each([api, openai, anthropic])(
  'a reply of a $kind server that does not stream is read from one request',
  async (plain) => {
    const server = await startFakeProvider(plain)
    server.answer = plainJson
    const { result, lines } = await run({ api: plain, fake: server })
    expect(result).toMatchObject({ status: 'ok', text: 'Hello there', usage: { inputTokens: 11 } })
    expect(server.received).toHaveLength(1)
    expect(lines).toEqual(['mine does not stream its replies. Set models.providers.mine.stream to false.'])
    server.close()
  },
)

test('a JSON answer without a reply is an error', async () => {
  fake.answer = (_api, _request, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end('{"hello":"there"}')
  const { result } = await run({ api, fake })
  expect(result).toMatchObject({ status: 'error', detail: expect.stringContaining('models.providers.mine.baseUrl') })
})

test('a <think> block before a reply is removed, and one inside the reply is kept', async () => {
  fake.answer = replyWith('<think>\nShe is the ', 'harbour master.\n</think>\n\n', 'Hello <think>Mira</think>')
  expect((await run({ api, fake })).result).toMatchObject({ status: 'ok', text: 'Hello <think>Mira</think>' })
})

test('a reply with nothing but a <think> block is an error that a retry may fix', async () => {
  fake.answer = replyWith('<think>Hm.</think>')
  expect((await run({ api, fake })).result).toMatchObject({ status: 'error', retryable: true })
})

test('a provider that needs no key can be used without a key', async () => {
  const open = await startFakeProvider({ ...api, keyHeader: ['x-tenant', 'harbour'] })
  const { result } = await run({ api, fake: open, provider: { apiKey: undefined, headers: { 'x-tenant': 'harbour' } } })
  expect(result).toMatchObject({ status: 'ok' })
  expect(open.received.map(({ headers }) => headers.authorization)).toEqual([undefined])
  open.close()
})

test('the configured options of a thinking level are put unchanged into the body', async () => {
  const options = { chat_template_kwargs: { enable_thinking: false } }
  await run({ api, fake, provider: { thinking: { off: options } }, request: { thinking: 'off' } })
  expect(fake.received.map(({ body }) => body)).toMatchObject([options])
})

test('an option that a model does not support is logged once for each run', async () => {
  const other = await startFakeProvider(openai)
  const { result, lines } = await run({
    api: { ...openai, model: 'gpt-4.1' },
    fake: other,
    provider: { thinking: { high: { reasoningEffort: 'high' } } },
    request: { thinking: 'high' },
  })
  expect(result).toMatchObject({ status: 'ok' })
  expect(lines).toEqual([expect.stringContaining('mine: "reasoningEffort" is not supported')])
  other.close()
})

test('an option of a thinking level with an invalid value is a permanent failure that names its configuration key, and no request is sent', async () => {
  const other = await startFakeProvider(openai)
  const { result } = await run({
    api: openai,
    fake: other,
    provider: { thinking: { high: { reasoningEffort: 7 } } },
    request: { thinking: 'high' },
  })
  expect(result).toMatchObject({
    status: 'error',
    retryable: false,
    detail: expect.stringContaining('models.providers.mine.thinking'),
  })
  expect(other.received).toEqual([])
  other.close()
})
