import { describe, expect, test } from 'vitest'
import { describeDatabase } from '../../../../src/base/postgres-url.ts'
import { parseConfig } from '../../../../src/gateway/config/config.ts'
import { findBudgetWarnings } from '../../../../src/model/config/budget-rules.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'

const token = 'a-token-of-the-hooks'
const check = (data: object): readonly string[] => parseConfig(JSON.stringify(data), {}).problems
const checkHooks = (hooks: object, rest: object = {}) => check({ hooks: { enabled: true, token, ...hooks }, ...rest })
const checkMapping = (mapping: object, hooks: object = {}, rest: object = {}) =>
  checkHooks({ ...hooks, mappings: [mapping] }, rest)

/** The paths that are reported for a valid and for an invalid configuration. */
function toPaths({ good, bad }: { good: readonly string[]; bad: readonly string[] }) {
  return { good, bad: bad.map((line) => line.split(' ')[0]) }
}

const toBad = (path: string) => ({ good: [], bad: [path] })

test('a response is refused for a mapping with forEach', () => {
  const response = { body: 'Got it' }
  expect(toPaths({ good: checkMapping({ response }), bad: checkMapping({ response, forEach: 'items' }) })).toEqual(
    toBad('hooks.mappings[0].response'),
  )
})

test('verdicts must be two to ten different words, and are refused for an OpenClaw agent, which keeps its replies', () => {
  const forwarded = {
    agents: { defaults: { runner: 'oc' } },
    runners: { oc: { kind: 'openclaw', baseUrl: 'http://127.0.0.1:1/hooks', token: 't' } },
  }
  const good = checkMapping({ verdicts: ['pass', 'needs-work', 'gescheitert_ß'] })
  expect(toPaths({ good, bad: checkMapping({ verdicts: ['pass', 'fail'] }, {}, forwarded) })).toEqual(
    toBad('hooks.mappings[0].verdicts'),
  )
  const eleven = Array.from({ length: 11 }, (_, at) => `word${at}`)
  for (const verdicts of [
    [],
    ['pass'],
    ['pass', 'PASS'],
    ['pass', 'not pass'],
    ['pass', '-'],
    ['pass', '{{x}}'],
    eleven,
  ])
    expect(checkMapping({ verdicts })).not.toEqual([])
  expect(checkMapping({ action: 'wake', verdicts: ['pass', 'fail'] })).not.toEqual([])
})

test('the recipients of an agent must name configured channels, and an OpenClaw agent may have only one recipient', () => {
  const slack = { channel: 'slack', to: 'C024BE91L' }
  const channels = { slack: { botToken: 'x' } }
  const forwarded = {
    agents: { defaults: { runner: 'oc' } },
    runners: { oc: { kind: 'openclaw', baseUrl: 'http://127.0.0.1:1/hooks', token: 't' } },
  }
  const to = [slack, { channel: 'console' }]
  expect(checkMapping({ to }, {}, { channels })).toEqual([])
  const bad = [
    checkMapping({ to: [slack, { channel: 'discord', to: '1' }] }, {}, { channels }),
    checkMapping({ to }, {}, { channels, ...forwarded }),
    checkMapping({ to, channel: 'slack' }, {}, { channels }),
    checkMapping({ to, action: 'wake' }, {}, { channels }),
  ]
  expect(bad.map(([line]) => line?.split(' ')[0])).toEqual(
    ['to[1].channel', 'to', 'channel', 'to'].map((key) => `hooks.mappings[0].${key}`),
  )
})

test('a mapping with the action deliver is valid only if its channels are configured and it has no key that only a turn uses', () => {
  const checkDeliver = (mapping: object) =>
    checkMapping({ action: 'deliver', ...mapping }, {}, { channels: { slack: { botToken: 'x' } } })
  const slack = { channel: 'slack', to: 'C024BE91L' }
  const flow = { onNew: 'replace', key: 'a:{{b}}' }
  for (const good of [{}, slack, { to: [slack, { channel: 'console' }] }, { flow }])
    expect(checkDeliver(good)).toEqual([])
  const bad: [object, string][] = [
    [{ agentId: 'main' }, 'agentId'],
    [{ model: 'x' }, 'model'],
    [{ sessionKey: 'hook:x' }, 'sessionKey'],
    [{ verdicts: ['a', 'b'] }, 'verdicts'],
    [{ textTemplate: 'x' }, 'textTemplate'],
    [{ to: '{{chat}}' }, 'to'],
    [{ to: [slack], channel: 'slack' }, 'channel'],
    [{ to: [slack, slack], response: { body: 'x' } }, 'response'],
    [{ to: [slack, { channel: 'discord' }] }, 'to[1].channel'],
    [{ flow: { ...flow, onNew: 'gather' } }, 'flow.onNew'],
  ]
  for (const [mapping, key] of bad)
    expect(checkDeliver(mapping).map((line) => line.split(' ')[0])).toContain(`hooks.mappings[0].${key}`)
})

test('a recipient on the channel webhook must be the name of an endpoint, unless a transform may choose another channel', () => {
  const endpoints = { ci: { url: 'https://ci.test/in', secret: 'correct horse battery' } }
  const checkTo = (to: unknown, more: object = {}) =>
    checkMapping({ channel: 'webhook', to, ...more }, {}, { channels: { webhook: { endpoints } } })
  expect(checkTo('ops')).toEqual(['hooks.mappings[0].to is not a name in channels.webhook.endpoints. It has "ci".'])
  const listed = [{ channel: 'console' }, { channel: 'webhook', to: 'constructor' }]
  expect(checkTo(listed, { channel: undefined })).toEqual([
    'hooks.mappings[0].to[1].to is not a name in channels.webhook.endpoints. It has "ci".',
  ])
  expect(checkTo('ci')).toEqual([])
  expect(checkTo('ops', { transform: { module: 'x.ts' } })).toEqual([])
})

test('a callback must name a configured endpoint', () => {
  const endpoints = { ci: { url: 'https://ci.example', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } }
  const checkCallback = (callback: string, sections: object = { channels: { webhook: { endpoints } } }) =>
    checkMapping({ callback }, {}, sections)
  for (const bad of ['toString', 'https://ci.example'])
    expect(toPaths({ good: checkCallback('ci'), bad: checkCallback(bad) })).toEqual(toBad('hooks.mappings[0].callback'))
  expect(checkCallback('ci', {})).not.toEqual([])
})

describe('tokens in the configuration', () => {
  test('only enabled hooks need a token', () => {
    expect(toPaths({ good: check({ hooks: { enabled: false } }), bad: check({ hooks: { enabled: true } }) })).toEqual(
      toBad('hooks.token'),
    )
  })

  test('a token with few rights must differ from every other one, be long enough, and name rights that exist', () => {
    const gateway = { token: 'another-token-of-it' }
    const checkTokens = (tokens: object, rest: object = { gateway }) => checkHooks({}, { tokens, ...rest })
    const good = { token: 'a-third-token-of-it', may: ['send:ci-*', 'runs', 'read'], expiresAt: '2027-01-31' }
    const listTokenKeys = (tokens: object, rest?: object) =>
      checkTokens(tokens, rest).map((line) => line.split(/[ :]/)[0])
    expect(checkTokens({ ci: good })).toEqual([])
    for (const same of [token, gateway.token])
      expect(listTokenKeys({ ci: { ...good, token: same } })).toEqual(['tokens.ci.token'])
    expect(listTokenKeys({ ci: good, two: good })).toEqual(['tokens.two.token'])
    expect(listTokenKeys({ ci: { ...good, token: 'short' } })).toEqual(['tokens.ci.token'])
    for (const right of ['send', 'send:', 'send:/x', 'send:a b', 'write', 'runs:x'])
      expect(listTokenKeys({ ci: { ...good, may: [right] } })).toEqual(['tokens.ci.may[0]'])
    expect(listTokenKeys({ ci: { ...good, may: [] } })).toEqual(['tokens.ci.may'])
    expect(listTokenKeys({ ci: { ...good, expiresAt: 'soon' } })).toEqual(['tokens.ci.expiresAt'])
    expect(listTokenKeys({ ci: good }, {})).toEqual(['tokens.ci.may'])
    expect(listTokenKeys({ ci: { ...good, may: ['runs'] } }, {})).toEqual([])
  })

  test('the hook token must differ from the gateway token in more than the spaces around it', () => {
    expect(
      toPaths({
        good: checkHooks({}, { gateway: { token: 'another-token-of-it' } }),
        bad: checkHooks({}, { gateway: { token: ` ${token}` } }),
      }),
    ).toEqual({ good: [], bad: ['gateway.token', 'hooks.token'] })
  })

  test.each([' another-token-of-it', 'another-token-of-it\n'])(
    'a gateway token with white space around it is refused, because no command could send it: %j',
    (spaced) => {
      expect(checkHooks({}, { gateway: { token: spaced } })).toEqual([
        expect.stringMatching(/^gateway\.token must have no white space around it/),
      ])
      expect(checkHooks({}, { gateway: { token: 'another token-of-it' } })).toEqual([])
    },
  )

  test('hooks.tokens follows the rules of hooks.token, and excludes it', () => {
    const buildConfig = (hooks: object) =>
      check({ hooks: { enabled: true, ...hooks }, gateway: { token: 'theirs-of-the-gateway' } })
    expect(buildConfig({ tokens: ['new-of-the-hooks', 'old-of-the-hooks'] })).toEqual([])
    expect(buildConfig({ tokens: ['new-of-the-hooks', 'theirs-of-the-gateway'] })).toEqual([
      expect.stringMatching(/^hooks\.tokens\[1\] must differ/),
    ])
    expect(buildConfig({ tokens: [' new-of-the-hooks', 'old-of-the-hooks'] })).toEqual([
      expect.stringMatching(/^hooks\.tokens\[0\] must be ASCII/),
    ])
    expect(buildConfig({ token: 'new-of-the-hooks', tokens: ['old-of-the-hooks'] })).toEqual([
      expect.stringMatching(/^hooks\.tokens and hooks\.token/),
    ])
  })

  test('a token that cannot be sent in a header is refused', () => {
    expect(
      toPaths({
        good: checkHooks({ token: 'two words of it all' }),
        bad: checkHooks({ token: 'schlüssel-des-hauses' }),
      }),
    ).toEqual(toBad('hooks.token'))
    expect(checkHooks({ token: ' padded-on-both-sides ' })).toHaveLength(1)
    expect(checkHooks({ token: 'line\nbreak-in-the-middle' })).toHaveLength(1)
  })

  test('no error shows a token', () => {
    expect(checkHooks({}, { gateway: { token } }).join()).not.toContain(token)
  })
})

describe('store.file and store.url', () => {
  const checkStore = (store: object) => check({ store })

  test('store.file and store.url exclude each other', () => {
    expect(
      toPaths({
        good: checkStore({ url: 'postgres://db/hooks' }),
        bad: checkStore({ url: 'postgres://db/hooks', file: 'x.db' }),
      }),
    ).toEqual(toBad('store.url'))
    expect(checkStore({ file: 'x.db' })).toEqual([])
  })

  test.each([
    'postgres://db',
    'postgresql://user:p%40ss%2Fword@db.example.com:5432/hooks?sslmode=verify-full',
    'postgres://user:a+b!c@[::1]:5432/hooks',
    'postgres://user@/hooks?host=%2Fvar%2Frun%2Fpostgresql',
  ])('store.url accepts %s', (url) => {
    expect(checkStore({ url })).toEqual([])
  })

  // the password of each URL would be shown if a part of it were mistaken for the host or the database
  test.each([
    'mysql://user:canary@db/hooks',
    'user:canary@db/hooks',
    'postgres://user:can/ary@db/hooks',
    'postgres://user:1234/canary@db/hooks',
    'postgres://user:1234?canary@db/hooks',
    'postgres://user:canary#1@db/hooks',
    'postgres://user:canary%zz@db/hooks',
    'postgres://user:canary @db/hooks',
    'postgres://user:canary@one@db/hooks',
    'postgres://user:canary@db:port/hooks',
  ])('store.url refuses %s, and the error shows nothing of it', (url) => {
    const [line = '', ...more] = checkStore({ url })
    expect([line, more]).toEqual([expect.stringMatching(/^store\.url: expected a value that is a Postgres URL/), []])
    expect(line).not.toContain('canary')
    expect(describeDatabase(url)).toBe('localhost')
  })

  test('a database is shown by host, port and name only', () => {
    expect(describeDatabase('postgres://user:canary@db:5432/hooks?password=canary')).toBe('db:5432/hooks')
    expect(describeDatabase('postgres://user:canary@/hooks?host=%2Frun%2Fpg')).toBe('/run/pg/hooks')
    // the driver connects to the host and the port of the parameters, if there are any
    expect(describeDatabase('postgres://user:canary@db:5432/hooks?host=other')).toBe('other:5432/hooks')
    expect(describeDatabase('postgres://user:canary@[::1]:5432/hooks?port=6432')).toBe('[::1]:6432/hooks')
    expect(describeDatabase('postgres://user:canary@[::1]/hooks')).toBe('[::1]/hooks')
  })
})

describe('mappings in the configuration', () => {
  test('a commit status is refused if no channel can set it', () => {
    expect(checkMapping({ status: 'review' })).toEqual([
      'hooks.mappings[0].status needs a channel that sets it. Set channels.github or channels.gitlab.',
    ])
    expect(checkMapping({ status: 'review' }, {}, { channels: { github: { token: 't' } } })).toEqual([])
    expect(checkMapping({ status: 'review' }, {}, { channels: { gitlab: { token: 't' } } })).toEqual([])
    const ofLinear = { verify: { scheme: 'linear', secret: 's' }, status: 'review' }
    expect(checkMapping(ofLinear, {}, { channels: { github: { token: 't' } } })).toEqual([
      'hooks.mappings[0].status is for commits, and Linear has none. Remove it.',
    ])
  })

  test('a channel that is not configured is refused, unless a transform may choose another one, OpenClaw delivers, or nothing is sent', () => {
    const checkChannels = (mapping: object, channels: object = {}) => checkMapping(mapping, {}, { channels })
    expect(checkChannels({ channel: 'slack' })).toEqual([
      'hooks.mappings[0].channel is "slack", and channels.slack is not set. Set it.',
    ])
    expect(checkChannels({ channel: 'own:ntfy' })).toEqual([
      'hooks.mappings[0].channel is "own:ntfy", and channels.own.ntfy is not set. Set it.',
    ])
    expect(checkChannels({ channel: 'slack' }, { slack: { botToken: 'x' } })).toEqual([])
    expect(checkChannels({ channel: 'slack', deliver: false })).toEqual([])
    const forwarded = {
      agents: { defaults: { runner: 'oc' } },
      runners: { oc: { kind: 'openclaw', baseUrl: 'http://127.0.0.1:1/hooks', token: 't' } },
    }
    expect(checkMapping({ channel: 'slack' }, {}, forwarded)).toEqual([])
    expect(checkChannels({ channel: 'slack', action: 'wake' })).toEqual([])
    expect(checkChannels({ channel: 'slack', transform: { module: 'x.ts' } })).toEqual([])
  })

  test('two mappings with the same id are refused', () => {
    expect(
      toPaths({
        good: checkHooks({ mappings: [{ id: 'a' }, { id: 'b' }, {}, {}] }),
        bad: checkHooks({ mappings: [{ id: 'a' }, { id: 'a' }] }),
      }),
    ).toEqual(toBad('hooks.mappings[1].id'))
  })

  test('a mapping cannot override wake or agent, with or without slashes', () => {
    for (const path of ['wake', '/wake/', 'agent', 'agent/']) {
      expect(
        toPaths({
          good: checkMapping({ match: { path: `${path}-up` } }),
          bad: checkMapping({ match: { path } }),
        }),
      ).toEqual(toBad('hooks.mappings[0].match.path'))
    }
  })

  test('a session key must be main or begin with an allowed prefix, and a template must have a fixed beginning that such a key can have', () => {
    const hooks = { allowedSessionKeyPrefixes: ['hook:', 'Team:'] }
    for (const sessionKey of ['hook:x', 'Team:x', 'main', 'hook:{{id}}', ' hook:{{id}}', 'ho{{id}}', 'Team:a:{{id}}']) {
      expect(checkMapping({ sessionKey }, hooks)).toEqual([])
    }
    expect(
      toPaths({
        good: checkMapping({ sessionKey: 'other:x' }),
        bad: checkMapping({ sessionKey: 'other:x' }, hooks),
      }),
    ).toEqual(toBad('hooks.mappings[0].sessionKey'))
    expect(
      toPaths({
        good: checkMapping({ sessionKey: 'hook:x' }, hooks),
        bad: checkMapping({ sessionKey: 'HOOK:x' }, hooks),
      }),
    ).toEqual(toBad('hooks.mappings[0].sessionKey'))
    expect(
      toPaths({
        good: checkMapping({ sessionKey: 'other:{{id}}' }),
        bad: checkMapping({ sessionKey: 'other:{{id}}' }, hooks),
      }),
    ).toEqual(toBad('hooks.mappings[0].sessionKey'))
    // no rendered key is allowed: not even "main", which only a fixed key may be
    expect(
      toPaths({
        good: checkMapping({ sessionKey: 'main{{id}}' }),
        bad: checkMapping({ sessionKey: 'main{{id}}' }, hooks),
      }),
    ).toEqual(toBad('hooks.mappings[0].sessionKey'))
  })

  test('a session key that begins with a placeholder needs hooks.allowRequestSessionKey', () => {
    for (const sessionKey of ['{{id}}', ' {{id}}:x']) {
      expect(
        toPaths({
          good: checkMapping({ sessionKey }, { allowRequestSessionKey: true }),
          bad: checkMapping({ sessionKey }),
        }),
      ).toEqual(toBad('hooks.mappings[0].sessionKey'))
    }
  })

  test.each(['jobs/*', 'users/:id', ':id', 'users/{id}/events', '*'])(
    'match.path %s is refused, because no request has a pattern as its name',
    (path) => {
      const [issue = '', ...more] = checkMapping({ match: { path } })
      expect(more).toEqual([])
      expect(issue).toMatch(/^hooks\.mappings\[0\]\.match\.path contains ".+", .*leave out "path"/)
      expect(checkMapping({ match: { path: 'jobs/a:b' } })).toEqual([])
    },
  )

  test('match.path must be a hook name as it appears in a URL', () => {
    const checkPath = (path: string, hooks = {}) => checkMapping({ match: { path } }, hooks)
    for (const path of ['github', '/a/b/', 'a%20b', 'hooks', 'hooksmith/x', '__proto__'])
      expect(checkPath(path)).toEqual([])
    expect(checkPath('/hooks/github')).toEqual([
      'hooks.mappings[0].match.path must be the part of the URL after hooks.path: write "github".',
    ])
    expect(toPaths({ good: checkPath('/hooks/x', { path: '/in' }), bad: checkPath('/in/x', { path: '/in' }) })).toEqual(
      toBad('hooks.mappings[0].match.path'),
    )
    expect(checkPath('https://gateway.example/hooks/github').join()).toContain('found a whole URL')
    expect(checkPath('two words').join()).toContain('write "two%20words"')
    expect(checkPath('a%20grüße').join()).toContain('write "a%20gr%C3%BC%C3%9Fe"')
    expect(checkPath('half \uD83D').join()).toContain('write "half%20%EF%BF%BD"')
    expect(checkPath('x?topic=a').join()).toContain('contains "?"')
  })

  test('a condition on a credential header or an invalid header name is refused', () => {
    const checkHeader = (name: string) => checkMapping({ match: { headers: { [name]: 'x' } } })
    expect(checkHeader('x-github-event')).toEqual([])
    for (const name of ['Authorization', 'cookie', 'x-service-token', 'X-Gitlab-Token']) {
      expect(checkHeader(name)).toEqual([
        `hooks.mappings[0].match.headers.${name} is a credential, which conditions cannot read. Check the sender with "verify".`,
      ])
    }
    expect(checkHeader('two words')).toHaveLength(1)
    expect(checkHeader('')).toHaveLength(1)
  })

  test('a mapping that has only the template of the other action is refused', () => {
    const [messageTemplate, textTemplate] = ['{{a}}', '{{b}}']
    for (const [action, key] of [
      ['agent', 'textTemplate'],
      ['wake', 'messageTemplate'],
    ] as const) {
      expect(
        toPaths({
          good: checkMapping({ action, messageTemplate, textTemplate }),
          bad: checkMapping({ action, [key]: 'x' }),
        }),
      ).toEqual(toBad(`hooks.mappings[0].${key}`))
    }
  })

  test('a wake refuses the keys of an agent run', () => {
    const turn = { agentId: 'ops', sessionKey: 'k', to: '42', model: 'a/b', thinking: 'low', timeoutSeconds: 5 }
    expect(checkMapping(turn)).toEqual([])
    expect(checkMapping({ ...turn, action: 'wake' }).map((line) => line.split(' ')[0])).toEqual(
      Object.keys(turn).map((key) => `hooks.mappings[0].${key}`),
    )
  })

  test('a placeholder in a literal key is refused', () => {
    const literal = { agentId: '{{a}}', to: '{{chat.id}}', model: 'a/{{m}}' }
    expect(checkMapping(literal).map((line) => line.split(' ')[0])).toEqual(
      Object.keys(literal).map((key) => `hooks.mappings[0].${key}`),
    )
  })

  test('a fixed session key that is too long or has a control character is refused', () => {
    expect(
      toPaths({
        good: checkMapping({ sessionKey: 'k'.repeat(512) }),
        bad: checkMapping({ sessionKey: 'k'.repeat(513) }),
      }),
    ).toEqual(toBad('hooks.mappings[0].sessionKey'))
    expect(checkMapping({ sessionKey: 'a\nb' })).toHaveLength(1)
  })

  test('a persistent session needs a session key or a transform', () => {
    const mapping = { sessionMode: 'persistent' }
    expect(checkMapping({ ...mapping, sessionKey: 'k' })).toEqual([])
    expect(checkMapping({ ...mapping, transform: { module: 'a.ts' } })).toEqual([])
    expect(
      toPaths({
        good: checkMapping(mapping, { defaultSessionKey: 'k' }),
        bad: checkMapping(mapping),
      }),
    ).toEqual(toBad('hooks.mappings[0].sessionMode'))
  })

  test('a mapping to an agent outside hooks.allowedAgentIds is refused', () => {
    const mapping = { agentId: 'ops' }
    expect(checkMapping(mapping)).toEqual([])
    expect(checkMapping(mapping, { allowedAgentIds: ['*'] })).toEqual([])
    expect(checkMapping({}, { allowedAgentIds: [] })).toEqual([])
    expect(checkMapping(mapping, { allowedAgentIds: [] })).toHaveLength(1)
    expect(
      toPaths({
        good: checkMapping(mapping, { allowedAgentIds: ['ops'] }),
        bad: checkMapping(mapping, { allowedAgentIds: ['main'] }),
      }),
    ).toEqual(toBad('hooks.mappings[0].agentId'))
  })

  test('a model outside agents.defaults.models is refused, once its alias is resolved', () => {
    const rest = {
      agents: { defaults: { models: ['acme/small'] } },
      models: { aliases: { fast: 'acme/small', big: 'acme/big' } },
    }
    expect(checkMapping({ model: 'acme/big' })).toEqual([])
    expect(checkMapping({ model: 'acme/small' }, {}, rest)).toEqual([])
    expect(
      toPaths({
        good: checkMapping({ model: 'fast' }, {}, rest),
        bad: checkMapping({ model: 'big' }, {}, rest),
      }),
    ).toEqual(toBad('hooks.mappings[0].model'))
    expect(
      toPaths({
        good: checkHooks({ gmail: { model: 'fast' } }, rest),
        bad: checkHooks({ gmail: { model: 'big' } }, rest),
      }),
    ).toEqual(toBad('hooks.gmail.model'))
    const byAlias = { ...rest, agents: { defaults: { models: ['fast'] } } }
    expect(
      toPaths({
        good: checkMapping({ model: 'acme/small' }, {}, byAlias),
        bad: checkMapping({ model: 'acme/big' }, {}, byAlias),
      }),
    ).toEqual(toBad('hooks.mappings[0].model'))
  })
})

describe('other rules of the configuration', () => {
  test('a trusted proxy must be an address or a CIDR', () => {
    const checkProxies = (...trustedProxies: string[]) => check({ server: { trustedProxies } })
    expect(checkProxies('10.0.0.1', '10.0.0.0/8', '::1', 'fd00::/8')).toEqual([])
    for (const proxy of ['localhost', '10.0.0.0/33', '10.0.0', ' 10.0.0.1', '']) {
      expect(checkProxies('10.0.0.1', proxy)).toEqual([
        'server.trustedProxies[1] must be an IP address or a CIDR such as 10.0.0.0/8',
      ])
    }
  })

  test('the two ports of one address must differ', () => {
    const same = 'server.adminPort must differ from server.port, which is 8800 too'
    expect(check({ server: { port: 8800, adminPort: 8800 } })).toEqual([same])
    expect(check({ server: { port: 8800, adminPort: 8801 } })).toEqual([])
    expect(check({ server: { port: 0, adminPort: 0 } })).toEqual([])
    expect(check({ server: { port: 8800, adminPort: 8800, host: '192.0.2.1' } })).toEqual([])
  })

  test('an admin port that others can reach needs the gateway token', () => {
    const checkAdmin = (server: object, gateway: object = {}) => check({ server, gateway })
    expect(checkAdmin({ adminHost: '::1' })).toEqual([])
    expect(checkAdmin({ adminHost: '0.0.0.0' }, { token: 'theirs-of-the-gateway' })).toEqual([])
    expect(checkAdmin({ adminHost: '0.0.0.0' })).toEqual([
      expect.stringMatching(/^server\.adminHost .*needs gateway\.token/),
    ])
    expect(checkAdmin({ adminNames: ['a.test'] })).toEqual([
      expect.stringMatching(/^server\.adminNames .*needs gateway\.token/),
    ])
    for (const name of ['http://a.test', 'a.test:80', 'a b', '', '*'])
      expect(checkAdmin({ adminNames: [name] }, { token: 'theirs-of-the-gateway' })).toHaveLength(1)
  })

  test('the default session key must be literal and begin with an allowed prefix', () => {
    const allowedSessionKeyPrefixes = ['hook:']
    expect(
      toPaths({
        good: checkHooks({ allowedSessionKeyPrefixes, defaultSessionKey: 'hook:inbox' }),
        bad: checkHooks({ allowedSessionKeyPrefixes, defaultSessionKey: 'inbox' }),
      }),
    ).toEqual(toBad('hooks.defaultSessionKey'))
    expect(checkHooks({ defaultSessionKey: 'hook:{{id}}' })).toHaveLength(1)
  })

  test('an alias must name a model, not another alias', () => {
    const checkAliases = (aliases: object) => check({ models: { aliases } })
    expect(
      toPaths({
        good: checkAliases({ fast: 'acme/small', quick: 'acme/small', deep: 'hub/acme/large' }),
        bad: checkAliases({ fast: 'quick', quick: 'acme/small' }),
      }),
    ).toEqual(toBad('models.aliases.fast'))
    expect(checkAliases({ a: 'b', b: 'a' })).toHaveLength(2)
    for (const model of ['small', 'acme/', '/small', 'acme/the small'])
      expect(checkAliases({ a: model })).toHaveLength(1)
    expect(checkAliases({ 'acme/a': 'acme/small' })).toHaveLength(1)
  })

  test('agents must have different ids, and at most one of them is the default', () => {
    const checkAgents = (list: object[]) => check({ agents: { list } })
    expect(
      toPaths({
        good: checkAgents([{ id: 'a' }, { id: 'b' }]),
        bad: checkAgents([{ id: 'a' }, { id: 'a' }]),
      }),
    ).toEqual(toBad('agents.list[1].id'))
    expect(
      toPaths({
        good: checkAgents([{ id: 'a', default: true }, { id: 'b' }]),
        bad: checkAgents([{ id: 'a', default: true }, { id: 'b' }, { id: 'c', default: true }]),
      }),
    ).toEqual(toBad('agents.list[2].default'))
  })
})

describe('conditions of a mapping', () => {
  const checkPayload = (tests: unknown) => checkMapping({ match: { path: 'a', payload: { field: tests } } })

  test.each<[unknown, RegExp]>([
    [{}, /must have at least one test/],
    [{ matches: '(' }, /must be a regular expression of RE2: missing closing \)/],
    [{ matches: '(?=x)' }, /must be a regular expression of RE2: invalid or unsupported Perl syntax/],
    [{ matches: 'a'.repeat(501) }, /500/],
    [{ not: { matches: '(' } }, /missing closing \)/],
    [{ not: [] }, /field/],
    [{ gt: '5' }, /gt/],
    [{ gt: 5, lt: 5 }, /must have limits that a number can fit/],
    [{ gte: 5, lt: 5 }, /must have limits that a number can fit/],
    [{ exists: false, matches: 'x' }, /must not ask for a missing value and for what only a value can be/],
    [{ exists: false, lte: 5 }, /must not ask for a missing value/],
    [{ matches: 'x', not: { matches: 'x' } }, /must not ask for what it denies/],
    [{ matchs: 'x' }, /matchs/],
  ])('the conditions %j of a payload field are refused', (tests, reason) => {
    expect(checkPayload(tests)[0]).toMatch(reason)
  })

  test('a condition of a payload field is accepted if some value can satisfy it', () => {
    const fitting = [
      { gte: 5, lte: 5 },
      { gt: 5 },
      { exists: false },
      { not: null },
      { not: ['a', 1] },
      { exists: false, not: 1 },
    ]
    expect(fitting.flatMap(checkPayload)).toEqual([])
    expect(checkMapping({ match: { event: { not: 'ping' }, headers: { a: { matches: '^b$' } } } })).toEqual([])
  })

  test('an event or header with a number range is refused, and so is an alternative with a path or without a condition', () => {
    expect(checkMapping({ match: { event: { exists: false, matches: 'x' } } })[0]).toMatch(/must not ask for a missing/)
    expect(checkMapping({ match: { event: { gt: 1 } } })[0]).toMatch(/event.gt is an unknown key/)
    expect(checkMapping({ match: { headers: { a: { lt: 1 } } } })[0]).toMatch(/a.lt is an unknown key/)
    expect(checkMapping({ match: { any: [{}] } })).toEqual([expect.stringMatching(/must have at least one condition/)])
    expect(checkMapping({ match: { any: [{ path: 'a' }] } })[0]).toMatch(/any\[0\].path is an unknown key/)
    expect(checkMapping({ match: { any: [] } })).toHaveLength(1)
  })
})

describe('rules for flow', () => {
  const agent = { match: { path: 'x' }, action: 'agent', messageTemplate: 'x' }
  const key = 'pr:{{pull_request.id}}'
  const cancelOn = { payload: { action: 'closed' } }
  test.each<[title: string, good: object, bad: object, path: string]>([
    [
      'maxDelay must be greater than delay',
      { delay: '5s', maxDelay: '6s' },
      { delay: '5s', maxDelay: '5s' },
      '.maxDelay',
    ],
    ['replace needs a key from the payload', { onNew: 'replace', key }, { onNew: 'replace', key: 'one' }, '.key'],
    ['replace needs a key at all', { onNew: 'replace', key }, { onNew: 'replace' }, '.key'],
    ['cancelOn needs a key from the payload', { cancelOn, key }, { cancelOn, key: 'one' }, '.key'],
    ['every name of limits must exist', { limits: ['model'] }, { limits: ['model', 'modal'] }, '.limits[1]'],
    ['refuse needs maxQueued', { onFull: 'refuse', maxQueued: 2 }, { onFull: 'refuse' }, '.onFull'],
  ])('flow obeys the rule: %s', (_title, good, bad, path) => {
    const limits = { model: { total: 1 } }
    const report = (flow: object) => checkMapping({ ...agent, flow }, {}, { limits })
    expect(toPaths({ good: report(good), bad: report(bad) })).toEqual(toBad(`hooks.mappings[0].flow${path}`))
  })
})

describe('rules for budgets', () => {
  const budgets = { daily: { usd: 1 }, small: { tokens: 10_000 }, few: { turns: 2 } }
  const priced = { id: 'm', cost: { input: 1, output: 10 }, maxTokens: 8_000 }
  /** The issues of an agent of the runner `ai`. The model `local/dear` may use 1.60 US dollars for one reply. */
  const find = (defaults: object, { list = [], mapping }: { list?: readonly object[]; mapping?: object } = {}) =>
    checkHooks(
      mapping === undefined ? {} : { mappings: [{ match: { path: 'x' }, messageTemplate: 'x', ...mapping }] },
      {
        budgets,
        agents: { defaults: { model: 'local/m', ...defaults }, list },
        models: {
          providers: {
            local: {
              kind: 'openai-compatible',
              baseUrl: 'http://127.0.0.1:1/v1',
              models: [priced, { ...priced, id: 'dear', cost: { input: 0, output: 200 } }, { id: 'plain' }],
            },
          },
        },
      },
    )
  const all = ['daily', 'small', 'few']

  test('a configured budget is accepted if each model has the price and the limits that the budget needs', () => {
    expect(find({ budgets: all }, { list: [{ id: 'a', budgets: ['few'] }], mapping: { budgets: all } })).toEqual([])
    // a budget of turns needs no price
    expect(find({ budgets: ['few'], model: 'local/plain' })).toEqual([])
  })

  test.each<[string, () => readonly string[], RegExp]>([
    [
      'an unknown name that is similar to the name of a budget',
      () => find({ budgets: ['dayly'] }),
      /^agents\.defaults\.budgets\[0\] .*"dayly".* Did you mean "daily"\?/,
    ],
    [
      'the name of a property that every object inherits',
      () => find({ budgets: ['toString'] }),
      /^agents\.defaults\.budgets\[0\] .* Add budgets\.toString\./,
    ],
    [
      'an unknown name at one agent',
      () => find({}, { list: [{ id: 'a', budgets: ['few', 'zzzzzz'] }] }),
      /^agents\.list\[0\]\.budgets\[1\] names the budget "zzzzzz"/,
    ],
    [
      'an unknown name at a mapping',
      () => find({}, { mapping: { budgets: ['zzzzzz'] } }),
      /^hooks\.mappings\[0\]\.budgets\[0\] names the budget "zzzzzz"/,
    ],
    [
      'dollars, and a model without a price',
      () => find({ budgets: ['daily'], model: 'local/plain' }),
      /^agents\.defaults\.budgets has the budget "daily" in US dollars, and the model local\/plain has no price/,
    ],
    [
      'dollars, and a fallback without a price',
      () => find({ budgets: ['daily'], modelFallbacks: ['local/plain'] }),
      /^agents\.defaults\.budgets .* the model local\/plain has no price/,
    ],
    [
      'dollars, and the model of a mapping without a price',
      () => find({ budgets: ['daily'] }, { mapping: { model: 'local/plain' } }),
      /^hooks\.mappings\[0\]\.model .* the model local\/plain has no price/,
    ],
    [
      'fewer dollars than one reply may cost',
      () => find({ budgets: ['daily'], model: 'local/dear' }),
      /^agents\.defaults\.budgets .* one reply of local\/dear may use .*1\.6.*Lower maxTokens .*\(now 8000\)/,
    ],
    [
      'fewer tokens than a reply may have without maxTokens',
      () => find({}, { mapping: { budgets: ['small'], model: 'local/plain' } }),
      /^hooks\.mappings\[0\]\.budgets .* one reply of local\/plain may use .*\(now 16384\)/,
    ],
  ])('the configuration of budgets is refused with its reason: %s', (_title, report, sentence) => {
    expect(report()).toEqual([expect.stringMatching(sentence)])
  })

  test('for an agent with a command runner, only the names of its budgets are checked, and no prices', () => {
    expect(find({ budgets: ['daily'], runner: 'claude' })).toEqual([])
    expect(find({ budgets: ['dayly'], runner: 'claude' })).toHaveLength(1)
  })

  test('a warning names a budget that no agent or mapping uses, and a budget whose use the runner reports too late or not at all', () => {
    const warn = (agents: object, runners: object = {}) =>
      findBudgetWarnings(
        ConfigSchema.parse({ budgets: { daily: { usd: 1 }, few: { turns: 2 } }, agents, runners }),
      ).map(({ text }) => text)
    expect(warn({ defaults: { budgets: ['daily'] } })).toEqual([expect.stringMatching(/^budgets\.few limits nothing/)])
    const both = { budgets: ['daily', 'few'] }
    expect(warn({ defaults: both })).toEqual([])
    expect(warn({ defaults: { ...both, runner: 'claude' } })).toEqual([
      expect.stringMatching(/^agents\.defaults\.budgets .*"daily".*"claude" reports its usage only after a turn/),
    ])
    const script = { kind: 'command', command: 'true' }
    expect(warn({ defaults: both, list: [{ id: 'a' }, { id: 'b', runner: 'script' }] }, { script })).toEqual([
      expect.stringMatching(/^agents\.list\[1\]\.budgets .*"script" reports no usage, so only the turns count/),
    ])
    expect(warn({ defaults: { budgets: ['few'], runner: 'claude' } })).toEqual([
      expect.stringMatching(/^budgets\.daily limits nothing/),
    ])
  })
})
