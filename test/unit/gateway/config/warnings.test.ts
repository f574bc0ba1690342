import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type FileMode, readFileModes, checkRisks } from '../../../../src/gateway/config/warnings.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'

const token = 'a-token-with-more-than-24-characters'
const tight = { enabled: true, token, defaultSessionKey: 'hook:inbox', allowedSessionKeyPrefixes: ['hook:'] }
type Parts = { hooks?: object; rest?: object; files?: FileMode[] }
const channels = { default: { channel: 'console' } }
const findFailing = ({ hooks = {}, rest = {}, files = [] }: Parts) =>
  checkRisks(ConfigSchema.parse({ channels, hooks: { ...tight, ...hooks }, ...rest }), { files }).filter(
    ({ ok }) => !ok,
  )
/** An agent that opens files. */
const reads = { agents: { defaults: { runner: 'claude' } } }
const listNames = (parts: Parts) => findFailing(parts).map(({ name }) => name)

describe('findings of doctor', () => {
  test('doctor runs these checks, and a safe configuration passes all of them', () => {
    expect(listNames({})).toEqual([])
    expect(checkRisks(ConfigSchema.parse({ hooks: tight }), { files: [] }).map(({ name }) => name)).toEqual([
      'token-length',
      'token-reuse',
      'trusted-proxies',
      'session-key-prefixes',
      'default-session-key',
      'request-session-keys',
      'turns-per-hour',
      'unsafe-content',
      'file-permissions',
      'channels',
      'references',
    ])
  })

  test('the check says which mappings have one session for all requests, and that the default key has no limit', () => {
    const mappings = [
      { sessionKey: 'hook:all' },
      { sessionKey: 'hook:{{id}}' },
      { sessionKey: 'hook:quiet', agentId: 'echo' },
      {},
      { sessionKey: 'main', agentId: 'ops' },
    ]
    const list = [{ id: 'main' }, { id: 'echo', runner: 'echo' }, { id: 'ops', maxTurnsPerHour: 7 }]
    const agents = { defaults: { runner: 'claude' }, list }
    const findings = checkRisks(ConfigSchema.parse({ channels, hooks: { ...tight, mappings }, agents }), { files: [] })
    expect(findings.find(({ name }) => name === 'turns-per-hour')).toMatchObject({
      ok: true,
      detail: expect.stringContaining(
        'wait: hooks.mappings[0] (at most 20 in an hour), hooks.mappings[4] (at most 7 in an hour). ',
      ),
    })
  })

  const telegram = { botToken: 't' }

  test.each<[string, object, boolean]>([
    ['without any channel', {}, true],
    ['whose default channel is "last"', { channels: { default: { channel: 'last' } } }, true],
    ['whose default channel is the console', { channels }, false],
    ['with a section of a channel', { channels: { telegram } }, false],
    ['with a channel in code', { channels: { own: { ntfy: {} } } }, false],
  ])('doctor says whether a configuration %s has a channel for replies', (_, rest, isFound) => {
    const found = checkRisks(ConfigSchema.parse({ hooks: tight, ...rest }), { files: [] }).filter(({ ok }) => !ok)
    const expected = { name: 'channels', detail: expect.stringContaining('no channel is configured') }
    expect(found).toMatchObject(isFound ? [expected] : [])
  })

  const listReferences = (parts: Parts) => findFailing(parts).map(({ name, detail }) => `${name}: ${detail}`)

  test.each<[string, Parts, string]>([
    [
      'an agent that is not in the list',
      { hooks: { mappings: [{ agentId: 'opps' }] }, rest: { agents: { list: [{ id: 'ops' }] } } },
      'hooks.mappings[0].agentId is "opps", which is not in agents.list: it runs with agents.defaults. Did you mean "ops"?',
    ],
    [
      'a model of no provider',
      { hooks: { mappings: [{ model: 'nobody/large' }] } },
      'hooks.mappings[0].model names the provider "nobody", which is not in models.providers. Add models.providers.nobody.',
    ],
    [
      'a channel that is not configured, where a transform may choose another one',
      { hooks: { mappings: [{ channel: 'slack', transform: { module: 'x.ts' } }] } },
      'hooks.mappings[0].channel is "slack", and channels.slack is not set. Set it.',
    ],
    [
      'a default channel without a recipient',
      { rest: { channels: { telegram, default: { channel: 'telegram' } } } },
      'channels.default has no recipient. Replies that name no recipient cannot be sent. Set channels.default.to, or channels.telegram.to.',
    ],
    [
      'attachments that no agent can open',
      { hooks: { gmail: { attachments: true } }, rest: { agents: { defaults: { runner: 'ai' } } } },
      'hooks.gmail.attachments has no effect, because no agent has a runner that opens files. Give one the runner claude or codex, or a runner of the kind "command".',
    ],
    [
      'attachments of an agent whose turns are events of an MCP server',
      {
        hooks: { gmail: { attachments: true } },
        rest: {
          runners: { events: { kind: 'mcp-events', subscribers: {} } },
          agents: { list: [{ id: 'main', runner: 'events' }] },
        },
      },
      'hooks.gmail.attachments has no effect, because no agent has a runner that opens files. Give one the runner claude or codex, or a runner of the kind "command".',
    ],
    [
      'attachments of mails that become events',
      {
        hooks: { gmail: { attachments: true }, mappings: [{ match: { path: '/gmail/' }, action: 'wake' }, {}] },
        rest: reads,
      },
      'hooks.gmail.attachments has no effect, because only a run gets files, and hooks.mappings[0] has the action "wake". Set its action to "agent".',
    ],
    [
      'attachments of mails that become messages, whatever they are about',
      {
        hooks: {
          gmail: { attachments: true },
          mappings: [{ match: { path: 'gmail', payload: { a: 1 } }, action: 'deliver' }, { action: 'wake' }],
        },
        rest: reads,
      },
      'hooks.gmail.attachments has no effect, because only a run gets files, and hooks.mappings[0] has the action "deliver". Set its action to "agent".',
    ],
    [
      'a mapping that an earlier one shadows',
      { hooks: { mappings: [{ match: { path: 'a' } }, { match: { path: '/a/', event: 'push' } }] } },
      'hooks.mappings[1] is never reached: hooks.mappings[0] takes every request that it matches. Move it before that one.',
    ],
    [
      'a mapping that an earlier one shadows, because the earlier one allows more values and has fewer conditions',
      {
        hooks: {
          mappings: [
            { match: { headers: { 'x-kind': ['a', 'b'] }, payload: { 'issue.state': 'open' } } },
            { match: { source: 'x', headers: { 'x-kind': 'b' }, payload: { 'issue.state': 'open', n: 1 } } },
          ],
        },
      },
      'hooks.mappings[1] is never reached: hooks.mappings[0] takes every request that it matches. Move it before that one.',
    ],
  ])('doctor warns about %s', (_, parts, expected) => {
    expect(listReferences(parts)).toEqual([`references: hookloom.jsonc:1:1 ${expected}`])
  })

  test.each<[string, Parts]>([
    [
      'attachments of mails of which some become runs',
      {
        hooks: {
          gmail: { attachments: true },
          mappings: [{ match: { path: 'gmail', payload: { a: 1 } }, action: 'wake' }, { match: { path: 'gmail' } }],
        },
        rest: reads,
      },
    ],
    [
      'attachments of mails whose action a transform may choose',
      {
        hooks: {
          gmail: { attachments: true },
          mappings: [{ match: { path: 'gmail' }, action: 'wake', transform: { module: 'x.ts' } }],
        },
        rest: reads,
      },
    ],
    [
      'attachments of mails for which a preset may have a mapping',
      {
        hooks: {
          gmail: { attachments: true },
          presets: ['gmail'],
          mappings: [{ match: { path: 'gmail', payload: { a: 1 } }, action: 'wake' }],
        },
        rest: reads,
      },
    ],
    ['the default agent', { hooks: { mappings: [{ agentId: 'main' }] } }],
    [
      'a model of a runner that has its own names',
      { hooks: { mappings: [{ model: 'x/y' }] }, rest: { agents: { defaults: { runner: 'claude' } } } },
    ],
    [
      'a model of the default agent, whose runner has its own names',
      { hooks: { mappings: [{ model: 'opus' }] }, rest: { agents: { list: [{ id: 'dev', runner: 'claude' }] } } },
    ],
    [
      'a channel whose section has a recipient',
      { rest: { channels: { telegram: { ...telegram, to: '1' }, default: { channel: 'telegram' } } } },
    ],
    [
      'a mapping that accepts text after one that does not',
      { hooks: { mappings: [{ match: { path: 'a' } }, { match: { path: 'a' }, accept: ['text'] }] } },
    ],
    ['a mapping of another path', { hooks: { mappings: [{ match: { path: 'a' } }, { match: { path: 'b' } }] } }],
    [
      'a mapping that matches more requests than an earlier one',
      {
        hooks: {
          mappings: [
            { match: { path: 'a', event: ['x', 'y'] } },
            { match: { path: 'a', event: ['y', 'z'] } },
            { match: { path: 'a' } },
          ],
        },
      },
    ],
    [
      'a mapping with another value of a header, or without a condition on it',
      {
        hooks: {
          mappings: [
            { match: { path: 'a', headers: { 'x-kind': 'a' } } },
            { match: { path: 'a', headers: { 'x-kind': ['a', 'b'] } } },
            { match: { path: 'a', headers: { 'x-other': 'a' } } },
            { match: { path: 'a', payload: { n: 1 } } },
          ],
        },
      },
    ],
    [
      'a mapping that allows a value which the test of an earlier one excludes',
      {
        hooks: {
          mappings: [
            { match: { path: 'a', payload: { type: { not: ['x', 'y'] } } } },
            { match: { path: 'a', payload: { type: { not: ['x'] } } } },
            { match: { path: 'a', payload: { type: 'x' } } },
            { match: { path: 'b', any: [{ event: 'x' }] } },
            { match: { path: 'b', any: [{ event: 'x' }, { event: 'y' }] } },
            { match: { path: 'b' } },
          ],
        },
      },
    ],
    [
      'a mapping after one that requires another proof',
      {
        hooks: {
          mappings: [{ match: { path: 'a' }, verify: { scheme: 'github', secret: 's' } }, { match: { path: 'a' } }],
        },
      },
    ],
  ])('doctor does not warn about %s', (_, parts) => {
    expect(listReferences(parts)).toEqual([])
  })

  test('a warning of doctor names the line of its key', () => {
    const text = '{\n  "hooks": {\n    "mappings": [\n      { "agentId": "x" }\n    ]\n  }\n}'
    const [found] = checkRisks(ConfigSchema.parse({ channels, hooks: { ...tight, mappings: [{ agentId: 'x' }] } }), {
      files: [],
      text,
    }).filter(({ ok }) => !ok)
    expect(found?.detail).toMatch(/^hookloom\.jsonc:4:9 hooks\.mappings\[0\]\.agentId is "x"/)
  })

  test('doctor warns about a token of fewer than 24 characters, and says how many it has', () => {
    expect(listNames({ hooks: { token: 'x'.repeat(24) } })).toEqual([])
    const [warning] = findFailing({ hooks: { token: 'x'.repeat(23) } })
    expect(warning).toMatchObject({ name: 'token-length', detail: expect.stringContaining('23 characters') })
  })

  test('doctor warns about a token that is used twice, and shows where but not its value', () => {
    const [warning] = findFailing({ hooks: { mappings: [{ to: token }] } })
    expect(warning?.detail).toContain('hooks.mappings[0].to')
    expect(warning?.detail).not.toContain(token)
  })

  test('doctor warns about a public address without trusted proxies', () => {
    for (const host of ['127.0.0.1', 'localhost', '::1', '127.1.2.3'])
      expect(listNames({ rest: { server: { host } } })).toEqual([])
    for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com']) {
      expect(listNames({ rest: { server: { host } } })).toEqual(['trusted-proxies'])
    }
    expect(listNames({ rest: { server: { host: '0.0.0.0', trustedProxies: ['10.0.0.1'] } } })).toEqual([])
  })

  test('doctor warns about session keys without limits', () => {
    expect(listNames({ hooks: { allowedSessionKeyPrefixes: undefined } })).toEqual(['session-key-prefixes'])
    expect(listNames({ hooks: { allowedSessionKeyPrefixes: [] } })).toEqual(['session-key-prefixes'])
    expect(listNames({ hooks: { defaultSessionKey: undefined } })).toEqual(['default-session-key'])
    expect(listNames({ hooks: { allowRequestSessionKey: true } })).toEqual(['request-session-keys'])
  })

  test('doctor warns about every place that turns the boundary off, including presets', () => {
    const open = { allowUnsafeExternalContent: true }
    const [warning] = findFailing({
      hooks: { agent: open, gmail: open, mappings: [{}, open], presets: [{ name: 'gmail', ...open }] },
    })
    for (const place of ['hooks.agent.', 'hooks.gmail.', 'hooks.mappings[1].', 'hooks.presets[0].'])
      expect(warning?.detail).toContain(place)
    expect(warning?.detail).not.toContain('mappings[0]')
  })

  test('doctor warns about configuration files that others can read or write', () => {
    expect(listNames({ files: [{ file: '/c/.env', mode: 0o600 }] })).toEqual([])
    for (const mode of [0o644, 0o620, 0o602]) {
      const [warning] = findFailing({ files: [{ file: '/c/.env', mode }] })
      expect(warning?.detail).toContain(`.env (mode ${mode.toString(8)})`)
    }
  })
})

test('readFileModes leaves out missing files, and returns nothing on Windows', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hookloom-facts-'))
  const file = join(dir, 'a')
  writeFileSync(file, '')
  chmodSync(file, 0o640)
  const reader = { uid: 1000, gid: 1000 }
  expect(readFileModes([file, join(dir, 'b')], { ...reader, platform: 'linux' })).toEqual([{ file, mode: 0o640 }])
  expect(readFileModes([file], { ...reader, platform: 'win32' })).toEqual([])
  rmSync(dir, { recursive: true })
})

test.skipIf(process.platform === 'win32')(
  'readFileModes hides the group’s right to read a file of root from a reader in that group, as in a pod',
  () => {
    const file = '/etc/passwd'
    const { mode, gid } = statSync(file)
    expect(mode & 0o777).toBe(0o644)
    const read = (uid: number, ofReader: number) => readFileModes([file], { platform: 'linux', uid, gid: ofReader })
    expect(read(1000, gid)).toEqual([{ file, mode: 0o604 }])
    expect(read(1000, gid + 1)).toEqual([{ file, mode: 0o644 }])
    expect(read(0, gid)).toEqual([{ file, mode: 0o644 }])
  },
)
