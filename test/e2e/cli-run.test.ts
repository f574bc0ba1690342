import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, makeConfigDir, startGateway } from './gateway.ts'

const setup = {
  config: {
    hooks: {
      defaultSessionKey: 'hook:inbox',
      mappings: [
        {
          id: 'pushes',
          match: { path: 'repo', event: 'push' },
          name: 'Push by {{pusher}}',
          messageTemplate: '{{ref}}',
        },
        {
          id: 'opened',
          match: { path: 'repo', payload: { action: 'opened' } },
          model: 'acme/large',
          transform: { module: 'opened.ts' },
        },
        { id: 'blank', match: { path: 'blank' }, messageTemplate: '{{nothing}}' },
        { id: 'thrower', match: { path: 'thrower' }, transform: { module: 'thrower.ts' } },
      ],
    },
  },
  files: {
    'hooks/transforms/opened.ts': [
      'export default ({ payload }, { log }) => {',
      '  log("looked at it")',
      '  return payload.draft ? null : { message: `Review ${payload.title}`, deliver: false }',
      '}',
    ].join('\n'),
    'hooks/transforms/thrower.ts': 'export default () => {\n  throw new TypeError("never")\n}\n',
    'opened.json': JSON.stringify({ action: 'opened', title: 'Tea' }),
    'draft.json': JSON.stringify({ action: 'opened', draft: true }),
    'push.json': JSON.stringify({
      request: {
        headers: { 'x-github-event': 'push', 'x-github-delivery': 'd-1' },
        payload: { ref: 'main', pusher: 'mira' },
      },
    }),
    'other.json': '{"action":"closed"}',
    'cut.json': '{"action":',
    'key.json': '{"message":"hi","sessionKey":"hook:mine"}',
  },
}

describe('hookloom run', () => {
  test('hookloom run shows the decision, the reason of each mapping, and the origin of each field', async () => {
    const dir = makeConfigDir(setup)
    const { code, json } = await runCommand(['run', 'repo', join(dir, 'opened.json'), '--json'], { dir })
    expect(code).toBe(0)
    const [told] = json()
    expect(told).toMatchObject({
      decision: 'accept',
      actions: [{ kind: 'agent', message: 'Review Tea', deliver: false, sessionKey: 'hook:inbox', agentId: 'main' }],
      origins: [
        {
          message: 'transform opened.ts',
          deliver: 'transform opened.ts',
          model: 'literal model',
          wakeMode: 'default',
          sessionKey: 'config hooks.defaultSessionKey',
        },
      ],
      problem: null,
      log: ['looked at it'],
    })
    expect(told?.['trace']).toEqual([
      { mappingId: 'pushes', matched: false, why: expect.stringContaining('event') },
      { mappingId: 'opened', matched: true, why: expect.any(String) },
      { mappingId: 'blank', matched: false, why: expect.stringContaining('path') },
      { mappingId: 'thrower', matched: false, why: expect.stringContaining('path') },
    ])
  })

  test('hookloom run writes nothing, not even a state folder', async () => {
    const dir = makeConfigDir(setup)
    const listFiles = () => readdirSync(dir, { recursive: true })
    const before = listFiles()
    await runCommand(['run', 'repo', join(dir, 'opened.json')], { dir })
    await runCommand(['run', 'thrower', join(dir, 'opened.json')], { dir })
    expect(listFiles()).toEqual(before)
    expect(before).not.toContain('state')
  })

  test('hookloom run takes the headers from a fixture or from --header, and --event replaces the event in the headers', async () => {
    const dir = makeConfigDir(setup)
    const decide = async (...args: string[]) => {
      const { json } = await runCommand(['run', 'repo', ...args, '--json'], { dir })
      return json()[0]
    }
    expect(await decide(join(dir, 'push.json'))).toMatchObject({
      mappingId: 'pushes',
      actions: [{ name: 'Push by mira', message: 'main' }],
      origins: [{ name: 'template name', message: 'template messageTemplate' }],
    })
    expect(await decide(join(dir, 'push.json'), '--event', 'fork')).toMatchObject({ decision: 'skip', mappingId: null })
    expect(await decide(join(dir, 'other.json'))).toMatchObject({ decision: 'skip' })
    const headers = ['--header', 'x-github-event: push', '--header', 'x-github-delivery: d-2']
    expect(await decide(join(dir, 'other.json'), ...headers)).toMatchObject({ mappingId: 'pushes' })
  })

  test.each([
    ['draft.json', 'repo', 0, 'skip', null],
    ['opened.json', 'blank', 65, 'refusal', 'payload-invalid'],
    ['opened.json', 'thrower', 70, 'park', 'transform-failed'],
    ['opened.json', 'agent', 65, 'refusal', 'payload-invalid'],
    ['key.json', 'agent', 77, 'refusal', 'session-key-denied'],
  ])(
    'hookloom run with %s for the hook %s exits %i, with the decision %s',
    async (file, hook, code, decision, problem) => {
      const dir = makeConfigDir(setup)
      const ran = await runCommand(['run', hook, join(dir, file), '--json'], { dir })
      expect(ran.json()).toMatchObject([
        { decision, actions: [], problem: problem === null ? null : { code: problem } },
      ])
      expect(ran.code).toBe(code)
    },
  )

  test('hookloom run shows the file and the line of a transform that throws', async () => {
    const dir = makeConfigDir(setup)
    const { stdout, stderr } = await runCommand(['run', 'thrower', join(dir, 'opened.json')], { dir })
    expect(stdout).toContain('park: this code would park the delivery\n')
    expect(stderr).toMatch(/thrower\.ts:2/)
  })

  test.each([
    ['while it loads', 'for (;;);\nexport default () => null\n', 'was not loaded within 300 ms'],
    ['when it is called', 'export default () => { for (;;); }\n', 'did not end within 300 ms'],
  ])('hookloom run ends code that loops %s', async (_when, text, told) => {
    const dir = makeConfigDir({
      config: { hooks: { ...setup.config.hooks, transforms: { timeoutMs: 300 } } },
      files: { ...setup.files, 'hooks/transforms/thrower.ts': text },
    })
    const { code, stderr } = await runCommand(['run', 'thrower', join(dir, 'opened.json')], { dir })
    expect(stderr).toContain(told)
    expect(code).toBe(70)
  })

  test('code that hookloom run executes sees only the variables that hooks.transforms.env names', async () => {
    const text = 'export default () => ({ message: JSON.stringify([process.env.NAMED, process.env.SECRET]) })\n'
    const dir = makeConfigDir({
      config: { hooks: { ...setup.config.hooks, transforms: { env: ['NAMED'] } } },
      files: { ...setup.files, '.env': 'NAMED=seen\n', 'hooks/transforms/thrower.ts': text },
    })
    const env = { SECRET: 'not for transforms' }
    const { json } = await runCommand(['run', 'thrower', join(dir, 'opened.json'), '--json'], { dir, env })
    expect(json()).toMatchObject([{ actions: [{ message: '["seen",null]' }] }])
  })

  test('hookloom run says that a running gateway keeps its last version if code does not build', async () => {
    const dir = makeConfigDir({
      ...setup,
      files: { ...setup.files, 'hooks/transforms/thrower.ts': 'export default (' },
    })
    const { stdout } = await runCommand(['run', 'thrower', join(dir, 'opened.json')], { dir })
    expect(stdout).toContain('would park the delivery; a running gateway keeps its last good version\n')
  })

  test('hookloom run suggests the nearest hook for an unknown one, and names a file that is not valid JSON', async () => {
    const dir = makeConfigDir(setup)
    const unknown = await runCommand(['run', 'repos', join(dir, 'opened.json')], { dir })
    expect(unknown).toMatchObject({ code: 65, stderr: expect.stringContaining('Did you mean repo?') })
    const cut = await runCommand(['run', 'repo', join(dir, 'cut.json')], { dir })
    expect(cut).toMatchObject({ code: 65, stderr: expect.stringContaining('cut.json') })
  })
})

describe('hookloom send', () => {
  test('hookloom send replaces a recorded signature, and sends a signature from the command line unchanged', async () => {
    const paddle = { scheme: 'paddle', secret: 'pdl_ntfset_a_secret_of_the_test' }
    const recorded = {
      headers: { 'paddle-signature': `ts=1700000000;h1=${'0'.repeat(64)}` },
      payload: { event_id: 'evt_1', event_type: 'transaction.paid' },
    }
    const gateway = await startGateway({
      config: {
        hooks: { mappings: [{ match: { path: 'paid' }, verify: paddle, messageTemplate: '{{event_type}}' }] },
      },
      files: { 'recorded.json': JSON.stringify({ request: recorded }) },
    })
    const file = join(gateway.dir, 'recorded.json')
    const sent = await runCommand(['send', 'paid', file], { dir: gateway.dir })
    expect(sent).toMatchObject({ code: 0, stdout: expect.stringMatching(/^200 /) })
    const forged = ['--header', `paddle-signature: ts=${Math.floor(Date.now() / 1_000)};h1=${'0'.repeat(64)}`]
    const refused = await runCommand(['send', 'paid', file, ...forged], { dir: gateway.dir })
    expect(refused).toMatchObject({ code: 77, stdout: expect.stringMatching(/^401 /) })
  })

  test('hookloom send posts as a sender does, and its exit code shows why the gateway refused', async () => {
    const gateway = await startGateway(setup)
    const send = (hook: string, file: string, ...more: string[]) =>
      runCommand(['send', hook, join(gateway.dir, file), ...more, '--json'], { dir: gateway.dir })
    const sent = await send('repo', 'push.json')
    expect(sent.json()).toMatchObject([{ status: 200, body: { ok: true, sessionKey: 'hook:inbox' }, replay: false }])
    expect(sent.code).toBe(0)
    // the fixture contains the sender's delivery id
    expect((await send('repo', 'push.json')).json()).toMatchObject([{ status: 200, replay: true }])
    expect(await send('repo', 'other.json')).toMatchObject({
      code: 0,
      stdout: '{"status":204,"body":null,"replay":false}\n',
    })
    const refused = await send('agent', 'key.json')
    expect(refused.json()).toMatchObject([{ status: 400, body: { code: 'session-key-denied' } }])
    expect(refused.code).toBe(77)
    const unknown = await send('nowhere', 'other.json')
    expect(unknown).toMatchObject({ code: 65, stdout: expect.stringContaining('"status":404') })
    await gateway.stop()
    const nobody = await send('repo', 'push.json')
    expect(nobody).toMatchObject({ code: 69, stdout: '', stderr: expect.stringContaining('hookloom start') })
    for (const { stdout, stderr } of [sent, refused, unknown, nobody]) {
      expect(stdout + stderr).not.toContain(hookToken)
      expect(stdout + stderr).not.toContain(gatewayToken)
    }
  })
})
