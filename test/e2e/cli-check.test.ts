import { chmodSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { HealthFields } from '../../src/model/api/health.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { newDelivery, newJob } from '../contract/stage.ts'
import { runBuilt, runCommand } from './command.ts'
import {
  gatewayToken,
  hookToken,
  makeConfigDir,
  makeFolder,
  post,
  startGateway,
  writeConfig,
  writeFiles,
} from './gateway.ts'
import { chatCompletions } from './fakes/chat-completions.ts'
import { apiKey, refuseWith, startFakeProvider } from './fakes/provider.ts'
import { startFakeTelegram } from './fakes/telegram.ts'
import { startInside } from './inside.ts'

const asOperator = { headers: { authorization: `Bearer ${gatewayToken}` } }
const sound = {
  config: { hooks: { mappings: [{ match: { path: 'in' }, transform: { module: 'in.ts' } }] } },
  files: { 'hooks/transforms/in.ts': 'export default () => ({ message: "hello" })\n' },
}

describe('hookloom check', () => {
  test.each(['check', 'start'])(
    'a configuration with three mistakes makes %s print three lines and exit 78',
    async (command) => {
      const dir = makeConfigDir({
        config: { hooks: { paht: '/x', mappings: [{ deliver: 'yes' }] }, server: { port: -1 } },
      })
      const { code, stdout, stderr } = await (command === 'start' ? runBuilt : runCommand)([command], { dir })
      const lines = `${stdout}${stderr}`.split('\n').filter((line) => /hooks\.|server\./.test(line))
      expect(lines).toHaveLength(3)
      expect(lines.join('\n')).toContain('hooks.paht is an unknown key. Did you mean path?')
      expect(code).toBe(78)
    },
  )

  const open = { hooks: { enabled: true, token: hookToken } }
  test.each([
    [
      'an invalid template',
      { mappings: [{ match: { path: 'a' } }, { messageTemplate: '{{a | shout}}' }] },
      'messageTemplate',
    ],
    ['an invalid condition', { mappings: [{ match: { payload: { 'a..b': 1 } }, messageTemplate: 'x' }] }, 'payload'],
    [
      'a scheme that lacks a setting',
      { mappings: [{ verify: { scheme: 'twilio', secret: 'x'.repeat(32) } }] },
      'verify',
    ],
    [
      'a mapping with the id of a preset',
      { mappings: [{ id: 'gmail', match: { path: 'a' } }], presets: ['gmail'] },
      '{',
    ],
    ['an unknown preset', { presets: ['gmail', 'githu'] }, 'githu'],
    ['an unknown option of a preset', { presets: [{ name: 'github', secrte: 'x' }] }, '{'],
    ['a transforms folder outside of hooks/transforms', { transformsDir: '../..' }, 'transformsDir'],
  ])('the error for %s names the file and the line of its key', async (_, hooks, key) => {
    const dir = makeConfigDir()
    const text = JSON.stringify({ hooks: { ...open.hooks, ...hooks } }, undefined, 1)
    writeFiles(dir, { 'hookloom.jsonc': text })
    const { stdout } = await runCommand(['check'], { dir })
    const [, line, column] = /^(?:✗.*?|  )hookloom\.jsonc:(\d+):(\d+) /m.exec(stdout) ?? []
    const found = text.split('\n').at(Number(line) - 1) ?? ''
    expect(found.slice(Number(column) - 1).replace('"', '')).toMatch(new RegExp(`^${key.replace('{', String.raw`\{`)}`))
    const { code, stderr } = await runBuilt(['start', '--port', '0', '--admin-port', '0'], { dir })
    expect({ code, stderr }).toEqual({ code: 78, stderr: expect.stringContaining(`hookloom.jsonc:${line}:${column} `) })
  })

  test('hookloom check warns, with the line, about a mapping without verify of a sender that signs, and about no other mapping', async () => {
    const verify = { scheme: 'github', secret: 'the secret of the sender' }
    const mappings = [
      { match: { path: 'a', source: 'github' } },
      { match: { path: 'b', source: 'github' }, verify },
      { match: { path: 'c', source: 'my-own' } },
    ]
    const { stdout, code } = await runCommand(['check'], { dir: makeConfigDir({ config: { hooks: { mappings } } }) })
    const lines = stdout.split('\n').filter((line) => line.startsWith('! senders:'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(
      /hookloom\.jsonc:\d+:\d+ hooks\.mappings\[0\] takes requests of GitHub .* the scheme "github"\./,
    )
    expect(code).toBe(0)
  })

  test('hookloom check warns, with the line, about a mailbox whose mails no mapping takes', async () => {
    const imap = { host: 'imap.example.com', user: 'a@example.com', password: 'of the mailbox', folders: ['INBOX'] }
    const list = async (more: object) => {
      const dir = makeConfigDir({ config: { hooks: { imap, ...more } } })
      const { code, stdout } = await runCommand(['check'], { dir })
      expect(code).toBe(0)
      return stdout.split('\n').filter((line) => line.includes('that no mapping takes'))
    }
    expect(await list({})).toEqual([
      expect.stringMatching(
        /hookloom\.jsonc:\d+:\d+ hooks\.imap brings items that no mapping takes\. Run "hookloom add preset imap"\.$/,
      ),
    ])
    expect(await list({ presets: ['imap'] })).toEqual([])
    expect(await list({ mappings: [{ match: { path: '/imap' }, messageTemplate: 'x' }] })).toEqual([])
    expect(await list({ mappings: [{ match: { source: 'imap' }, messageTemplate: 'x' }] })).toEqual([])
  })

  test('hookloom start in a folder without a configuration exits 78 and names the command that makes one', async () => {
    const { code, stderr } = await runBuilt(['start'], { dir: makeFolder() })
    expect(code).toBe(78)
    expect(stderr).toContain('"hookloom init" makes one')
  })

  test('hookloom check exits 70 with file and line for a module that does not build, and 0 once it does', async () => {
    const dir = makeConfigDir({
      ...sound,
      files: { 'hooks/transforms/in.ts': 'export default () => {\n  retrun 1\n}\n' },
    })
    const broken = await runCommand(['check', '--json'], { dir })
    expect(broken.code).toBe(70)
    const [finding] = broken.json().filter(({ name }) => name === 'transform in.ts')
    expect(finding).toMatchObject({ ok: false, detail: expect.stringMatching(/in\.ts:2/) })
    writeFiles(dir, sound.files)
    const mended = await runCommand(['check', '--json'], { dir })
    expect(mended.code).toBe(0)
    expect(mended.json()).toContainEqual(expect.objectContaining({ name: 'transform in.ts', ok: true }))
  })

  test('hookloom check names every invalid template, and still checks the others and the modules', async () => {
    const mappings = [
      { id: 'one', match: { path: 'one' }, messageTemplate: '{{' },
      { id: 'two', match: { path: 'two' }, messageTemplate: '{{a | shout}}' },
      { id: 'three', match: { path: 'three' }, transform: { module: 'gone.ts' } },
    ]
    const { code, json } = await runCommand(['check', '--json'], {
      dir: makeConfigDir({ config: { hooks: { mappings } } }),
    })
    const failed = json().filter(({ severity }) => severity === 'failure')
    expect(failed.map(({ name }) => name)).toEqual(['mapping one', 'mapping two', 'transform gone.ts'])
    expect(code).toBe(78)
  })

  test('hookloom check exits 70 and names the fixture if one fails, and exits 0 and says so if it passes', async () => {
    const buildFixture = (message: string) =>
      JSON.stringify({ request: { path: 'in', payload: {} }, expect: { decision: 'accept', actions: [{ message }] } })
    const dir = makeConfigDir({
      ...sound,
      files: { ...sound.files, 'hooks/transforms/in.fixtures/a.json': buildFixture('bye') },
    })
    const failing = await runCommand(['check', '--json'], { dir })
    const [finding] = failing.json().filter(({ name }) => name === 'transform in.ts')
    expect(finding).toMatchObject({ ok: false, detail: expect.stringContaining('fails its fixture a.json') })
    expect(failing.code).toBe(70)
    writeFiles(dir, { 'hooks/transforms/in.fixtures/a.json': buildFixture('hello') })
    const passing = await runCommand(['check'], { dir })
    expect(passing).toMatchObject({ code: 0, stdout: expect.stringContaining('its fixture passes') })
  })

  test('hookloom check ends with a failure if a module never finishes loading', async () => {
    const dir = makeConfigDir({
      config: { hooks: { ...sound.config.hooks, transforms: { timeoutMs: 300 } } },
      files: { 'hooks/transforms/in.ts': 'for (;;);\nexport default () => null\n' },
    })
    const { code, stdout } = await runCommand(['check'], { dir })
    expect(stdout).toContain('transforms/in.ts was not loaded within 300 ms.')
    expect(code).toBe(70)
  })

  test('hookloom check warns about disabled hooks, and does not fail because of them', async () => {
    const off = await runCommand(['check', '--json'], { dir: makeConfigDir({ config: { hooks: { enabled: false } } }) })
    expect(off.json()).toContainEqual(expect.objectContaining({ name: 'hooks', ok: false, severity: 'warning' }))
    expect(off.code).toBe(0)
    const on = await runCommand(['check', '--json'], { dir: makeConfigDir() })
    expect(on.json().map(({ name }) => name)).not.toContain('hooks')
  })

  test('a warning does not change the exit code of check', async () => {
    const dir = makeConfigDir({ config: { hooks: { token: 'only-20-letters-long' } } })
    const { code, json } = await runCommand(['check', '--json'], { dir })
    const [warning] = json().filter(({ name }) => name === 'token-length')
    expect(warning).toMatchObject({ ok: false, severity: 'warning' })
    expect(code).toBe(0)
  })
})

test('a gateway that starts with code that fails its fixture says so in its log, at /readyz and to doctor', async () => {
  const fixture = { request: { path: 'in', payload: {} }, expect: { decision: 'skip' } }
  const file = { 'hooks/transforms/in.fixtures/first.json': JSON.stringify(fixture) }
  const gateway = await startGateway({ ...sound, files: { ...sound.files, ...file } })
  const told = /transforms\/in\.ts fails its fixture first\.json at decision/
  expect(gateway.output()).toMatch(told)
  expect(gateway.output()).toContain('"degraded":true')
  expect(await post(gateway, 'in', {})).toMatchObject({ ok: true, runId: expect.any(String) })
  const ready: unknown = await (await fetch(`${gateway.adminUrl}/readyz`, asOperator)).json()
  expect(ready).toMatchObject({ ok: true, degraded: true, problems: [{ detail: expect.stringMatching(told) }] })
  const doctor = await runCommand(['doctor', '--json'], { dir: gateway.dir })
  const [finding] = doctor.json().filter(({ name }) => name === 'gateway')
  expect(finding).toMatchObject({ ok: false, detail: expect.stringMatching(told) })
  expect(doctor.code).toBe(70)
})

describe('hookloom doctor', () => {
  test('hookloom doctor finds a running gateway and its store, and says if no gateway runs', async () => {
    const gateway = await startGateway(sound)
    const beside = await runCommand(['doctor', '--json'], { dir: gateway.dir })
    expect(beside.code).toBe(0)
    const details = new Map(beside.json().map(({ name, detail }) => [name, detail]))
    expect(details.get('gateway')).toContain(`pid ${gateway.child.pid} at ${gateway.url} is ready`)
    expect(details.get('gateway')).toContain('synchronous 2')
    expect(details.get('store-integrity')).toContain('journal_mode is wal')
    await gateway.stop()
    const after = await runCommand(['doctor', '--json'], { dir: gateway.dir })
    expect(after.code).toBe(0)
    expect(after.json()).toContainEqual({ name: 'gateway', ok: true, detail: 'not running' })
  })

  test('hookloom doctor warns before a store is full, with and without a running gateway', async () => {
    const hooks = { mappings: [{ match: { path: 'in' }, transform: { module: 'gone.ts' } }] }
    const gateway = await startGateway({ config: { hooks, store: { maxWaitingBytes: 100_000 } } })
    for (let count = 0; count < 9; count++) await post(gateway, 'in', { more: 'x'.repeat(9_000) })
    const warning = expect.objectContaining({
      name: 'store',
      ok: false,
      severity: 'warning',
      detail: expect.stringMatching(/use 8\d % of store\.maxWaitingBytes/),
    })
    expect((await runCommand(['doctor', '--json'], { dir: gateway.dir })).json()).toContainEqual(warning)
    await gateway.stop()
    expect((await runCommand(['doctor', '--json'], { dir: gateway.dir })).json()).toContainEqual(warning)
  })

  test('hookloom doctor warns about a proxy that sends X-Forwarded-For until the configuration names it', async () => {
    const gateway = await startInside()
    const ask = async () =>
      (await runCommand(['doctor', '--json'], { dir: gateway.dir })).json().filter(({ name }) => name === 'proxies')
    const wake = { text: 'x', mode: 'next-heartbeat' }
    await post({ url: gateway.url, token: hookToken }, 'wake', wake)
    expect(await ask()).toEqual([])
    await post({ url: gateway.url, token: hookToken }, 'wake', wake, {
      'x-forwarded-for': '203.0.113.7',
      connection: 'close',
    })
    expect(await ask()).toEqual([
      expect.objectContaining({
        ok: false,
        severity: 'warning',
        detail: expect.stringMatching(/^Requests from 127\.0\.0\.1 have X-Forwarded-For, .*trustedProxies/),
      }),
    ])
    const ready = await fetch(`${gateway.adminUrl}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([200, expect.not.stringContaining('127.0.0.1')])
    writeConfig(gateway.dir, { server: { trustedProxies: ['127.0.0.1'] } })
    await expect.poll(ask).toEqual([])
  })

  test('hookloom doctor says since when all slots are full, and hookloom show says until when a turn may run', async () => {
    const gateway = await startInside({
      config: {
        agents: { defaults: { runner: 'slow', maxConcurrent: 1, timeoutSeconds: 600 } },
        runners: { slow: { kind: 'command', command: 'sleep', args: ['60'] } },
        server: { stopTimeoutMs: 1_000 },
      },
    })
    const runDoctor = async () =>
      (await runCommand(['doctor', '--json'], { dir: gateway.dir })).json().filter(({ name }) => name === 'slots')
    expect(await runDoctor()).toEqual([])
    const before = Date.now()
    const { runId } = await post({ url: gateway.url, token: hookToken }, 'agent', { message: 'x', deliver: false })
    const other = await post({ url: gateway.url, token: hookToken }, 'agent', { message: 'y', deliver: false })
    const readHealth = async () =>
      (await (await fetch(`${gateway.adminUrl}/api/health`, asOperator)).json()) as HealthFields
    await vi.waitFor(async () => expect((await readHealth()).slots.turns).toHaveLength(1), { timeout: 60_000 })
    const { slots } = await readHealth()
    expect(slots).toMatchObject({ used: 1, most: 1, fullSince: expect.any(String), turns: [{ jobId: runId }] })
    const [turn = { since: '', until: '' }] = slots.turns
    expect(Date.parse(turn.since)).toBeGreaterThanOrEqual(before)
    expect(Date.parse(turn.until) - Date.parse(turn.since)).toBe(600_000)
    const [full] = await runDoctor()
    expect(full).toMatchObject({ ok: false, severity: 'warning' })
    expect(full?.['detail']).toMatch(
      /^The only slot of the gateway has been full since \d{4}-.*Z \(agents\.defaults\.maxConcurrent is 1\)/,
    )
    const [shown] = (await runCommand(['show', String(runId), '--json'], { dir: gateway.dir })).json()
    expect(shown).toMatchObject({ jobs: [{ turn: { jobId: runId, since: turn.since, until: turn.until } }] })
    const text = (await runCommand(['show', String(runId)], { dir: gateway.dir })).stdout
    const [since = '', until = ''] = [turn.since, turn.until].map((at) => at.slice(0, 19).replace('T', ' '))
    expect(text).toMatch(new RegExp(`turn +since ${since}Z, until ${until}Z at the latest \\(timeoutSeconds\\)`))
    const waiting = (await runCommand(['show', String(other['runId'])], { dir: gateway.dir })).stdout
    expect(waiting).toContain('waits for a free slot of the gateway')
    expect(waiting).not.toContain('at the latest')
    await gateway.stop()
  })

  test('hookloom doctor and add preset say whether a channel repeats a message that may have arrived', async () => {
    const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
    const fake = await startFakeTelegram({ botToken, chats: [42] })
    const dir = makeConfigDir({
      config: {
        channels: {
          telegram: { botToken, baseUrl: fake.baseUrl },
          discord: { botToken: 'x', baseUrl: 'http://127.0.0.1:1' },
        },
      },
    })
    const found = (await runCommand(['doctor', '--json'], { dir })).json()
    const findDetail = (name: string) => found.find((finding) => finding['name'] === name)?.['detail']
    expect(findDetail('channel-telegram')).toMatch(/channels\.telegram\.onUnknown is "stop": .* is not sent again/)
    expect(findDetail('channel-discord')).not.toContain('onUnknown')
    const added = (await runCommand(['add', 'preset', 'github'], { dir })).stdout
    expect(added).toMatch(/^Chat {4}channels\.telegram\.onUnknown is "stop": .* may appear twice\.$/m)
    expect(added).not.toContain('discord')
  })

  test('hookloom doctor warns about code that other users can write, and does not fail', async () => {
    const dir = makeConfigDir({ files: { 'hooks/transforms/x.ts': 'export default () => null\n' } })
    chmodSync(join(dir, 'hooks/transforms/x.ts'), 0o666)
    const { code, json } = await runCommand(['doctor', '--json'], { dir })
    expect(code).toBe(0)
    expect(json()).toContainEqual({
      name: 'code-permissions',
      ok: false,
      severity: 'warning',
      detail: expect.stringContaining('hooks/transforms/x.ts (mode 666)'),
    })
  })

  test('hookloom doctor warns about a workspace file that cannot be read', async () => {
    const dir = makeConfigDir({ files: { 'elsewhere.md': 'You are Mira.', 'agents/main/HEARTBEAT.md': '- the tide' } })
    const well = await runCommand(['doctor', '--json'], { dir })
    expect(well.json()).toContainEqual(
      expect.objectContaining({
        name: 'workspaces',
        ok: true,
        detail: '1 of 2 files AGENTS.md and HEARTBEAT.md exist',
      }),
    )
    const file = join(dir, 'agents/main/AGENTS.md')
    symlinkSync('../../elsewhere.md', file)
    const linked = await runCommand(['doctor', '--json'], { dir })
    const detail = `${file} is not read: it is a link that leads out of the workspace. Put the file itself there.`
    expect(linked.json()).toContainEqual({ name: 'workspaces', ok: false, severity: 'warning', detail })
    expect(linked.code).toBe(0)
  })

  test('hookloom doctor --ask calls the model once, and warns if the model does not stream', async () => {
    const fake = await startFakeProvider(chatCompletions)
    fake.answer = ({ toReplyBody }, _request, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(toReplyBody('OK')))
    const dir = makeConfigDir({
      config: {
        models: { providers: { mine: { kind: 'openai-compatible', baseUrl: fake.baseUrl, apiKey } } },
        agents: { defaults: { model: 'mine/small' } },
      },
    })
    const isCall = ({ path }: { path: string }) => path.endsWith('/chat/completions')
    await runCommand(['doctor', '--json'], { dir })
    expect(fake.received.filter(isCall)).toEqual([])
    const asked = await runCommand(['doctor', '--ask', '--json'], { dir })
    expect(asked.json()).toContainEqual({
      name: 'model-mine/small',
      ok: false,
      severity: 'warning',
      detail: expect.stringMatching(/^replied in \d+ ms, 11 tokens in, 7 out\nmine does not stream its replies\./),
    })
    expect(fake.received.filter(isCall)).toHaveLength(1)
    fake.answer = refuseWith(401)
    const refused = await runCommand(['doctor', '--ask', '--json'], { dir })
    expect(refused.json()).toContainEqual(
      expect.objectContaining({ name: 'model-mine/small', ok: false, detail: expect.stringContaining('apiKey') }),
    )
    fake.close()
  })

  test('hookloom doctor warns that a gateway was killed, and counts the runs that it leaves', async () => {
    const gateway = await startGateway()
    await gateway.kill()
    const store = createSqliteStore({ file: join(gateway.dir, 'state/hookloom.db'), clock: Date.now })
    await store.append(newDelivery({ at: Date.now(), jobs: [newJob()] }))
    expect(await store.claim({ limit: 1, leaseMs: 60_000 })).toHaveLength(1)
    await store.close()
    const { code, json } = await runCommand(['doctor', '--json'], { dir: gateway.dir })
    expect(code).toBe(0)
    const details = new Map(json().map(({ name, detail }) => [name, detail]))
    expect(details.get('gateway')).toBe(
      `not running: process ${gateway.child.pid} ended without a stop. The runs that it began continue at the next start.`,
    )
    expect(details.get('store')).toContain('0 queued, 1 running, 0 dead')
    expect(json()).toContainEqual(expect.objectContaining({ name: 'gateway', ok: false, severity: 'warning' }))
  })

  test('hookloom doctor fails for a degraded gateway, and for a store that is not a database', async () => {
    const gateway = await startGateway({ ...sound, files: {} })
    const degraded = await runCommand(['doctor', '--json'], { dir: gateway.dir })
    expect(degraded.code).toBe(70)
    const [finding] = degraded.json().filter(({ name }) => name === 'gateway')
    // the gateway itself reports the fault
    expect(finding).toMatchObject({ ok: false, detail: expect.stringMatching(/runs degraded\n.*in\.ts/) })
    await gateway.stop()
    const dir = makeConfigDir({ files: { 'state/hookloom.db': 'this is no database, and never was one' } })
    const damaged = await runCommand(['doctor', '--json'], { dir })
    expect(damaged.json()).toContainEqual(expect.objectContaining({ name: 'store', ok: false }))
    expect(damaged.code).toBe(69)
  })
})

test('hookloom schema prints a JSON Schema that knows the keys of the configuration', async () => {
  const { code, stdout } = await runCommand(['schema'])
  const schema: unknown = JSON.parse(stdout)
  expect(schema).toMatchObject({ type: 'object', properties: { hooks: { properties: { token: {} } } } })
  expect(code).toBe(0)
})
