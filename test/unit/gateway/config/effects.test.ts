// Mistakes in agents, models, runners, channels and their URLs: each is reported in one line.
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/gateway/config/config.ts'

function check(parts: object): readonly string[] {
  return parseConfig(JSON.stringify(parts), {}).problems
}

describe('an invalid section', () => {
  test("a mistake in a channel's section does not cause a second error at channels.default", () => {
    const route = { channel: 'telegram', to: '42' }
    expect(check({ channels: { telegram: { botToken: '${BOT}' }, default: route } })).toEqual([
      'channels.telegram.botToken needs BOT, which is not set. Set it in the environment or in .env.',
    ])
    expect(check({ channels: { default: route } })).toEqual([
      'channels.default.channel is "telegram", and channels.telegram is not set. Set it.',
    ])
  })

  test('a mistake in a provider does not cause a second error at its model', () => {
    const agents = { defaults: { model: 'local/llama' } }
    expect(check({ models: { providers: { local: { kind: 'opneai' } } }, agents })).toEqual([
      'models.providers.local.kind: expected one of "openai", "anthropic", "google", "openai-compatible", found "opneai". Did you mean "openai"?',
    ])
  })

  test('a mistake in a runner does not cause a second error at its agent', () => {
    const agents = { defaults: { runner: 'mine' } }
    expect(check({ runners: { mine: { kind: 'command', command: 'x', output: 'jsnol' } }, agents })).toEqual([
      'runners.mine.output: expected one of "text", "json", "jsonl", found "jsnol". Did you mean "jsonl"?',
    ])
  })
})

describe('URLs of the configuration', () => {
  const baseUrls = [
    ['https://chat.example/team/..', 'must not have "." or ".." in its path'],
    ['https://chat.example/./team', 'must not have "." or ".." in its path'],
    ['https://chat.example/%2E%2e/x', 'must not have "." or ".." in its path'],
    ['https://chat.example\\x', 'must be an http or https URL without query'],
    [
      'https://user:secret@chat.example',
      'must not contain a user name or a password: no request can be made to such a URL',
    ],
    ['https://chat.example:99999', 'must be an http or https URL'],
    ['https://[chat', 'must be an http or https URL'],
  ]
  test.each(baseUrls)('the URL %s is refused, and its password is not shown', (baseUrl, why) => {
    const sections = [
      ['channels.mattermost.baseUrl', { channels: { mattermost: { token: 't', baseUrl } } }],
      ['channels.msteams.loginUrl', { channels: { msteams: { appId: 'a', appPassword: 'b', loginUrl: baseUrl } } }],
      ['runners.r.baseUrl', { runners: { r: { kind: 'openclaw', token: 't', baseUrl } } }],
    ] as const
    for (const [key, parts] of sections) {
      const problems = check(parts)
      expect(problems).toHaveLength(1)
      expect(problems[0]).toContain(`${key} ${why}`)
      expect(problems[0]).not.toContain('secret')
    }
  })

  test('a URL may have several path segments, and dots inside a segment', () => {
    const baseUrl = 'https://chat.example:8065/a..b/.well/v2.0/'
    expect(check({ channels: { mattermost: { token: 't', baseUrl } } })).toEqual([])
  })

  test('the URL of an endpoint may have a query, but no user name', () => {
    const checkUrl = (url: string) =>
      check({ channels: { webhook: { endpoints: { a: { url, secret: 'long-enough-for-all' } } } } })
    expect(checkUrl('https://hooks.example/x?token=1')).toEqual([])
    expect(checkUrl('https://user@hooks.example/x')[0]).toMatch(
      /channels\.webhook\.endpoints\.a\.url must not contain a user/,
    )
    expect(checkUrl('https://hooks.example:99999/x')[0]).toMatch(/must be an http or https URL/)
  })

  test('a name that is put into the path of a URL cannot change the URL', () => {
    const names = [
      ['telegram.botToken', { telegram: { botToken: '42:a/../x' } }],
      ['whatsapp.phoneNumberId', { whatsapp: { accessToken: 't', phoneNumberId: '..' } }],
      ['msteams.tenantId', { msteams: { appId: 'a', appPassword: 'b', tenantId: '..' } }],
    ] as const
    for (const [key, channels] of names) expect(check({ channels })[0]).toMatch(`channels.${key} must be made of`)
  })
})

describe('names of models', () => {
  const local = { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:11434/v1' }
  const models = { providers: { local }, aliases: { fast: 'local/llama' } }

  test('a model must have a known provider wherever a hook can name it', () => {
    expect(
      check({
        models: { ...models, aliases: { fast: 'loacl/llama' } },
        agents: { defaults: { models: ['fats', 'other/llama'] } },
      }),
    ).toEqual([
      'agents.defaults.models[0] must be <provider>/<model> or an alias, found "fats". Did you mean "fast"?',
      'agents.defaults.models[1] names the provider "other", which is not in models.providers. Add models.providers.other.',
      'models.aliases.fast names the provider "loacl", which is not in models.providers. Did you mean "local"?',
    ])
    expect(check({ models, hooks: { mappings: [{ model: 'loacl/llama' }] } })).toEqual([
      'hooks.mappings[0].model names the provider "loacl", which is not in models.providers. Did you mean "local"?',
    ])
    expect(check({ models, hooks: { mappings: [{ model: 'fast' }, { model: 'local/other' }] } })).toEqual([])
  })

  test('a model is any text for a command runner, and <provider>/<model> everywhere else', () => {
    const hooks = { mappings: [{ model: 'sonnet' }] }
    const wrong = ['hooks.mappings[0].model must be <provider>/<model> or an alias, found "sonnet".']
    expect(check({ models, agents: { list: [{ id: 'main', runner: 'claude' }] }, hooks })).toEqual([])
    expect(check({ hooks })).toEqual(wrong)
    expect(check({ agents: { defaults: { runner: 'echo' } }, hooks })).toEqual(wrong)
    // only the agent of the mapping counts
    const agents = {
      list: [
        { id: 'main', runner: 'claude' },
        { id: 'ops', runner: 'echo' },
      ],
    }
    expect(check({ agents, hooks: { mappings: [{ model: 'sonnet', agentId: 'ops' }] } })).toEqual(wrong)
  })

  test('a mapping may name any model while no provider is configured', () => {
    expect(check({ hooks: { mappings: [{ model: 'openai/gpt-5' }] } })).toEqual([])
  })

  test('two aliases that differ only in case are refused', () => {
    const aliases = { Fast: 'local/llama' }
    const hooks = { mappings: [{ model: 'fast' }, { model: ' FAST' }] }
    expect(check({ models: { ...models, aliases }, hooks })).toEqual([])
    expect(check({ models: { ...models, aliases: { ...aliases, fast: 'local/llama' } } })).toEqual([
      'models.aliases.fast is set twice: aliases ignore case. Remove one of them.',
    ])
  })
})

test('the error for a number out of range shows the number', () => {
  expect(check({ agents: { defaults: { maxConcurrent: 0 } } })).toEqual([
    'agents.defaults.maxConcurrent: expected a number above 0, found 0',
  ])
})

describe('keys that allow only listed words', () => {
  test('the error of an unknown kind of runner lists all kinds', () => {
    expect(check({ runners: { mine: { kind: 'comand' } } })).toEqual([
      'runners.mine.kind: expected one of "command", "openclaw", "workspace-agent", "claude-routine", "hermes", "mcp-events", found "comand". Did you mean "command"?',
    ])
    expect(check({ runners: { mine: {} } })).toEqual([
      'runners.mine.kind: expected one of "command", "openclaw", "workspace-agent", "claude-routine", "hermes", "mcp-events", found nothing',
    ])
  })

  test('the error of an unknown thinking level suggests the nearest one', () => {
    const local = { kind: 'openai', thinking: { hihg: {} } }
    expect(check({ models: { providers: { local } } })).toEqual([
      'models.providers.local.thinking.hihg is an unknown key. Did you mean high?',
    ])
  })
})
