// Agents, models, runners and channels: every name in a configuration must refer to something, or its key is reported.
import { describe, expect, test } from 'vitest'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { findConfigIssues } from '../../../../src/model/config/rules.ts'

function findIssues(parts: object): string[] {
  return findConfigIssues(ConfigSchema.parse(parts)).map(({ text }) => text)
}

const local = { providers: { local: { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:11434/v1' } } }

describe('models and runners of agents', () => {
  test('an agent may name a model of a known provider, or an alias of a model', () => {
    expect(findIssues({ models: local, agents: { defaults: { model: 'local/llama' } } })).toEqual([])
    const aliased = {
      models: { ...local, aliases: { fast: 'local/llama' } },
      agents: { list: [{ id: 'a', model: 'fast' }] },
    }
    expect(findIssues(aliased)).toEqual([])
  })

  test('the error of a model without a provider names the missing section', () => {
    expect(findIssues({ agents: { defaults: { model: 'openai/gpt' } } })).toEqual([
      'agents.defaults.model names the provider "openai", which is not in models.providers. Add models.providers.openai.',
    ])
  })

  test('a model that is neither <provider>/<model> nor an alias is refused', () => {
    const parts = {
      models: { ...local, aliases: { fast: 'local/llama' } },
      agents: { list: [{ id: 'a', model: 'fats' }] },
    }
    expect(findIssues(parts)[0]).toMatch(/^agents\.list\[0\]\.model must be .* Did you mean "fast"\?$/)
  })

  test('an agent with a command runner may name any model', () => {
    expect(findIssues({ agents: { defaults: { model: 'sonnet', runner: 'claude' } } })).toEqual([])
  })

  test('the error of an unknown runner suggests the nearest one, and a configured runner is known', () => {
    expect(findIssues({ agents: { defaults: { runner: 'cluade' } } })[0]).toContain('Did you mean "claude"?')
    const mine = { runners: { mine: { kind: 'command', command: 'agent' } }, agents: { defaults: { runner: 'mine' } } }
    expect(findIssues(mine)).toEqual([])
  })
})

test('an openai-compatible provider needs a baseUrl', () => {
  const parts = { models: { providers: { local: { kind: 'openai-compatible' } } } }
  expect(findIssues(parts)[0]).toMatch(/^models\.providers\.local\.baseUrl is required/)
})

test('a command runner needs a program or a profile, and must not have the name of a built-in runner', () => {
  const runners = { bare: { kind: 'command' }, echo: { kind: 'command', command: 'echo' } }
  expect(findIssues({ runners })).toEqual([
    'runners.bare.command is required without a profile.',
    'runners.echo is built in. Give this runner another name.',
  ])
})

test('channels.default must name a configured channel or the console', () => {
  expect(findIssues({ channels: { default: { channel: 'telegram', to: '7' } } })).toEqual([
    'channels.default.channel is "telegram", and channels.telegram is not set. Set it.',
  ])
  const telegram = { telegram: { botToken: 't' }, default: { channel: 'telegram', to: '7' } }
  expect(findIssues({ channels: telegram })).toEqual([])
  expect(findIssues({ channels: { default: { channel: 'console' } } })).toEqual([])
})

test.each([
  ['30m', 1_800_000],
  ['1.5h', 5_400_000],
  ['45 s', 45_000],
  ['2d', 172_800_000],
  [10, 600_000],
  ['0', 0],
])('heartbeat.every %j is %d ms', (every, ms) => {
  expect(ConfigSchema.parse({ agents: { defaults: { heartbeat: { every } } } }).agents.defaults.heartbeat.every).toBe(
    ms,
  )
})

test.each(['soon', '-5m', '10 weeks', -1])('heartbeat.every %j is refused', (every) => {
  expect(ConfigSchema.safeParse({ agents: { defaults: { heartbeat: { every } } } }).success).toBe(false)
})
