// The provider options of a thinking level for each model, as data: the first row whose pattern matches applies. The table of the README is
// generated from these rows.
import type { Thinking } from '../../../../core/model/action.ts'
import type { ProviderConfig } from '../../../../model/config/agents.ts'
import type { JsonObject } from '../../../../base/json.ts'

/** Provider options of the AI SDK by level. A level that a model lacks has the options of the nearest level. */
type Levels = Readonly<Record<Thinking, JsonObject>>

type ThinkingRow = {
  /** The description of the models in the README. */
  readonly models: string
  readonly pattern: RegExp
  readonly levels: Levels
}

type Six<T> = readonly [off: T, minimal: T, low: T, medium: T, high: T, xhigh: T]

function toLevels<T>(toOptions: (value: T) => JsonObject, ...[off, minimal, low, medium, high, xhigh]: Six<T>): Levels {
  return {
    off: toOptions(off),
    minimal: toOptions(minimal),
    low: toOptions(low),
    medium: toOptions(medium),
    high: toOptions(high),
    xhigh: toOptions(xhigh),
  }
}

const reasoningEffort = (effort: string | undefined): JsonObject =>
  effort === undefined ? {} : { reasoningEffort: effort }
const adaptive = (effort: string): JsonObject => ({ thinking: { type: 'adaptive' }, effort })
const budget = (tokens: number | undefined): JsonObject =>
  tokens === undefined ? {} : { thinking: { type: 'enabled', budgetTokens: tokens } }
const thinkingLevel = (level: string): JsonObject => ({ thinkingConfig: { thinkingLevel: level } })
const thinkingBudget = (tokens: number): JsonObject => ({ thinkingConfig: { thinkingBudget: tokens } })

/** The options of models without reasoning: they refuse unknown options. */
const nothing = toLevels(() => ({}), 0, 0, 0, 0, 0, 0)
const disabled: JsonObject = { thinking: { type: 'disabled' } }

/**
 * The options of OpenAI's models: https://platform.openai.com/docs/api-reference/responses/create#responses-create-reasoning; Anthropic's:
 * https://platform.claude.com/docs/en/build-with-claude/effort; Google's: https://ai.google.dev/gemini-api/docs/thinking. The budgets are
 * our choice, within the limits of each model.
 */
export const thinkingRows: Readonly<Record<ProviderConfig['kind'], readonly ThinkingRow[]>> = {
  openai: [
    {
      models: 'gpt-5-pro',
      pattern: /^gpt-5-pro/,
      levels: toLevels(reasoningEffort, 'high', 'high', 'high', 'high', 'high', 'high'),
    },
    {
      models: 'gpt-5.2-pro and later pro',
      pattern: /^gpt-5\.\d+-pro/,
      levels: toLevels(reasoningEffort, 'medium', 'medium', 'medium', 'medium', 'high', 'xhigh'),
    },
    {
      models: 'o1, o3, o4-mini, gpt-5-codex, gpt-5.1-codex',
      pattern: /^(o\d|gpt-5(\.1)?-codex(?!-max))/,
      levels: toLevels(reasoningEffort, 'low', 'low', 'low', 'medium', 'high', 'high'),
    },
    { models: 'chat models', pattern: /^gpt-[\d.]+-chat/, levels: nothing },
    {
      models: 'gpt-5, gpt-5-mini, gpt-5-nano',
      pattern: /^gpt-5(-|$)/,
      levels: toLevels(reasoningEffort, 'minimal', 'minimal', 'low', 'medium', 'high', 'high'),
    },
    {
      models: 'gpt-5.1',
      pattern: /^gpt-5\.1(?!-codex)/,
      levels: toLevels(reasoningEffort, 'none', 'low', 'low', 'medium', 'high', 'high'),
    },
    {
      models: 'gpt-5.2 and later, gpt-6-sol, gpt-6-luna, gpt-6.1-terra',
      pattern: /^(gpt-5\.\d+(?!.*-codex)|gpt-6-sol$|gpt-6-luna$|gpt-6\.1-terra$)/,
      levels: toLevels(reasoningEffort, 'none', 'low', 'low', 'medium', 'high', 'xhigh'),
    },
    {
      models: 'later codex, other gpt-6 and later',
      pattern: /^gpt-([5-9]|\d\d)/,
      levels: toLevels(reasoningEffort, 'low', 'low', 'low', 'medium', 'high', 'xhigh'),
    },
    { models: 'gpt-4 and others', pattern: /^/, levels: nothing },
  ],
  anthropic: [
    { models: 'claude-3.5 and before', pattern: /claude-(instant|v?2|3(?!-7|\.7))/, levels: nothing },
    {
      models: 'claude-opus-4-0, -4-1',
      pattern: /claude-opus-4-[012]/,
      // the model has 32,000 tokens in all: thinking must leave room for a reply
      levels: toLevels(budget, undefined, 1_024, 4_096, 10_000, 24_000, 24_000),
    },
    {
      models: 'claude-3-7 to claude-4-5',
      pattern: /claude-(3|[a-z]+-4-[0125])/,
      levels: toLevels(budget, undefined, 1_024, 4_096, 10_000, 32_000, 32_000),
    },
    {
      models: 'claude-opus-4-6, claude-sonnet-4-6',
      pattern: /claude-[a-z]+-4-6/,
      levels: { ...toLevels(adaptive, 'low', 'low', 'low', 'medium', 'high', 'high'), off: disabled },
    },
    {
      models: 'claude-opus-5-5, claude-fable-5',
      pattern: /claude-(opus-5-5|fable-5)/,
      // these models always think
      levels: toLevels(adaptive, 'low', 'low', 'low', 'medium', 'high', 'xhigh'),
    },
    {
      models: 'claude-sonnet-5-5',
      pattern: /claude-sonnet-5-5/,
      levels: {
        ...toLevels(adaptive, 'low', 'low', 'low', 'medium', 'high', 'xhigh'),
        off: { thinking: { type: 'between_tools' } },
      },
    },
    {
      models: 'claude-4-7 and later',
      pattern: /claude-/,
      levels: { ...toLevels(adaptive, 'low', 'low', 'low', 'medium', 'high', 'xhigh'), off: disabled },
    },
    { models: 'others', pattern: /^/, levels: toLevels(budget, undefined, 1_024, 4_096, 10_000, 32_000, 32_000) },
  ],
  google: [
    {
      models: 'gemini-2.5-pro',
      pattern: /gemini-2\.5-pro/,
      // this model always thinks, with at least 128 tokens
      levels: toLevels(thinkingBudget, 128, 512, 2_048, 8_192, 24_576, 24_576),
    },
    {
      models: 'gemini-2.5',
      pattern: /gemini-2\.5/,
      levels: toLevels(thinkingBudget, 0, 512, 2_048, 8_192, 24_576, 24_576),
    },
    {
      models: 'gemini-3-pro',
      pattern: /gemini-3-pro/,
      levels: toLevels(thinkingLevel, 'low', 'low', 'low', 'high', 'high', 'high'),
    },
    {
      models: 'later pro',
      pattern: /gemini-([3-9][\d.]*-)?pro(-|$)/,
      levels: toLevels(thinkingLevel, 'low', 'low', 'low', 'medium', 'high', 'high'),
    },
    {
      models: 'other gemini-3 and later',
      pattern: /gemini-([3-9]|flash)/,
      levels: toLevels(thinkingLevel, 'minimal', 'minimal', 'low', 'medium', 'high', 'high'),
    },
    { models: 'others', pattern: /^/, levels: nothing },
  ],
  'openai-compatible': [
    {
      models: 'any',
      pattern: /^/,
      levels: toLevels(reasoningEffort, undefined, 'low', 'low', 'medium', 'high', 'high'),
    },
  ],
}

/** The provider options of a level. Options of the configuration replace those of the row. */
export function toThinkingOptions({
  provider,
  model,
  level,
}: {
  provider: Pick<ProviderConfig, 'kind' | 'thinking'>
  model: string
  level: Thinking
}): JsonObject {
  const own = provider.thinking?.[level]
  if (own !== undefined) return own
  return thinkingRows[provider.kind].find(({ pattern }) => pattern.test(model))?.levels[level] ?? {}
}
