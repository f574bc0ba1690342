// Presets on the command line: added, tried with a signed sample, and explained if a proof fails.
import { readFileSync, statSync, writeFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/gateway/config/config.ts'
import { runCommand } from './command.ts'
import { gatewayToken, makeConfigDir, writeFiles } from './gateway.ts'
import { startInside } from './inside.ts'

const secret = 'shuttle-and-loom-0123456789'
const withGithub = { hooks: { presets: [{ name: 'github', secret }], allowedSessionKeyPrefixes: ['hook:'] } }

describe('hookloom add preset', () => {
  test('hookloom add preset keeps every comment, writes a new secret, and leaves a valid configuration', async () => {
    const dir = makeConfigDir()
    writeFileSync(
      join(dir, 'hookloom.jsonc'),
      '{\n  // the callers\n  "hooks": { "enabled": true, "token": "hook-secret-of-the-shop", "presets": ["gmail" /* mails */] },\n}\n',
    )
    writeFileSync(join(dir, '.env'), 'OTHER=1')
    const { code, stdout, stderr } = await runCommand(['add', 'preset', 'github'], { dir })
    expect([code, stderr]).toEqual([0, ''])
    const text = readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
    expect(text).toContain('// the callers')
    expect(text).toContain('/* mails */')
    const { config } = loadConfig({ dir, env: {} })
    const [, entry] = config.hooks.presets
    expect(entry).toEqual({ name: 'github', secret: expect.stringMatching(/^[\da-f]{64}$/) })
    expect(readFileSync(join(dir, '.env'), 'utf8')).toMatch(/^OTHER=1\nGITHUB_WEBHOOK_SECRET=[\da-f]{64}\n$/)
    expect(statSync(join(dir, '.env')).mode & 0o777).toBe(0o600)
    expect(stdout).toContain(typeof entry === 'object' ? String(entry['secret']) : 'none')
    expect(stdout).toContain('/hooks/github')
    expect(stdout).toContain('Payload URL')
    expect((await runCommand(['check'], { dir })).code).toBe(0)
  })

  test('hookloom add preset makes a different secret each time, and keeps a secret that is set', async () => {
    const [one, two] = [makeConfigDir(), makeConfigDir({ files: { '.env': 'MINE=kept-by-the-operator\n' } })]
    await runCommand(['add', 'preset', 'grafana'], { dir: one })
    await runCommand(['add', 'preset', 'gitlab'], { dir: one })
    const values = readFileSync(join(one, '.env'), 'utf8').match(/[\da-f]{64}/g) ?? []
    expect(new Set(values).size).toBe(2)
    expect((await runCommand(['add', 'preset', 'github', '--secret-env', 'MINE'], { dir: two })).code).toBe(0)
    expect(readFileSync(join(two, '.env'), 'utf8')).toBe('MINE=kept-by-the-operator\n')
    expect(loadConfig({ dir: two, env: {} }).config.hooks.presets).toEqual([
      { name: 'github', secret: 'kept-by-the-operator' },
    ])
  })

  test('hookloom add preset does not print the placeholder of a key that the sender makes', async () => {
    const dir = makeConfigDir()
    const { stdout } = await runCommand(['add', 'preset', 'stripe'], { dir })
    expect(stdout).not.toMatch(/[\da-f]{64}/)
    expect(stdout).toContain('STRIPE_WEBHOOK_SECRET')
  })

  test.each(['discord', 'twilio', 'notion', 'generic', 'gmail'])(
    'hookloom check accepts the configuration after add preset %s',
    async (name) => {
      const dir = makeConfigDir()
      expect((await runCommand(['add', 'preset', name], { dir })).code).toBe(0)
      const { code, json } = await runCommand(['check', '--json'], { dir })
      // a placeholder is a warning
      expect([code, json().filter(({ severity }) => severity === 'failure')]).toEqual([0, []])
    },
  )

  test('hookloom add preset changes nothing if the preset is unknown or already there', async () => {
    const dir = makeConfigDir({ config: withGithub })
    const before = readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
    const unknown = await runCommand(['add', 'preset', 'gihtub'], { dir })
    expect([unknown.code, unknown.stderr]).toEqual([64, expect.stringContaining('Did you mean github?')])
    expect((await runCommand(['add', 'preset', 'github'], { dir })).code).toBe(78)
    expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).toBe(before)
  })
})

describe('hookloom add transform', () => {
  test('hookloom add transform copies the module with its fixtures, and overwrites nothing', async () => {
    const dir = makeConfigDir()
    const { code, stdout } = await runCommand(['add', 'transform', 'github-pull-request'], { dir })
    const mapping =
      '{ "id": "github-pull-request", "match": {"path": "github", "event": "pull_request"}, "transform": { "module": "github-pull-request.ts" } }'
    expect([code, stdout]).toEqual([0, expect.stringContaining(mapping)])
    const copy = join(dir, 'hooks/transforms/github-pull-request.ts')
    expect(readFileSync(copy, 'utf8')).toBe(
      readFileSync(join(import.meta.dirname, '../../transforms/github-pull-request.ts'), 'utf8'),
    )
    expect(statSync(join(dir, 'hooks/transforms/github-pull-request.fixtures/opened.json')).isFile()).toBe(true)
    writeFileSync(copy, '// mine')
    expect((await runCommand(['add', 'transform', 'github-pull-request'], { dir })).code).toBe(78)
    expect(readFileSync(copy, 'utf8')).toBe('// mine')
  })
})

describe('the mapping of a bundled transform', () => {
  const names = readdirSync(join(import.meta.dirname, '../../transforms')).filter((name) => name.endsWith('.ts'))

  test.each(names)('hookloom add transform %s prints a mapping with a path and the module', async (name) => {
    const { stdout } = await runCommand(['add', 'transform', name], { dir: makeConfigDir() })
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
      match: { path: expect.any(String) },
      transform: { module: name },
    })
  })
})

describe('hookloom send of a preset', () => {
  test('hookloom send posts a sample by name or event, signed with the key of the configuration', async () => {
    const gateway = await startInside({ config: withGithub })
    const { dir } = gateway
    for (const word of ['issue-opened', 'issue-opened.json', 'pull_request', 'release']) {
      const { code, stdout } = await runCommand(['send', 'github', word, '--json'], { dir })
      expect([word, code]).toEqual([word, 0])
      expect(JSON.parse(stdout)).toMatchObject({ status: 200, replay: false })
    }
    const again = await runCommand(['send', 'github', 'issue-opened', '--json'], { dir })
    expect(again.json()).toMatchObject([{ status: 200, replay: false }])
    const forged = ['--header', 'x-hub-signature-256: sha256=00']
    expect((await runCommand(['send', 'github', 'issue-opened', ...forged], { dir })).code).toBe(77)
    const unknown = await runCommand(['send', 'github', 'isue-opened'], { dir })
    expect([unknown.code, unknown.stderr]).toEqual([64, expect.stringContaining('Did you mean issue-opened?')])
  })

  test('hookloom send is refused if the gateway has another secret, and names the command that adds a missing preset', async () => {
    const gateway = await startInside({ config: withGithub })
    // this directory has another configuration, and the address file of the same gateway
    const dir = makeConfigDir({ config: { hooks: { presets: [{ name: 'github', secret: 'another secret of it' }] } } })
    writeFiles(dir, { 'state/gateway.json': readFileSync(join(gateway.dir, 'state/gateway.json'), 'utf8') })
    expect((await runCommand(['send', 'github', 'issue-opened'], { dir })).code).toBe(77)
    const absent = await runCommand(['send', 'stripe', 'invoice-paid'], { dir })
    expect([absent.code, absent.stderr]).toEqual([78, expect.stringContaining('hookloom add preset stripe')])
  })

  test('hookloom send uses the hook token for a preset without a secret', async () => {
    const { dir } = await startInside({ config: { hooks: { presets: ['github', 'gmail'] } } })
    expect((await runCommand(['send', 'github', 'issue-opened'], { dir })).stdout).toMatch(/^200 /)
    expect((await runCommand(['send', 'gmail', 'one-mail'], { dir })).stdout).toMatch(/^200 /)
  })
})

describe('hookloom verify', () => {
  // from https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
  const published = {
    url: '/hooks/github',
    headers: {
      'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      'X-GitHub-Event': 'issues',
    },
    body: 'Hello, World!',
  }
  const docs = { hooks: { presets: [{ name: 'github', secret: "It's a Secret to Everybody" }] } }

  test('hookloom verify says for each signed mapping of the path that the proof is valid, and what was signed', async () => {
    const dir = makeConfigDir({ config: docs, files: { 'capture.json': JSON.stringify(published) } })
    const { code, stdout, json } = await runCommand(['verify', '--explain', join(dir, 'capture.json'), '--json'], {
      dir,
    })
    expect(code).toBe(0)
    expect(json()).toHaveLength(8)
    expect(json().filter(({ ok, signed }) => ok !== true || signed !== published.body)).toEqual([])
    expect(json()[0]).toEqual({
      mappingId: 'github-issue',
      scheme: 'github',
      candidate: true,
      ok: true,
      reason: 'the proof is valid',
      signed: 'Hello, World!',
    })
    expect(stdout).not.toContain('Secret to Everybody')
  })

  test('hookloom verify exits 77 with the reason for a changed body, a missing header or an old time', async () => {
    const slack = {
      url: '/hooks/slack',
      headers: { 'x-slack-signature': 'v0=00', 'x-slack-request-timestamp': '1531420618' },
      body: '{}',
    }
    const presets = [...docs.hooks.presets, { name: 'slack', secret: 'long-enough-for-all' }]
    const dir = makeConfigDir({ config: { hooks: { presets } } })
    writeFiles(dir, {
      'changed.json': JSON.stringify({ ...published, body: 'Hello, World! ' }),
      'missing.json': JSON.stringify({ ...published, headers: {} }),
      'old.json': JSON.stringify(slack),
      'then.json': JSON.stringify({ ...slack, receivedAt: 1_531_420_618_000 }),
    })
    const explain = async (file: string) => {
      const { code, stdout } = await runCommand(['verify', '--explain', join(dir, file)], { dir })
      return [code, stdout] as const
    }
    expect(await explain('changed.json')).toEqual([77, expect.stringContaining('No signature matches')])
    expect(await explain('missing.json')).toEqual([
      77,
      expect.stringMatching(/ no +refused +The header x-hub-signature-256/),
    ])
    expect(await explain('old.json')).toEqual([77, expect.stringContaining('behind the clock')])
    // the request is checked at the time of its capture, so only its signature is wrong
    expect(await explain('then.json')).toEqual([77, expect.stringContaining('No signature matches')])
    expect((await explain('then.json'))[1]).toContain('v0:1531420618:{}')
  })

  test('hookloom verify --mapping asks only one mapping, even for a file without a path', async () => {
    const dir = makeConfigDir({ config: docs })
    writeFiles(dir, { 'payload.json': JSON.stringify({ headers: published.headers, payload: { a: 1 } }) })
    const file = join(dir, 'payload.json')
    expect((await runCommand(['verify', '--explain', file], { dir })).code).toBe(64)
    const one = await runCommand(['verify', '--explain', file, '--mapping', 'github-issue', '--json'], { dir })
    expect(one.json()).toMatchObject([{ mappingId: 'github-issue', signed: '{"a":1}', ok: false }])
    expect((await runCommand(['verify', '--explain', file, '--mapping', 'none'], { dir })).code).toBe(65)
    expect((await runCommand(['verify'], { dir })).code).toBe(64)
  })

  test('hookloom verify keeps a key __proto__ of the payload in what was signed', async () => {
    const payload = '{"__proto__":{"a":1}}'
    const dir = makeConfigDir({ config: docs, files: { 'payload.json': `{"headers":{},"payload":${payload}}` } })
    const args = ['verify', '--explain', join(dir, 'payload.json'), '--mapping', 'github-issue', '--json']
    expect((await runCommand(args, { dir })).json()).toMatchObject([{ signed: payload }])
  })

  test('a signed mapping accepts a secret from its sender only once, and only after hookloom verify --arm', async () => {
    const presets = [{ name: 'notion', handed: true }, 'stripe', { name: 'github', secret }]
    const { dir, url, adminUrl } = await startInside({ config: { hooks: { presets } } })
    const handOver = () =>
      fetch(`${url}/notion`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"verification_token":"secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"}',
      })
    const arm = (id: string, authorization = `Bearer ${gatewayToken}`) =>
      fetch(`${adminUrl}/api/mappings/${id}/arm`, { method: 'POST', headers: { authorization } })
    expect((await handOver()).status).toBe(401)
    expect((await arm('nothing')).status).toBe(404)
    expect((await arm('stripe-invoice-paid')).status).toBe(404)
    expect((await arm('notion', 'Bearer wrong')).status).toBe(401)
    const nothing = await runCommand(['verify', '--arm', 'github-issue'], { dir })
    expect([nothing.code, nothing.stderr]).toEqual([
      65,
      expect.stringContaining('has no handshake that gives a secret'),
    ])
    const { code, json } = await runCommand(['verify', '--arm', 'notion', '--json'], { dir })
    expect([code, json()]).toEqual([0, [{ mappingId: 'notion', until: expect.stringMatching(/^\d{4}-.*Z$/) }]])
    expect((await handOver()).status).toBe(200)
    expect((await handOver()).status).toBe(401)
  })
})
