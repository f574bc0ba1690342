// `hookloom init --from`: the files follow the public documentation of OpenClaw and of adnanh/webhook.
import { createHmac } from 'node:crypto'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHookloom } from '../../src/app.ts'
import { loadConfig } from '../../src/gateway/config/config.ts'
import { parseEnv } from '../../src/gateway/config/env.ts'
import type { Config } from '../../src/model/config/config.ts'
import { readBlock } from '../pages.ts'
import { type CommandResult, runCommand } from './command.ts'
import { makeFolder, writeFiles } from './gateway.ts'
import { readStore } from './inside.ts'

const openclaw = `// JSON5: comments, bare keys and single quotes
{
  gateway: { port: 18789, auth: { token: 'secret-of-the-gateway-0123' }, trustedProxies: ['10.0.0.1'] },
  env: { vars: { LOCAL_KEY: 'secret-of-the-model-server' } },
  hooks: {
    enabled: true,
    token: 'secret-of-the-hooks-0123456789',
    defaultSessionKey: 'hook:ingress',
    allowedSessionKeyPrefixes: ['hook:'],
    presets: ['gmail'],
    internal: { enabled: true },
    gmail: { account: 'ada@example.com', label: 'INBOX', pushToken: 'secret-of-the-push' },
    mappings: [
      { id: 'pushes', match: { path: '/github/', source: 'ci' }, agentId: 'ops', name: 'Push',
        sessionKey: 'hook:push:{{repository[full_name]}}', messageTemplate: 'Of {{source}}, \${not_a_variable}',
        channel: 'telegram', to: '42', transform: { module: 'push.ts', export: 'onPush' }, accountId: 'work' },
      { match: { path: 'backup' }, action: 'wake', wakeMode: 'next-heartbeat', textTemplate: 'Backup of {{host}}' },
    ],
  },
  agents: {
    defaults: {
      model: { primary: 'anthropic/claude-x', fallbacks: ['local/llama', 'elsewhere/model'] },
      models: { 'anthropic/claude-x': { alias: 'big' } },
      workspace: '~/agents',
    },
    list: [{ id: 'main', default: true, identity: { name: 'Ada' } }, { id: 'ops', model: 'local/llama' }],
  },
  models: {
    providers: {
      local: { baseUrl: 'http://127.0.0.1:4000/v1', api: 'openai-completions', apiKey: '\${LOCAL_KEY}',
               headers: { 'X-Tenant': 'secret-of-the-tenant' } },
    },
  },
  channels: {
    telegram: { enabled: true, botToken: 'secret-of-telegram:1', dmPolicy: 'pairing' },
    slack: { botToken: { source: 'env', provider: 'default', id: 'SLACK_BOT_TOKEN' } },
    whatsapp: { allowFrom: ['+15555550123'] },
  },
  tools: {}, cron: {},
}
`
const transforms = {
  'hooks/transforms/push.ts': `import { toTitle } from './lib/title.ts'
export function onPush({ payload }: { payload: { repository?: { full_name?: string } } }) {
  return { message: toTitle(payload.repository?.full_name ?? 'nowhere') }
}
`,
  'hooks/transforms/lib/title.ts': 'export const toTitle = (name: string) => `Push to ${name}`\n',
}

describe('hookloom init --from openclaw.json', () => {
  test('hookloom init --from makes a directory that check accepts, with hooks, agents, models and channels', async () => {
    const { dir, code, stdout } = await runImport({ 'openclaw.json': openclaw, ...transforms })
    expect(code).toBe(0)
    expect(stdout).toContain('Took over 2 of 2 mappings of openclaw.json.')
    const checked = await runCommand(['check', '--json'], { dir })
    expect(checked.code).toBe(0)
    expect(checked.json().flatMap(({ ok, name }) => (ok === true ? [] : [name]))).toEqual(['placeholders'])
    const { server, hooks, agents, models, channels } = load(dir)
    expect(server.trustedProxies).toEqual(['10.0.0.1'])
    expect(hooks).toMatchObject({
      enabled: true,
      token: 'secret-of-the-hooks-0123456789',
      defaultSessionKey: 'hook:ingress',
      presets: ['gmail'],
      gmail: { labels: ['INBOX'] },
    })
    expect(hooks.gmail?.account).toBeUndefined()
    expect(hooks.mappings).toMatchObject([
      {
        id: 'pushes',
        // OpenClaw compares the payload field, and Hookloom would compare the sender in the headers
        match: { path: 'github', payload: { source: 'ci' } },
        agentId: 'ops',
        sessionKey: 'hook:push:{{repository.full_name}}',
        messageTemplate: 'Of {{payload.source}}, ${not_a_variable}',
        channel: 'telegram',
        to: '42',
        transform: { module: 'push.openclaw.ts' },
      },
      { action: 'wake', wakeMode: 'next-heartbeat', textTemplate: 'Backup of {{host}}' },
    ])
    expect(agents.defaults).toMatchObject({
      model: 'anthropic/claude-x',
      modelFallbacks: ['local/llama'],
      workspace: expect.stringMatching(/.\/agents$/),
    })
    expect(agents.list).toMatchObject([
      { id: 'main', default: true },
      { id: 'ops', model: 'local/llama' },
    ])
    expect(models).toMatchObject({
      aliases: { big: 'anthropic/claude-x' },
      providers: {
        anthropic: { kind: 'anthropic' },
        local: {
          kind: 'openai-compatible',
          apiKey: 'secret-of-the-model-server',
          headers: { 'X-Tenant': 'secret-of-the-tenant' },
        },
      },
    })
    expect(channels).toMatchObject({ telegram: { botToken: 'secret-of-telegram:1' } })
  })

  test('an import writes the secrets that it takes over into .env only, and prints none', async () => {
    const { dir, stdout, stderr } = await runImport({ 'openclaw.json': openclaw, ...transforms })
    const config = readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
    const env = readFileSync(join(dir, '.env'), 'utf8')
    for (const secret of ['secret-of-the-hooks-0123456789', 'secret-of-the-model-server', 'secret-of-telegram:1'])
      expect(env).toContain(secret)
    const all = [...Object.values(parseEnv(env).values), ...openclaw.matchAll(/secret-of[\w:-]+/g)].map(String)
    expect(all.length).toBeGreaterThan(10)
    for (const secret of all) expect(config + stdout + stderr).not.toContain(secret)
    for (const file of ['.env', 'hookloom.jsonc']) expect(statSync(join(dir, file)).mode & 0o777).toBe(0o600)
    // neither the file nor the environment sets these two variables
    expect(stdout).toContain('.env needs values for SLACK_BOT_TOKEN, ANTHROPIC_API_KEY.')
    expect(env.match(/^# a placeholder: .*\n(\w+)/gm)).toHaveLength(2)
  })

  test('an import lists each key that it leaves out, with the reason', async () => {
    const { stdout } = await runImport({ 'openclaw.json': openclaw, ...transforms })
    const [, list = ''] = /Not taken over from openclaw\.json, or changed\n((?: {2}.*\n)+)/.exec(stdout) ?? []
    const keys = list.trimEnd().split('\n')
    expect(keys.map((line) => line.trim().split(' ')[0])).toEqual([
      'agents.defaults.model.fallbacks',
      'agents.list[0].identity',
      'channels.telegram',
      'channels.whatsapp',
      'gateway.auth',
      'gateway.port',
      'hooks.gmail.account',
      'hooks.gmail.pushToken',
      'hooks.internal',
      'hooks.mappings[0].accountId',
      'tools',
    ])
    for (const line of keys) expect(line).toMatch(/\.$/)
  })

  test('an imported mapping accepts no more requests than in OpenClaw, and posts to no other chat than there', async () => {
    const mappings = [
      { id: 'unknown-condition', match: { path: 'a', branch: 'main' } },
      { id: 'missing-module', match: { path: 'b' }, transform: { module: 'missing.ts' } },
      { id: 'built-in', match: { path: 'wake' } },
      { id: 'barred-key', match: { path: 'd' }, sessionKey: 'main:{{id}}' },
      { id: 'barred-agent', match: { path: 'e' }, agentId: 'other' },
      { id: 'unknown-channel', match: { path: 'f' }, channel: 'matrix', to: '!room' },
      { id: 'computed-recipient', match: { path: 'g' }, channel: 'telegram', to: '{{chat}}' },
      { id: 'wrong-template', match: { path: 'h' }, messageTemplate: '{{#each x}}' },
    ]
    const hooks = {
      enabled: true,
      token: 'a-token-of-the-hooks-0123456789',
      allowedSessionKeyPrefixes: ['hook:'],
      allowedAgentIds: ['main'],
      mappings,
    }
    const list = [{ id: 'main' }, { id: 'other' }]
    const text = JSON.stringify({ hooks, agents: { list }, channels: { telegram: { botToken: 'x:1' } } })
    const { dir, code, stdout } = await runImport({ 'openclaw.json': text })
    expect(code).toBe(0)
    const taken = load(dir).hooks.mappings
    expect(taken.map(({ id, deliver, to }) => ({ id, deliver, to }))).toEqual([
      { id: 'unknown-channel', deliver: false, to: undefined },
      { id: 'computed-recipient', deliver: false, to: undefined },
      { id: 'wrong-template', deliver: true, to: undefined },
    ])
    for (const [index] of mappings.entries()) expect(stdout).toContain(`hooks.mappings[${index}]`)
  })

  test('an import copies the transforms, does not follow a symlink to a file that others can write, and runs each transform on a sample', async () => {
    const source = makeFolder()
    const outside = join(makeFolder(), 'outside.ts')
    writeFileSync(outside, 'export default () => null // outside\n')
    const mappings = [
      { match: { path: 'github' }, transform: { module: 'push.ts' } },
      { match: { path: 'skips' }, transform: { module: 'skips.js' } },
      { match: { path: 'forgets' }, messageTemplate: 'Kept', transform: { module: 'forgets.js' } },
      { match: { path: 'linked' }, transform: { module: 'linked.ts' } },
    ]
    writeFiles(source, {
      'openclaw.json': JSON.stringify({ hooks: { enabled: true, token: 'a-token-of-the-hooks-0123456789', mappings } }),
      'hooks/transforms/push.ts': transforms['hooks/transforms/push.ts'].replace('function onPush', 'default function'),
      'hooks/transforms/lib/title.ts': transforms['hooks/transforms/lib/title.ts'],
      'hooks/transforms/skips.js': 'export default () => null\n',
      'hooks/transforms/forgets.js': 'export default ({ url }) => { void url }\n',
      'hooks/transforms/.hidden': 'x',
    })
    chmodSync(outside, 0o666)
    symlinkSync(outside, join(source, 'hooks/transforms/linked.ts'))
    const { dir, stdout } = await runImport({}, { source })
    const copied = readdirSync(join(dir, 'hooks/transforms'), { recursive: true, encoding: 'utf8' })
    expect(copied.toSorted()).toEqual([
      'forgets.js',
      'forgets.openclaw.ts',
      'lib',
      'lib/title.ts',
      'push.openclaw.ts',
      'push.ts',
      'skips.js',
      'skips.openclaw.ts',
    ])
    expect(stdout).toContain('hooks/transforms/linked.ts is not copied: ')
    expect(stdout).toMatch(/✓ push\.openclaw\.ts makes 1 action of a request of github/)
    expect(stdout).toMatch(/✓ skips\.openclaw\.ts skips a small sample/)
    expect(stdout).toMatch(/✓ forgets\.openclaw\.ts makes 1 action of a small sample/)
    expect(load(dir).hooks.mappings.map(({ match }) => match.path)).toEqual(['github', 'skips', 'forgets'])
  })

  test('an imported transform runs unedited: with a URL object, and with the action of the mapping if it returns nothing', async () => {
    const module = 'ci/build.js'
    const mapping = { match: { path: 'ci' }, messageTemplate: 'Build {{id}}', name: 'CI', transform: { module } }
    const named = { match: { path: 'named' }, transform: { module, export: 'it"s' } }
    const { dir } = await runImport({
      'openclaw.json': JSON.stringify({
        hooks: { enabled: true, token: 'a-token-of-the-hooks-0123456789', mappings: [mapping, named] },
      }),
      'hooks/transforms/ci/build.js': `export function transform({ url, path, payload, headers }) {
  const branch = url.searchParams.get('branch')
  if (branch === 'skip') return null
  if (branch === null) return
  return { message: [branch, url.pathname, path, payload.id, headers['x-ci']].join(' '), name: null }
}
const theirs = async ({ url }) => ({ message: url instanceof URL ? url.search : 'no URL' })
export { theirs as 'it"s' }
`,
      'hooks/transforms/ci/build.openclaw.ts': '// theirs\n',
    })
    expect(load(dir).hooks.mappings.map(({ transform }) => transform)).toEqual([
      { module: 'ci/build.openclaw-2.ts' },
      { module: 'ci/build.openclaw-3.ts' },
    ])
    const checked = await runCommand(['check', '--types'], { dir })
    expect([checked.code, checked.stdout]).toEqual([0, expect.not.stringContaining('error TS')])
    const app = await createHookloom({ dir, env: {}, port: 0, adminPort: 0, write: () => {} })
    onTestFinished(() => app.stop())
    const send = async (hook: string) => {
      const to = { url: app.url, token: 'a-token-of-the-hooks-0123456789' }
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${to.token}`, 'x-ci': 'own' }
      const answer = await fetch(`${to.url}/${hook}`, { method: 'POST', headers, body: '{"id":7}' })
      const [delivery] = await readStore(dir, (store) => store.deliveries({ limit: 1 }))
      const planned = delivery?.jobs[0]?.planned
      return [answer.status, planned?.kind === 'agent' ? [planned.action.message, planned.action.name] : undefined]
    }
    expect(await send('ci?branch=main')).toEqual([200, ['main /hooks/ci ci 7 own', 'CI']])
    expect(await send('ci')).toEqual([200, ['Build 7', 'CI']])
    expect(await send('ci?branch=skip')).toEqual([204, undefined])
    expect(await send('named?x=1')).toEqual([200, ['?x=1', undefined]])
  })

  test.each([
    ['a short text', { token: 'abc' }, ''],
    ['a short variable', { token: '${THEIRS}' }, 'THEIRS=abc\n'],
  ])(
    'a hook token that can be guessed, as %s, is replaced by a new one, and the output says so',
    async (_, given, env) => {
      const source = makeFolder()
      writeFiles(source, { '.env': env })
      const hooks = { enabled: true, ...given, mappings: [{ match: { path: 'ci' }, messageTemplate: 'x' }] }
      const { dir, code, stdout } = await runImport({ 'openclaw.json': JSON.stringify({ hooks }) }, { source })
      expect(code).toBe(0)
      expect(stdout).toContain('hooks.token has 3 bytes, and can be guessed: HOOKLOOM_TOKEN in .env is a new token.')
      expect(load(dir).hooks.token).toMatch(/^\S{43}$/)
      expect(readFileSync(join(dir, '.env'), 'utf8')).not.toContain('abc')
      expect((await runCommand(['check'], { dir })).stdout).toContain('✓ token-length')
    },
  )

  test('an import keeps a token of another name that the directory has, and makes a new one in place of a short one', async () => {
    const dir = makeFolder()
    writeFiles(dir, { '.env': 'HOOKLOOM_TOKEN=mine-0123456789-0123456789\n' })
    const { stdout } = await runImport({ 'openclaw.json': '{ hooks: { enabled: true, token: "abc" } }' }, { dir })
    expect(stdout).toContain('can be guessed: HOOKLOOM_TOKEN_2 in .env is a new token')
    expect(load(dir).hooks.token).toMatch(/^\S{43}$/)
  })

  test('an import does not copy a transforms folder outside of hooks/transforms', async () => {
    const elsewhere = makeFolder()
    writeFiles(elsewhere, { 'push.ts': 'export default () => null\n' })
    const mappings = [{ match: { path: 'x' }, transform: { module: 'push.ts' } }]
    const hooks = { enabled: true, token: 'a-token-of-the-hooks-0123456789', transformsDir: elsewhere, mappings }
    const { dir, stdout } = await runImport({ 'openclaw.json': JSON.stringify({ hooks }) })
    expect(stdout).toContain('hooks.transformsDir leads out of hooks/transforms')
    expect(existsSync(join(dir, 'hooks/transforms/push.ts'))).toBe(false)
    expect(load(dir).hooks.mappings).toEqual([])
  })

  test('an import keeps existing files and variables, and refuses a directory that has a configuration', async () => {
    const dir = makeFolder()
    const mine = {
      'hooks/transforms/push.ts': '// mine\n',
      '.env': 'HOOKLOOM_TOKEN=mine-0123456789-0123456789\nOTHER=1',
    }
    writeFiles(dir, mine)
    const first = await runImport({ 'openclaw.json': openclaw, ...transforms }, { dir })
    expect(first.stdout).toMatch(/exists +hooks\/transforms\/push\.ts/)
    expect(readFileSync(join(dir, 'hooks/transforms/push.ts'), 'utf8')).toBe('// mine\n')
    expect(readFileSync(join(dir, '.env'), 'utf8')).toMatch(new RegExp(`^${mine['.env']}\n`))
    expect(load(dir).hooks.token).toBe('secret-of-the-hooks-0123456789')
    const before = readFileSync(join(dir, '.env'), 'utf8')
    const again = await runImport({ 'openclaw.json': openclaw }, { dir })
    expect(again.code).toBe(78)
    expect(again.stderr).toContain('has a configuration already')
    expect(readFileSync(join(dir, '.env'), 'utf8')).toBe(before)
  })
})

const github = { source: 'header', name: 'X-Hub-Signature-256' }
const signed = { match: { type: 'payload-hmac-sha256', secret: 'secret-of-deploy', parameter: github } }
const isRef = (value: string) => ({ match: { type: 'value', value, parameter: { source: 'payload', name: 'ref' } } })
const withHeader = (name: string, value: string) => ({
  match: { type: 'value', value, parameter: { source: 'header', name } },
})

describe('hookloom init --from hooks.json', () => {
  test('an import turns rules into proofs and arguments into templates, and hookloom check accepts them', async () => {
    const hooks = [
      {
        id: 'deploy',
        'execute-command': '/srv/deploy.sh',
        'pass-arguments-to-command': [
          { source: 'payload', name: 'commits.0.id' },
          { source: 'string', name: 'for ${5}' },
        ],
        'pass-environment-to-command': [{ source: 'header', name: 'X-GitHub-Event', envname: 'EVENT' }],
        'trigger-rule': { and: [signed, { or: [isRef('refs/heads/main'), isRef('42')] }] },
      },
      { id: 'merge', 'trigger-rule': withHeader('X-Gitlab-Token', 'secret-of-merging') },
      { id: 'plain', 'trigger-rule': withHeader('X-Event-Key', 'repo:push') },
      { id: 'own', 'trigger-rule': withHeader('X-Own-Token', 'secret-of-own-header') },
      { id: 'basic', 'trigger-rule': withHeader('Authorization', `Basic ${btoa('ada:secret-of-basic-user')}`) },
    ]
    const { dir, code, stdout } = await runImport({ 'hooks.json': JSON.stringify(hooks) })
    expect(code).toBe(0)
    expect(stdout).toContain('Took over 5 of 5 hooks of hooks.json.')
    expect(stdout).not.toContain('secret-of')
    const { mappings, token } = load(dir).hooks
    expect(mappings).toMatchObject([
      {
        id: 'deploy',
        match: { path: 'deploy', payload: { ref: ['refs/heads/main', '42', 42] } },
        verify: {
          scheme: 'generic-hmac',
          header: 'x-hub-signature-256',
          prefix: 'sha256=',
          secret: 'secret-of-deploy',
        },
        messageTemplate: 'commits.0.id: {{commits.0.id}}\nfor ${5}\nEVENT: {{headers.x-github-event}}',
      },
      { match: { path: 'merge' }, verify: { scheme: 'gitlab-token', secret: 'secret-of-merging' } },
      { match: { path: 'plain', headers: { 'x-event-key': 'repo:push' } } },
      { verify: { scheme: 'token', header: 'x-own-token', secret: 'secret-of-own-header' } },
      { verify: { scheme: 'basic', secret: 'ada:secret-of-basic-user' } },
    ])
    expect(mappings[2]?.verify).toBeUndefined()
    expect(stdout).toContain('plain has no proof that can be checked here')
    expect(token).toMatch(/^\S{43}$/)
    expect((await runCommand(['check'], { dir })).code).toBe(0)
  })

  test('an imported proof accepts a request with the secret of its rule, and refuses a request with another secret', async () => {
    const hooks = [{ id: 'deploy', 'trigger-rule': signed }]
    const { dir } = await runImport({ 'hooks.json': JSON.stringify(hooks) })
    const explain = async (secret: string) => {
      const body = '{"ref":"refs/heads/main"}'
      const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
      const request = { headers: { 'x-hub-signature-256': signature }, body, url: '/hooks/deploy' }
      writeFiles(dir, { 'request.json': JSON.stringify(request) })
      return runCommand(['verify', '--explain', join(dir, 'request.json')], { dir })
    }
    expect((await explain('secret-of-deploy')).code).toBe(0)
    expect((await explain('secret-of-another')).code).not.toBe(0)
  })

  test('the hook of the example in the page about imports becomes the mapping that the page shows', async () => {
    const page = 'src/cli/import/README.md'
    const { dir } = await runImport({ 'hooks.json': readBlock(page, 'json', '"trigger-rule"') })
    const { hooks } = parse(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8'))
    expect(hooks.mappings).toEqual([parse(readBlock(page, 'jsonc', 'DEPLOY_SECRET'))])
  })

  test('an import leaves out a hook whose rule has no counterpart', async () => {
    const regex = { match: { type: 'regex', regex: '.*', parameter: { source: 'payload', name: 'x' } } }
    const query = { match: { type: 'value', value: 'x', parameter: { source: 'url', name: 'branch' } } }
    const rules = {
      negated: { not: isRef('x') },
      patterned: { and: [signed, regex] },
      queried: query,
      scalr: { match: { type: 'scalr-signature', secret: 'x' } },
      twice: { and: [signed, withHeader('X-Gitlab-Token', 'x')] },
      impossible: { and: [isRef('x'), isRef('y')] },
      many: {
        and: ['a', 'b', 'c', 'd', 'e'].map((name) => ({
          or: [withHeader(`X-${name}`, '1'), withHeader(`Y-${name}`, '1')],
        })),
      },
      unknown: { xor: [] },
      mixed: { ...signed, or: [] },
    }
    const hooks = Object.entries(rules).map(([id, rule]) => ({ id, 'trigger-rule': rule }))
    const { dir, code, stdout } = await runImport({ 'hooks.json': JSON.stringify(hooks) })
    expect(code).toBe(0)
    expect(load(dir).hooks.mappings).toEqual([])
    for (const id of Object.keys(rules)) {
      expect(stdout).toMatch(new RegExp(`^ {2}${id}\\.trigger-rule.* The hook is not taken over\\.$`, 'm'))
    }
  })

  test('the hook token replaces an imported secret that hookloom cannot check', async () => {
    const inUrl = { match: { type: 'value', value: 'secret-of-url', parameter: { source: 'url', name: 'token' } } }
    const inBody = {
      match: { type: 'value', value: 'secret-of-body', parameter: { source: 'payload', name: 'secret' } },
    }
    const addresses = { match: { type: 'ip-whitelist', 'ip-range': '192.0.2.0/24' } }
    const hooks = [
      { id: 'url', 'trigger-rule': inUrl },
      { id: 'both', 'trigger-rule': { and: [signed, inUrl] } },
      { id: 'either', 'trigger-rule': { or: [signed, inUrl] } },
      { id: 'body', 'trigger-rule': inBody },
      { id: 'near', 'trigger-rule': { and: [signed, addresses] } },
    ]
    const { dir, stdout } = await runImport({ 'hooks.json': JSON.stringify(hooks) })
    expect(stdout).not.toContain('secret-of')
    expect(
      load(dir).hooks.mappings.map(({ id, verify, match }) => [id, verify?.also ?? verify?.scheme, match.payload]),
    ).toEqual([
      ['url', undefined, undefined],
      ['both', 'token', undefined],
      ['either', 'generic-hmac', undefined],
      ['either-2', undefined, undefined],
      ['body', undefined, { secret: 'secret-of-body' }],
      ['near', 'generic-hmac', undefined],
    ])
    expect(stdout).toContain('near.trigger-rule.and[1].match is for the proxy here')
    expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).not.toContain('secret-of')
  })
})

describe('an import of files in another format', () => {
  test.each([
    ['hooks.yaml', '- id: x\n', 'is YAML'],
    ['openclaw.json', '{ hooks: { token: secret-of-mine } }', 'is not JSON or JSON5 at line 1, column 19'],
    ['hooks.json', '[{ "name": "x" }]', 'is not a file that can be taken over'],
    ['other.json', '{ "name": "x" }', 'is not a file that can be taken over'],
  ])('hookloom init --from refuses %s with exit code 64, and makes no configuration', async (name, text, said) => {
    const { dir, code, stderr } = await runImport({ [name]: text }, { name })
    expect(code).toBe(64)
    expect(stderr).toContain(said)
    expect(stderr).not.toContain('secret-of')
    expect(existsSync(join(dir, 'hookloom.jsonc'))).toBe(false)
  })

  test('the error for a missing file names the file', async () => {
    const { code, stderr } = await runImport({}, { name: 'missing.json' })
    expect(code).toBe(64)
    expect(stderr).toMatch(/missing\.json does not exist\./)
  })
})

/** Runs `hookloom init --from` on one of the files. `dir`: the new config directory. `source`: the folder with the files. */
async function runImport(
  files: Readonly<Record<string, string>>,
  { dir = join(makeFolder(), 'home'), source = makeFolder(), name = 'openclaw.json' } = {},
): Promise<CommandResult & { dir: string }> {
  writeFiles(source, files)
  const file = Object.hasOwn(files, 'hooks.json') ? 'hooks.json' : name
  const ran = await runCommand(['init', '--from', join(source, file)], { dir })
  return { ...ran, dir }
}

function load(dir: string): Config {
  return loadConfig({ dir, env: {} }).config
}
