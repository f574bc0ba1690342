import { describe, expect, test } from 'vitest'
import { thinkingRows, toThinkingOptions } from '../../../../src/plugins/runners/shared/ai/thinking.ts'
import { thinkingLevels } from '../../../../src/core/model/action.ts'

const kinds = ['openai', 'anthropic', 'google', 'openai-compatible'] as const
type Kind = (typeof kinds)[number]

const optionsOf = (kind: Kind, model: string) =>
  thinkingLevels.map((level) => toThinkingOptions({ provider: { kind }, model, level }))
const effortsOf = (model: string) => optionsOf('openai', model).map(({ reasoningEffort }) => reasoningEffort ?? '-')

describe('the levels of a model', () => {
  // the accepted values: https://platform.openai.com/docs/guides/reasoning
  test.each([
    ['o3-mini', 'low low low medium high high'],
    ['gpt-5-mini-2025-08-07', 'minimal minimal low medium high high'],
    ['gpt-5-pro', 'high high high high high high'],
    ['gpt-5-codex', 'low low low medium high high'],
    ['gpt-5-chat-latest', '- - - - - -'],
    ['gpt-5.1', 'none low low medium high high'],
    ['gpt-5.1-chat-latest', '- - - - - -'],
    ['gpt-5.1-codex-mini', 'low low low medium high high'],
    ['gpt-5.1-codex-max', 'low low low medium high xhigh'],
    ['gpt-5.2-2025-12-11', 'none low low medium high xhigh'],
    ['gpt-5.2-pro', 'medium medium medium medium high xhigh'],
    ['gpt-5.3-codex', 'low low low medium high xhigh'],
    ['gpt-6-sol', 'none low low medium high xhigh'],
    ['gpt-6.2', 'low low low medium high xhigh'],
    ['gpt-4.1', '- - - - - -'],
    ['ft:my-own', '- - - - - -'],
  ])('the model %s gets only effort levels that it accepts', (model, efforts) => {
    expect(effortsOf(model).join(' ')).toBe(efforts)
  })

  test.each([
    ['claude-3-5-haiku-20241022', 'claude-3.5 and before'],
    ['claude-3-7-sonnet-20250219', 'claude-3-7 to claude-4-5'],
    ['claude-sonnet-4-20250514', 'claude-3-7 to claude-4-5'],
    ['claude-opus-4-20250514', 'claude-opus-4-0, -4-1'],
    ['claude-opus-4-1', 'claude-opus-4-0, -4-1'],
    ['claude-haiku-4-5-20251001', 'claude-3-7 to claude-4-5'],
    ['claude-opus-4-5', 'claude-3-7 to claude-4-5'],
    ['claude-sonnet-4-6', 'claude-opus-4-6, claude-sonnet-4-6'],
    ['claude-opus-4-7', 'claude-4-7 and later'],
    ['claude-haiku-5-5', 'claude-4-7 and later'],
    ['claude-sonnet-5', 'claude-4-7 and later'],
    ['claude-sonnet-5-5', 'claude-sonnet-5-5'],
    ['claude-opus-5-5', 'claude-opus-5-5, claude-fable-5'],
    ['claude-fable-5-1', 'claude-opus-5-5, claude-fable-5'],
    ['MiniMax-M2', 'others'],
  ])('the Anthropic model %s uses the row: %s', (model, row) => {
    expect(rowOf('anthropic', model)).toBe(row)
  })

  test.each([
    ['gemini-2.0-flash', 'others'],
    ['gemma-3-27b-it', 'others'],
    ['gemini-2.5-flash-lite', 'gemini-2.5'],
    ['gemini-2.5-pro', 'gemini-2.5-pro'],
    ['gemini-3-pro-preview', 'gemini-3-pro'],
    ['gemini-3.1-pro-preview', 'later pro'],
    ['gemini-3.1-pro', 'later pro'],
    ['gemini-pro-latest', 'later pro'],
    ['gemini-3-flash-preview', 'other gemini-3 and later'],
    ['gemini-flash-latest', 'other gemini-3 and later'],
    ['gemini-4-argon', 'other gemini-3 and later'],
  ])('the Google model %s uses the row: %s', (model, row) => {
    expect(rowOf('google', model)).toBe(row)
  })

  test('the thinking budget of claude-opus-4-1 leaves room for its reply', () => {
    const budgets = optionsOf('anthropic', 'claude-opus-4-1').flatMap(({ thinking }) => Object.values(thinking ?? {}))
    expect(Math.max(...budgets.filter((value) => typeof value === 'number'))).toBeLessThan(32_000)
  })

  test('a configured level replaces only that level of the table', () => {
    const provider = {
      kind: 'openai-compatible',
      thinking: { off: { chat_template_kwargs: { think: false } } },
    } as const
    expect(toThinkingOptions({ provider, model: 'qwen3', level: 'off' })).toEqual(provider.thinking.off)
    expect(toThinkingOptions({ provider, model: 'qwen3', level: 'high' })).toEqual({ reasoningEffort: 'high' })
  })
})

function rowOf(kind: Kind, model: string): string | undefined {
  return thinkingRows[kind].find(({ pattern }) => pattern.test(model))?.models
}
