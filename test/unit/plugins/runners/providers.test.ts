import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { toConversation } from '../../../../src/plugins/runners/shared/ai/call.ts'
import { createRunner } from './stage.ts'
import { chooseModel } from '../../../../src/plugins/runners/shared/ai/providers.ts'
import { aiRunner } from '../../../../src/plugins/runners/ai.ts'
import { ModelsConfig } from '../../../../src/model/config/agents.ts'
import type { Message } from '../../../../src/model/job.ts'
import { toRunRequest } from '../../../e2e/runner-request.ts'

const models = ModelsConfig.parse({
  aliases: { quick: 'local/hf.co/qwen/qwen3:8b' },
  providers: {
    local: { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:11434/v1' },
    openai: { kind: 'openai', apiKey: 'sk-x' },
    keyless: { kind: 'anthropic' },
    nowhere: { kind: 'openai-compatible' },
    pasted: { kind: 'google', apiKey: 'AIza x' },
  },
})

describe('the choice of a model', () => {
  test.each([
    ['local/llama3.3', 'local', 'llama3.3'],
    ['local/hf.co/qwen/qwen3:8b', 'local', 'hf.co/qwen/qwen3:8b'],
    ['quick', 'local', 'hf.co/qwen/qwen3:8b'],
    [' openai/gpt-5.2 ', 'openai', 'gpt-5.2'],
  ])('the model name %s means the expected provider and model', (asked, provider, model) => {
    expect(chooseModel(asked, models)).toMatchObject({ ok: true, provider: { name: provider }, model })
  })

  test.each([
    [undefined, 'agents.defaults.model'],
    ['gpt-5.2', 'models.aliases'],
    ['/gpt-5.2', '<provider>/<model>'],
    ['openai/', '<provider>/<model>'],
    ['local/../../admin', '<provider>/<model>'],
    ['local/qwen3?key=x', '<provider>/<model>'],
    ['local/qwen 3', '<provider>/<model>'],
    ['opnai/gpt-5.2', 'Did you mean "openai"?'],
    ['constructor/gpt-5.2', 'models.providers has no "constructor"'],
    ['keyless/claude-opus-4-7', 'models.providers.keyless.apiKey is missing'],
    ['nowhere/qwen3', 'models.providers.nowhere.baseUrl is missing'],
    ['pasted/gemini-3-flash', 'models.providers.pasted.apiKey'],
  ])('the model name %s is refused with the key of the configuration to check', async (asked, words) => {
    const result = await createRunner(aiRunner, {}, { models }).run(toRunRequest({ model: asked }), {
      signal: new AbortController().signal,
      log() {},
    })
    expect(result).toMatchObject({ status: 'error', retryable: false, detail: expect.stringContaining(words) })
    expect(JSON.stringify(result)).not.toContain('AIza')
  })

  test('a model name from a sender is shortened and shown on one line', () => {
    const choice = chooseModel(`other\u2028/${'x'.repeat(10_000)}\nDone.`, models)
    expect(choice).toMatchObject({ ok: false, reason: expect.not.stringMatching(/[\n\u2028]|x{200}/) })
    const unknown = chooseModel(`other${'y'.repeat(10_000)}/x`, models)
    expect(unknown).toMatchObject({ ok: false, reason: expect.not.stringMatching(/y{200}/) })
  })

  test('a probe names every provider that cannot be asked, and asks the others', async () => {
    const asked: string[] = []
    const fetch = async (url: string | URL | Request) => {
      asked.push(String(url))
      return new Response('{}', { status: 404 })
    }
    const probe = await createRunner(aiRunner, {}, { models, fetch }).probe?.(new AbortController().signal)
    expect(asked).toEqual(['http://127.0.0.1:11434/v1/models', 'https://api.openai.com/v1/models'])
    expect(probe?.ok).toBe(false)
    for (const name of Object.keys(models.providers)) expect(probe?.detail).toContain(`models.providers.${name}.`)
  })

  test('a probe without a provider says that there is no model to ask', async () => {
    const probe = await createRunner(aiRunner, {}, { models: ModelsConfig.parse({}) }).probe?.(
      new AbortController().signal,
    )
    expect(probe).toMatchObject({ ok: false, detail: expect.stringContaining('models.providers is empty') })
  })
})

describe('a conversation', () => {
  const toMessage = (role: Message['role'], text: string): Message => ({ role, text, runId: 'r', at: 0 })

  test('a conversation ends with the prompt, and keeps every message', () => {
    expect(toConversation([toMessage('user', 'a'), toMessage('assistant', 'b')], 'c')).toEqual([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
    ])
  })

  test('roles alternate: consecutive messages of one role become one message', () => {
    const history = [
      toMessage('user', 'a'),
      toMessage('system', 'closed'),
      toMessage('assistant', 'b'),
      toMessage('assistant', 'c'),
    ]
    expect(toConversation([...history, toMessage('user', 'd')], 'e')).toEqual([
      { role: 'user', content: 'a\n\nSystem: closed' },
      { role: 'assistant', content: 'b\n\nc' },
      { role: 'user', content: 'd\n\ne' },
    ])
  })

  test('a conversation begins with the user, and has no blank message', () => {
    expect(
      toConversation([toMessage('assistant', 'a'), toMessage('user', ' '), toMessage('assistant', 'b')], 'c'),
    ).toEqual([{ role: 'user', content: 'c' }])
  })
})

test('the packages of the providers are loaded by the first run, not by the start', () => {
  const folder = resolve(import.meta.dirname, '../../../../src/plugins/runners')
  const eager = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .filter((name) =>
      /^import (?!type )[^;]*? from '(ai|@ai-sdk\/\w+)'/m.test(readFileSync(join(folder, name), 'utf8')),
    )
  expect(eager).toEqual([])
})
