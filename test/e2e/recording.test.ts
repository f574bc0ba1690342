// Requests are recorded without their secrets, and replayed through two config directories without a gateway, as in the guide.
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { signRequest } from '../../src/gateway/proofs/verifiers/sign.ts'
import { readBlock, readBlocks } from '../pages.ts'
import { runCommand, runProcess } from './command.ts'
import { describeEngines } from './engines.ts'
import {
  gatewayToken,
  hookToken,
  mainFile,
  makeConfigDir,
  makeFolder,
  post,
  toChildEnv,
  writeFiles,
} from './gateway.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const secret = 'it-is-a-long-secret-of-github'
const buildCode = (message: string) => `export default ({ payload, headers, body }) => {
  if (payload.kind === 'gone') return null
  if (payload.kind === 'bad') throw new TypeError('no kind')
  return { message: ${message} }
}\n`
const before = buildCode("'one ' + payload.kind + ' ' + headers['x-kind']")
const after = buildCode("'two ' + payload.kind + ' ' + headers['x-kind']").replace("=== 'gone'", "=== 'old'")
const mappings = [
  { id: 'order', match: { path: 'order' }, transform: { module: 'order.ts' }, deliver: false },
  {
    match: { path: 'signed' },
    verify: { scheme: 'github', secret: '${GITHUB_SECRET}' },
    messageTemplate: '{{event}} {{n}}',
  },
  { id: 'form', match: { path: 'form' }, messageTemplate: '{{a}} {{b}} {{list[1]}}', deliver: false },
  { id: 'text', match: { path: 'text' }, accept: ['text'], messageTemplate: 'text {{body}}', deliver: false },
]
const buildConfig = (given: object[] = mappings) => ({ hooks: { retain: 50, mappings: given } })
const buildFiles = (transform: string, given?: object[]) => ({
  'hookloom.jsonc': JSON.stringify({
    hooks: { enabled: true, token: '${HOOKLOOM_TOKEN}', ...buildConfig(given).hooks },
  }),
  'hooks/transforms/order.ts': transform,
})

describeEngines('a recording of kept requests', (start) => {
  let dir: string
  let recording: string
  const workspace = makeFolder()
  const splitLines = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => z.record(z.string(), z.unknown()).parse(JSON.parse(line)))

  beforeAll(async () => {
    const gateway = await start({
      config: buildConfig(),
      files: { 'hooks/transforms/order.ts': before, '.env': `GITHUB_SECRET=${secret}\n` },
      env: { GITHUB_SECRET: secret },
    })
    dir = gateway.dir
    const to = { url: gateway.url, token: hookToken }
    const key = 'ghp_012345678901234567890123456789abcdef'
    await post(
      to,
      'order',
      {
        kind: 'tea',
        note: secret,
        url: `https://x.example/?access_token=${key}`,
        deep: JSON.parse('{"__proto__": 1}'),
      },
      { 'x-kind': 'a' },
    )
    await post(to, 'order', { kind: 'gone' }).catch(() => undefined)
    await post(to, 'order', { kind: 'bad' }).catch(() => undefined)
    const body = JSON.stringify({ n: 7 })
    const plain = { 'content-type': 'application/json', 'x-github-event': 'push' }
    const request = { body: Buffer.from(body), now: Date.now(), method: 'POST', url: '/hooks/signed', headers: plain }
    const send = (hook: string, headers: Record<string, string>, sent: string) =>
      fetch(`${gateway.url}/${hook}`, { method: 'POST', headers, body: sent })
    await send(
      'signed',
      { ...plain, ...signRequest({ scheme: 'github', secret }, request, { senders: builtInSenders }) },
      body,
    )
    const token = { authorization: `Bearer ${hookToken}` }
    await send('form', { ...token, 'content-type': 'application/x-www-form-urlencoded' }, 'a=1&b=x%20y&list=p&list=q')
    await send('text', { ...token, 'content-type': 'text/plain' }, 'plain words')
    const ran = await runCommand(['record', '--last', '500'], { dir, env: { GITHUB_SECRET: secret } })
    expectRecorded(ran)
    recording = ran.stdout
    symlinkSync(join(mainFile, '../..'), join(workspace, 'package'))
    for (const place of ['', 'base']) {
      mkdirSync(join(workspace, place, 'node_modules/.bin'), { recursive: true })
      writeFileSync(join(workspace, place, 'node_modules/.bin/hookloom'), `#!/bin/sh\nexec node ${mainFile} "$@"\n`, {
        mode: 0o755,
      })
    }
    writeFiles(join(workspace, 'base'), buildFiles(before))
  })

  function expectRecorded(ran: { code: number | null; stdout: string; stderr: string }): void {
    if (ran.code !== 0 || ran.stdout === '') throw new Error(ran.stderr)
  }
  const writeHead = (transform: string, given?: object[]) =>
    writeFiles(join(workspace, 'head'), { ...buildFiles(transform, given), 'requests.jsonl': recording })
  const replay = (...args: string[]) =>
    runCommand(
      ['replay', '--recording', join(workspace, 'head/requests.jsonl'), '--from', join(workspace, 'head'), ...args],
      {
        dir: join(workspace, 'base'),
      },
    )

  test('a recording has each kept request once, the oldest first, and no secret', () => {
    const [head, ...requests] = splitLines(recording)
    expect(head).toEqual({ recording: 'hookloom', version: 1 })
    expect(requests.map(({ hook }) => hook)).toEqual(['order', 'order', 'order', 'signed', 'form', 'text'])
    expect(requests[0]).toMatchObject({
      headers: { 'x-kind': 'a' },
      payload: { kind: 'tea', note: '[removed]' },
    })
    expect(requests[3]).toMatchObject({ verifiedBy: 'github', source: 'github', event: 'push' })
    expect(recording).toContain('"deep":{"__proto__":1}')
    for (const one of [secret, hookToken, gatewayToken, 'ghp_', 'sha256=']) expect(recording).not.toContain(one)
  })

  test('a replay of a recording with unchanged code has the same outcomes, without a gateway, a store or secrets', async () => {
    writeHead(before)
    const ran = await replay('--fail-on', 'changed', '--json')
    expect(ran.json().at(-1)).toMatchObject({
      compared: 'base',
      total: 6,
      counts: { same: 6 },
      problems: [],
      notRun: 0,
    })
    expect(ran.json().find(({ hook }) => hook === 'signed')).toMatchObject({ class: 'same', source: 'github' })
    expect(ran.code).toBe(0)
    expect(existsSync(join(workspace, 'base/state'))).toBe(false)
  })

  test('recorded forms, plain texts and signed requests reach their mappings with the recorded values', async () => {
    const changed = mappings.map((each) =>
      'messageTemplate' in each ? { ...each, messageTemplate: `${each.messageTemplate}!` } : each,
    )
    writeHead(before, changed)
    const { groups } = z
      .object({
        groups: z.array(z.object({ example: z.object({ changes: z.array(z.unknown()) }), count: z.number() })),
      })
      .parse((await replay('--json')).json().at(-1))
    expect(groups).toMatchObject([
      { count: 3, example: { changes: [{ before: 'text plain words', after: 'text plain words!' }] } },
    ])
    const form = await replay('--hook', 'form', '--json')
    expect(JSON.stringify(form.json().at(-1))).toContain('"before":"1 x y q"')
    const signed = await replay('--hook', 'signed', '--json')
    expect(JSON.stringify(signed.json().at(-1))).toContain('"before":"push 7"')
  })

  test('with --fail-on, a replay fails only for a change of a named class or for a request that cannot be compared', async () => {
    writeHead(after)
    const runReplay = async (classes: string) => (await replay('--fail-on', classes)).code
    expect(await runReplay('changed')).toBe(70)
    expect(await runReplay('now-parks,now-refused')).toBe(0)
    expect(await runReplay('now-parks,now works')).toBe(70)
    expect(await runReplay('now-parked')).toBe(64)
    writeHead('export default ({')
    expect(await runReplay('now-refused')).toBe(70)
    expect((await replay()).code).toBe(0)
  })

  test('the commands of the guide and of its workflow run as printed, and give a comment and an exit code', async () => {
    const page = 'src/gateway/replay/README.md'
    const path = `${join(workspace, 'base/node_modules/.bin')}:${process.env['PATH']}`
    const env = { ...toChildEnv(), PATH: path, HOOKLOOM_HOME: dir, GITHUB_SECRET: secret }
    const run = (command: string) => runProcess('bash', ['-c', `cd ${workspace} && ${command}`], { env })
    const [record = '', compare = ''] = readBlocks(page).flatMap(({ language, text }) =>
      language === 'sh' ? text : [],
    )
    expect(await run(record)).toMatchObject({ code: 0, stderr: expect.stringContaining('Recorded 6 requests.') })
    writeHead(after)
    writeFileSync(join(workspace, 'head/requests.jsonl'), readFileSync(join(workspace, 'requests.jsonl')))
    const shown = await run(compare)
    expect(shown).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^<!-- hookloom replay -->\n\n### Hookloom replay: 2 requests of 6 change/),
    })
    expect(shown.stdout).toMatch(/```diff\n[^]*- one tea a\n\+ two tea a\n```/)
    const step = z.object({ name: z.string().optional(), run: z.string().optional() })
    const workflow = z.object({ jobs: z.object({ replay: z.object({ steps: z.array(step) }) }) })
    const { steps } = workflow.parse(parse(readBlock(page, 'yaml', 'pull_request'))).jobs.replay
    const command = steps.find(({ name }) => name === 'Replay')?.run ?? ''
    expect(await run(command)).toMatchObject({ code: 0 })
    expect(readFileSync(join(workspace, 'replay.md'), 'utf8')).toBe(shown.stdout)
    writeHead(buildCode('payload.kind.x.y'))
    expect(await run(command)).toMatchObject({ code: 70 })
    expect(readFileSync(join(workspace, 'replay.md'), 'utf8')).toContain('| now parks | 1 |')
  })

  test('a replay runs all requests of a recording, each once, so that an edit that parks the oldest one fails', async () => {
    const [head = '', first = ''] = recording.split('\n')
    const requests = Array.from({ length: 60 }, (_, index) =>
      JSON.stringify({
        ...JSON.parse(first),
        deliveryId: `d-${index}`,
        payload: { kind: index === 0 ? 'old' : 'new' },
      }),
    )
    writeHead(buildCode("payload.kind === 'old' ? payload.kind.x.y : 'one ' + payload.kind + ' ' + headers['x-kind']"))
    writeFileSync(join(workspace, 'head/requests.jsonl'), [head, ...requests, ...requests].join('\n'))
    const all = await replay('--fail-on', 'now-parks')
    expect(all).toMatchObject({ code: 70, stdout: expect.stringContaining('60 requests: ') })
    expect(await replay('--fail-on', 'now-parks', '--last', '50')).toMatchObject({ code: 0 })
  })

  test('text from senders cannot leave its code block in the comment of a replay', async () => {
    const hostile = 'x\n```\n</details><img src=x> @everyone ````'
    const [head = '', first = ''] = recording.split('\n')
    const evil = { ...JSON.parse(first), payload: { kind: hostile }, hook: 'order' }
    writeHead(after)
    writeFileSync(join(workspace, 'head/requests.jsonl'), `${head}\n${JSON.stringify(evil)}\n`)
    const { stdout } = await replay('--format', 'markdown')
    expect(stdout).toMatch(/^`````diff\n[^]*^`````$/m)
  })

  test('a file that is not a recording is refused with the line of its error', async () => {
    writeHead(before)
    const file = join(workspace, 'head/requests.jsonl')
    writeFileSync(file, `${recording}{"deliveryId":"x"}\n`)
    expect(await replay()).toMatchObject({ code: 64, stderr: expect.stringContaining('requests.jsonl:8 ') })
    writeFileSync(file, '{}')
    expect(await replay()).toMatchObject({ code: 64, stderr: expect.stringContaining('not a recording') })
    const gone = await runCommand(['replay', '--recording', 'no-such-file', '--from', '.'], {
      dir: join(workspace, 'base'),
    })
    expect(gone).toMatchObject({ code: 64, stderr: expect.stringContaining('does not exist') })
    const alone = await runCommand(['replay', '--recording', file], { dir: join(workspace, 'base') })
    expect(alone).toMatchObject({ code: 64, stderr: expect.stringContaining('--from') })
  })

  const corpus = process.env['HOOKLOOM_CORPUS']
  test.skipIf(corpus === undefined)(
    'recorded requests of real senders are replayed without a difference (skipped without HOOKLOOM_CORPUS)',
    async () => {
      const all = [{ id: 'any', match: {}, messageTemplate: '{{source}} {{event}} {{payload}}', deliver: false }]
      const gateway = await start({ config: { hooks: { retain: 1_000, mappings: all } } })
      const found = readdirSync(corpus ?? '', { recursive: true, encoding: 'utf8' }).filter((name) =>
        name.endsWith('.json'),
      )
      for (const name of found.slice(0, 80)) {
        const body = readFileSync(join(corpus ?? '', name), 'utf8')
        if (body.length < 200_000)
          await post({ url: gateway.url, token: hookToken }, 'corpus', JSON.parse(body)).catch(() => undefined)
      }
      const { stdout } = await runCommand(['record', '--last', '1000'], gateway)
      const base = makeConfigDir({ config: { hooks: { mappings: all } } })
      writeFiles(base, { 'requests.jsonl': stdout })
      const ran = await runCommand(
        ['replay', '--recording', join(base, 'requests.jsonl'), '--from', base, '--last', '1000', '--json'],
        { dir: base },
      )
      const report = z.object({ total: z.number(), counts: z.object({ same: z.number() }) }).parse(ran.json().at(-1))
      expect(report.total).toBe(splitLines(stdout).length - 1)
      expect(report.total).toBeGreaterThan(40)
      expect(report.counts.same).toBe(report.total)
    },
  )
})
