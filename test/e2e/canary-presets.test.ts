// Sends every text of every preset fixture, marked, through a gateway with full logging: no mark reaches the log.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { presets } from '../../presets/index.ts'
import type { JsonValue } from '../../src/base/json.ts'
import type { Preset } from '../../src/model/preset.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { type Gateway, gatewayToken, post, startGateway } from './gateway.ts'

const mark = 'canary-6f1e0b'
const bundled: readonly Preset[] = presets
const folder = join(import.meta.dirname, '../../presets')
const Fixture = z.object({ request: z.object({ headers: z.record(z.string(), z.string()), payload: z.json() }) })

const fixtures = bundled.flatMap(({ name }) =>
  readdirSync(join(folder, name, 'fixtures')).map((file) => ({
    name,
    ...Fixture.parse(JSON.parse(readFileSync(join(folder, name, 'fixtures', file), 'utf8'))).request,
  })),
)

/** The words for which the conditions of a preset ask. They get no mark, because the mappings would not match a marked word. */
function toWords(name: string): ReadonlySet<unknown> {
  const preset = bundled.find((each) => each.name === name)
  const { mappings } = preset?.build(preset.options.parse({})) ?? { mappings: [] }
  return new Set(
    mappings.flatMap(({ match }) => [match?.event, match?.source, ...Object.values(match?.payload ?? {})].flat()),
  )
}

/** The payload with a mark in each of its texts except the given ones. */
function toMarked(value: JsonValue, kept: ReadonlySet<unknown>): JsonValue {
  if (typeof value === 'string') return kept.has(value) ? value : `${value} ${mark}`
  if (Array.isArray(value)) return value.map((item) => toMarked(item, kept))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toMarked(item, kept)]))
}

const nothing: ReadonlySet<unknown> = new Set()

/** The first agent quotes its prompt in the reply, the second fails with it, and the third calls a model that does not exist. */
const config = {
  server: { log: 'debug' },
  hooks: {
    presets: bundled.map(({ name }) => name),
    allowRequestSessionKey: true,
    mappings: [
      { match: { path: 'fails' }, agentId: 'fails', name: '{{text}}', sessionKey: 'hook:{{text}}:{{n}}' },
      { match: { path: 'any', source: 'other' } },
      { match: { path: 'code' }, transform: { module: 'code.ts' } },
      { match: { path: 'once' }, transform: { module: 'once.ts' } },
      ...['queue', 'skip', 'replace', 'gather'].map((onNew) => ({
        match: { path: `flow-${onNew}` },
        sessionKey: 'hook:{{text}}',
        budgets: ['small'],
        flow: {
          key: '{{text}}',
          onNew,
          delay: '1s',
          expires: '2s',
          maxQueued: 1,
          rateLimit: { limit: 2, period: '1h', key: '{{text}}' },
          cancelOn: { payload: { kind: 'cancel' } },
        },
      })),
    ],
  },
  budgets: { small: { turns: 2, period: '1h' } },
  agents: {
    defaults: { retry: { for: '1s' } },
    list: [
      { id: 'main', runner: 'echo' },
      { id: 'fails', runner: 'loud' },
      { id: 'asks', runner: 'ai' },
    ],
  },
  models: { providers: { local: { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1' } } },
  runners: {
    loud: { kind: 'command', command: 'sh', args: ['-c', 'tee /dev/stderr; exit 1'] },
  },
}
const files = {
  'hooks/transforms/code.ts': 'export default ({ payload }) => { throw new Error(payload.text) }',
  'hooks/transforms/once.ts':
    'export default ({ payload }) => ({ message: payload.text, dedupe: { key: payload.text, for: 60 } })',
  'hooks/transforms/code.fixtures/one.json': JSON.stringify({
    request: { path: 'code', payload: { text: `captured ${mark}` } },
    expect: { decision: 'accept', actions: [{ kind: 'agent', message: `expected ${mark}` }] },
  }),
}

/** Waits until the log has the end or the first failure of each run. */
async function settled(gateway: Gateway, runs: readonly string[]): Promise<void> {
  const isLogged = (id: string) => new RegExp(`"jobId":"${id}".*"msg":"run `).test(gateway.output())
  await vi.waitUntil(() => runs.every(isLogged), { timeout: 60_000, interval: 200 })
}

async function postChange(gateway: Gateway, path: string, what: string): Promise<void> {
  const headers = { authorization: `Bearer ${gatewayToken}`, 'content-type': 'application/json' }
  const answer = await fetch(`${gateway.adminUrl}/api/${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ what }),
  })
  expect(answer.status).toBe(200)
}

async function sendEverything(gateway: Gateway): Promise<{ accepted: number; skipped: number; refused: number }> {
  const counts = { accepted: 0, skipped: 0, refused: 0 }
  const runs: string[] = []
  const send = async (
    hook: string,
    payload: unknown,
    headers: Readonly<Record<string, string>> = {},
    { isLeft = false } = {},
  ) => {
    const body = await post(gateway, hook, payload, headers).catch(() => undefined)
    if (body === undefined) counts.skipped += 1
    else if (body['ok'] !== true) counts.refused += 1
    else {
      counts.accepted += 1
      if (!isLeft) runs.push(...z.array(z.string()).parse([body['runId'] ?? body['runIds'] ?? []].flat()))
    }
  }
  for (const { name, headers, payload } of fixtures) {
    await send(name, toMarked(payload, toWords(name)), headers)
    await send(name, toMarked(payload, nothing), headers)
  }
  // each run has a separate session, because a retried run delays the runs after it in its session
  for (const n of [1, 2]) await send('fails', { text: mark, n })
  await send('any', { source: mark })
  await send('code', { text: mark })
  for (const _ of [1, 2]) await send('once', { text: mark })
  const target = `session:main/hook:${mark}`
  await postChange(gateway, 'pauses', target)
  for (const onNew of ['queue', 'skip', 'replace', 'gather']) {
    // some of these requests start no run
    for (const n of [1, 2, 3]) await send(`flow-${onNew}`, { text: mark, n }, {}, { isLeft: true })
    await send(`flow-${onNew}`, { text: mark, kind: 'cancel' }, {}, { isLeft: true })
    await send(`flow-${onNew}`, { text: mark, n: 4 }, {}, { isLeft: true })
  }
  await postChange(gateway, 'resume', target)
  await postChange(gateway, 'pauses', `source:${mark}`)
  const message = `say ${mark}`
  await send('agent', { message, name: mark, sessionKey: `hook:${mark}` })
  for (const model of [`local/${mark}`, mark, `${mark}/x`]) await send('agent', { message, model, agentId: 'asks' })
  for (const field of ['channel', 'agentId', 'to', 'thinking', 'sessionMode'])
    await send('agent', { message, [field]: mark })
  await settled(gateway, runs)
  return counts
}

describe.each([
  ['sqlite', undefined],
  ['postgres', whyNoPostgres],
])('payloads of presets on %s', (engine, why) => {
  test.skipIf(why !== undefined)(
    'no text of a payload is printed, whatever the outcome of its delivery',
    { timeout: 120_000 },
    async () => {
      const schema = engine === 'postgres' ? await newSchema() : undefined
      const store = schema === undefined ? {} : { store: { url: '${DATABASE_URL}' } }
      const env = schema === undefined ? {} : { DATABASE_URL: schema.url }
      const gateway = await startGateway({ config: { ...config, ...store }, files, env })
      const counts = await sendEverything(gateway)
      await gateway.stop()
      await schema?.drop()
      const found = gateway
        .output()
        .split('\n')
        .filter((line) => line.includes(mark))
      expect(found).toEqual([])
      expect(counts.accepted).toBeGreaterThan(fixtures.length)
      expect(counts.skipped).toBeGreaterThan(0)
      expect(counts.refused).toBeGreaterThan(0)
      // the log has every kind of line
      for (const line of [
        /"msg":"POST /,
        /"msg":"run /,
        /"msg":"deliver /,
        /run failed/,
        /parked: /,
        /fails its fixture/,
      ])
        expect(gateway.output()).toMatch(line)
    },
  )
})
