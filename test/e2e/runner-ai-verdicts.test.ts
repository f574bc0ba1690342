// Verdicts of the runner `ai`: by structured output, or else by the call of a tool, or else by the text of the reply.
import { describe, expect, test } from 'vitest'
import type { Provider } from './runner-stage.ts'
import { anthropic } from './fakes/anthropic.ts'
import { chatCompletions } from './fakes/chat-completions.ts'
import { google } from './fakes/gemini.ts'
import { openai } from './fakes/openai.ts'
import { type Answer, type Api, callAnswerTool, refuseWith, replyWith, startFakeProvider } from './fakes/provider.ts'
import { run } from './runner-stage.ts'

const apis = [openai, anthropic, google, chatCompletions]
const cases = apis.flatMap((api) => [true, false].map((stream) => ({ api, stream, kind: api.kind })))
const verdicts = ['pass', 'fail']
const reply = 'Two tests fail:\n- "a"\n- “b”'
const toJson = (fields: object) => JSON.stringify(fields)

/** Runs one request against a fake that sends `answers` in order. Returns the forms in which the fake was asked. */
async function ask(api: Api, answers: readonly Answer[], provider: Provider = {}) {
  const fake = await startFakeProvider(api)
  const left = [...answers]
  fake.answer = (...given) => (left.shift() ?? refuseWith(500))(...given)
  const { result, lines } = await run({ api, fake, provider, request: { verdicts } })
  const asked = fake.received.map(({ body }) => api.findForm(body))
  fake.close()
  return { result, lines, forms: asked.map((each) => each?.form), schemas: asked.map((each) => each?.schema) }
}

const refuseFeature = (what: string) =>
  refuseWith(400, {}, { error: { message: `This model does not support ${what}.`, type: 'invalid_request_error' } })
const noFormat = refuseFeature('response_format json_schema')
const noTools = refuseFeature('tools')

describe.each(cases)('verdicts of $kind, streamed: $stream', ({ api, stream }) => {
  test('a verdict is asked for by structured output, whose schema allows only the listed words', async () => {
    const text = toJson({ reply, verdict: 'fail' })
    const { result, forms, schemas } = await ask(api, [replyWith(text.slice(0, 9), text.slice(9))], { stream })
    expect(result).toMatchObject({ status: 'ok', text: reply, verdict: { word: 'fail', form: 'structured-output' } })
    expect(forms).toEqual(['structured-output'])
    expect(schemas[0]).toMatchObject({ properties: { verdict: { enum: verdicts } }, required: ['reply', 'verdict'] })
  })

  test('a verdict is asked for by a tool call if structured output is refused', async () => {
    const { result, forms, schemas, lines } = await ask(api, [noFormat, callAnswerTool({ reply, verdict: 'pass' })], {
      stream,
    })
    expect(result).toMatchObject({
      status: 'ok',
      text: reply,
      verdict: { word: 'pass', form: 'tool-call' },
      usage: { inputTokens: 11 },
    })
    expect(forms).toEqual(['structured-output', 'tool-call'])
    expect(schemas[1]).toMatchObject({ properties: { verdict: { enum: verdicts } } })
    expect(lines).toEqual(['mine does not give a verdict in this form. It is asked by tool call.'])
  })

  test('a verdict is taken from the text of the reply if tools are refused too', async () => {
    const { result, forms } = await ask(api, [noFormat, noTools, replyWith('All good.\npass')], { stream })
    expect(result).toMatchObject({ status: 'ok', text: 'All good.\npass' })
    expect(result).not.toHaveProperty('verdict')
    expect(forms).toEqual(['structured-output', 'tool-call', undefined])
  })
})

test.each([
  ['that ignores the schema', 'All good.\npass', 'All good.\npass'],
  ['that writes other JSON', '{"ok":true}', '{"ok":true}'],
  ['with a word that is not in the list of verdicts', toJson({ reply, verdict: 'maybe' }), reply],
  ['with a verdict that is not a string', toJson({ reply, verdict: ['pass'] }), reply],
  ['that was cut off', toJson({ reply, verdict: 'pass' }).slice(0, -4), reply],
])('a reply %s is delivered without a verdict', async (_, text, expected) => {
  const { result } = await ask(chatCompletions, [replyWith(text)])
  expect(result).toMatchObject({ status: 'ok', text: expected })
  expect(result).not.toHaveProperty('verdict')
})

test.each([
  ['in a code fence', `\`\`\`json\n${toJson({ reply, verdict: 'pass' })}\n\`\`\``],
  ['after its thoughts', `<think>Hm, {"x"}</think>${toJson({ reply, verdict: 'pass' })}`],
  ['with the word in another case', toJson({ reply, verdict: ' Pass' })],
])('a model’s reply %s has a verdict', async (_, text) => {
  const { result } = await ask(chatCompletions, [replyWith(text)])
  expect(result).toMatchObject({ text: reply, verdict: { word: 'pass', form: 'structured-output' } })
})

test('a verdict without a reply is a valid answer', async () => {
  const { result } = await ask(chatCompletions, [replyWith(toJson({ reply: '', verdict: 'pass' }))])
  expect(result).toMatchObject({ status: 'ok', text: 'pass', verdict: { word: 'pass' } })
})

test('a model that refuses for another reason is not asked again in another form', async () => {
  for (const answer of [refuseWith(400), refuseWith(401), refuseWith(429), refuseWith(503)]) {
    const { result, forms } = await ask(chatCompletions, [answer])
    expect(result.status).not.toBe('ok')
    expect(forms).toEqual(['structured-output'])
  }
})

test('without verdicts, no request has a schema or a tool', async () => {
  for (const api of apis) {
    const fake = await startFakeProvider(api)
    const { result } = await run({ api, fake })
    expect(result).toMatchObject({ status: 'ok', text: 'Hello' })
    expect(api.findForm(fake.received[0]?.body)).toBeUndefined()
    fake.close()
  }
})
