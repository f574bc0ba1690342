// The bundled transforms do what their fixtures say, read as their README says, and hold against other senders' payloads.
// HOOKLOOM_CORPUS names a folder of folders of real {headers, body}, one folder a sender.
import { toJsonBody } from '../../src/model/parse-body.ts'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadTransforms } from '../inline-transforms.ts'
import { AgentAction } from '../../src/model/action.ts'
import { Config } from '../../src/model/config.ts'
import type { JsonValue } from '../../src/model/json.ts'
import { Mapping, Match } from '../../src/model/mapping.ts'
import { AgentResult, type Transform } from '../../src/model/transform.ts'
import type { Decision } from '../../src/pipeline/decision.ts'
import { createGeneration } from '../../src/pipeline/generation.ts'
import { detectSource, toEvent } from '../../src/pipeline/sources.ts'
import { decideOn, toTestDelivery } from './decide.ts'

const root = resolve(import.meta.dirname, '../../transforms')
const modules = readdirSync(root).filter((name) => name.endsWith('.ts'))
const readme = readFileSync(join(root, 'README.md'), 'utf8')

const Headers = z.record(z.string(), z.string())
const Fixture = z.strictObject({
  request: z.strictObject({ path: z.string(), headers: Headers, payload: z.json() }),
  expect: z.strictObject({ decision: z.enum(['accept', 'skip']), actions: z.array(AgentResult) }),
})
const Captured = z.object({ headers: Headers, body: z.json() })
type Request = { headers: Record<string, string>; payload: JsonValue }

function readAll<T>(schema: z.ZodType<T>, folder: string): (T & { name: string })[] {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  return names.map((name) => ({ ...schema.parse(JSON.parse(readFileSync(join(folder, name), 'utf8'))), name }))
}

const fixturesOf = (module: string) => readAll(Fixture, join(root, `${basename(module, '.ts')}.fixtures`))

/** The match that the README tells to configure. */
function toDocumentedMatch(module: string): Match {
  const row = readme.split('\n').find((line) => line.startsWith(`| [${module}](${module}) |`))
  const [, code = '{}'] = /`(\{.*\})`/.exec(row ?? '') ?? []
  return z.strictObject({ match: Match.default({}) }).parse(JSON.parse(code)).match
}

let transforms: ReadonlyMap<string, Transform>
beforeAll(async () => {
  transforms = await loadTransforms({ root, refs: modules.map((module) => ({ module })), timeoutMs: 5000 })
})

/** `match`: the README's, or every event of the path, so that the transform alone decides. */
async function run(module: string, { headers, payload }: Request, match?: Match): Promise<Decision> {
  const path = toDocumentedMatch(module).path ?? ''
  const generation = createGeneration({
    config: Config.parse({ hooks: { enabled: true, token: 'hook-secret', allowedSessionKeyPrefixes: ['hook:'] } }),
    mappings: [{ ...Mapping.parse({ match: match ?? { path }, transform: { module } }), id: module }],
    transforms,
  })
  const sender = detectSource(headers)
  const event = sender === undefined ? undefined : toEvent(sender, { headers, body: toJsonBody(payload) })
  const known = {
    ...(sender === undefined ? {} : { source: sender.source }),
    ...(event === undefined ? {} : { event }),
  }
  return decideOn(generation, toTestDelivery(path, payload, { headers, ...known }))
}

function toActions(decision: Decision): AgentAction[] {
  const actions = decision.kind === 'accept' ? decision.actions.map(({ action }) => action) : []
  return actions.map((action) => AgentAction.parse(action))
}

/** What stands where a field is missing: a word, nothing behind a label or a separator, brackets around nothing, empty lines. */
const holes = [
  /\b(undefined|null|NaN)\b|\[object|Invalid Date/,
  /^[\w -]*: *$/m,
  /[·,] *$/m,
  /\(\)|<>|""/,
  /^\s|\s$|\n{3}/,
]
const isHoled = (text: string) => holes.some((hole) => hole.test(text))

/** What a message says in its own words: a sender may well write "undefined". */
function toOwnWords(message: string, payload: JsonValue): string {
  const texts = toTexts(payload).map((text) => text.replaceAll('\r\n', '\n').trim())
  return texts.filter(isHoled).reduce((rest, text) => rest.replaceAll(text, '…'), message)
}

function toTexts(value: JsonValue): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(toTexts) : []
}

function expectNoHoles(decision: Decision, payload: JsonValue): void {
  for (const { message, name = '', sessionKey } of toActions(decision)) {
    expect([message, name].filter((text) => isHoled(toOwnWords(text, payload)))).toEqual([])
    expect(sessionKey).toMatch(/^hook:[a-z]+:[^\s:]+/)
    expect(sessionKey).not.toMatch(/undefined|null|\[object/)
  }
}

describe.each(modules)('the bundled transform %s', (module) => {
  const fixtures = fixturesOf(module)

  test('is one documented default export that imports nothing but hookloom', () => {
    const text = readFileSync(join(root, module), 'utf8')
    expect(text).toMatch(/^\/\*\* [A-Z].*\. \*\/\nimport \{ defineTransform \} from 'hookloom'\n/)
    expect([...text.matchAll(/\bimport\b|\brequire\b/g)]).toHaveLength(1)
    expect([...text.matchAll(/^export /gm)]).toHaveLength(1)
    expect(transforms.get(`${module}#`)?.problem).toBeUndefined()
  })

  test('has fixtures of both kinds, sent to the path that the README names', () => {
    expect(new Set(fixtures.map((fixture) => fixture.expect.decision))).toEqual(new Set(['accept', 'skip']))
    expect(new Set(fixtures.map(({ request }) => request.path))).toEqual(new Set([toDocumentedMatch(module).path]))
  })

  test.each(fixtures)('does to the request of $name what the fixture says', async ({ request, expect: expected }) => {
    const decision = await run(module, request)
    expect(decision.kind).toBe(expected.decision)
    expect(toActions(decision)).toEqual(expected.actions.map((action) => AgentAction.parse(action)))
    expectNoHoles(decision, request.payload)
  })

  test.each(fixtures.filter((fixture) => fixture.expect.decision === 'accept'))(
    'gets the request of $name under the match that the README names',
    async ({ request }) => {
      expect((await run(module, request, toDocumentedMatch(module))).kind).toBe('accept')
    },
  )

  test.each([{}, [], 'text', 1, { action: 'constructor', type: 'constructor', triggerEvent: '__proto__' }])(
    'skips %j, which is nobody’s event',
    async (payload) => {
      expect((await run(module, { headers: {}, payload })).kind).toBe('skip')
    },
  )

  test('takes no other sender’s event for its own, and never fails on one', async () => {
    const { path } = toDocumentedMatch(module)
    // Grafana's alerts are Prometheus' alerts with more to them
    const isAlike = (other: string) =>
      other === path || /^(grafana|alertmanager) (grafana|alertmanager)$/.test(`${path} ${other}`)
    for (const other of modules.filter((name) => name !== module)) {
      for (const { name, request } of fixturesOf(other)) {
        const { kind } = await run(module, request)
        const fitting = isAlike(request.path) ? ['accept', 'skip'] : ['skip']
        expect([other, name, fitting.includes(kind)]).toEqual([other, name, true])
      }
    }
  })
})

describe('the Slack transform', () => {
  const said = { type: 'message', user: 'U0MIRA', channel: 'C0KITCHEN', ts: '1772528400.000100', text: 'Tea?' }
  const authorizations = [
    { user_id: 'U0AGENT', is_bot: true },
    { user_id: 'U0OWNER', is_bot: false },
  ]
  const send = async (event: Record<string, JsonValue>, over: Record<string, JsonValue> = {}) => {
    const body = { type: 'event_callback', team_id: 'T0LEAFWORKS', api_app_id: 'A0HOOKLOOM', authorizations, ...over }
    return (await run('slack-message.ts', { headers: {}, payload: { ...body, event: { ...said, ...event } } })).kind
  }

  test.each([
    { bot_id: 'B0AGENT' },
    { app_id: 'A0HOOKLOOM' },
    { user: 'U0AGENT' },
    { user: 'USLACKBOT' },
    { subtype: 'bot_message' },
    { subtype: 'message_changed' },
    { subtype: 'channel_join' },
    { edited: { user: 'U0MIRA', ts: '1772528460.000000' } },
    { type: 'reaction_added' },
    { text: ' \n' },
  ])('does not answer a message with %j', async (event) => {
    expect(await send(event)).toBe('skip')
  })

  test.each([{}, { type: 'app_mention' }, { subtype: 'thread_broadcast' }, { app_id: 'A0OTHER' }, { user: 'U0OWNER' }])(
    'hears a person whose message has %j',
    async (event) => {
      expect(await send(event)).toBe('accept')
    },
  )

  test('hears nothing outside of an event callback', async () => {
    expect(await send({}, { type: 'url_verification' })).toBe('skip')
  })
})

describe('the Stripe transform', () => {
  test.each([
    ['usd', 1999, '19.99 USD'],
    ['jpy', 1999, '1999 JPY'],
    ['kwd', 5120, '5.120 KWD'],
    ['usd', 0, '0.00 USD'],
  ])('says an amount in %s of %d as %s', async (currency, amount, words) => {
    const invoice = { id: 'in_1', number: 'N-1', currency, amount_paid: amount, amount_remaining: 0, attempt_count: 1 }
    const payload = { type: 'invoice.paid', livemode: true, data: { object: invoice } }
    const [action] = toActions(await run('stripe-invoice.ts', { headers: {}, payload }))
    expect(action?.message).toBe(`Invoice N-1: ${words} paid\nhttps://dashboard.stripe.com/invoices/in_1`)
  })
})

describe('the alert transforms', () => {
  test.each(['alertmanager-alert.ts', 'grafana-alert.ts'])(
    '%s names a session by the group, however long its key is',
    async (module) => {
      const alert = { status: 'firing', labels: { alertname: 'A' }, startsAt: '2026-03-03T09:00:00Z', endsAt: '' }
      const keyOf = async (groupKey: string) => {
        const payload = { status: 'firing', groupKey, alerts: [alert] }
        return toActions(await run(module, { headers: {}, payload }))[0]?.sessionKey
      }
      const long = `{}:{pot="${'x'.repeat(3000)}"}\n`
      expect(await keyOf(long)).toBe(await keyOf(long))
      expect(await keyOf(long)).not.toBe(await keyOf(`${long}.`))
      expect((await keyOf(long))?.length).toBeLessThan(100)
    },
  )
})

test('the README lists the bundled transforms and no other', () => {
  const listed = [...readme.matchAll(/^\| \[([\w-]+\.ts)\]/gm)].map(([, name]) => name)
  expect(listed.toSorted()).toEqual(modules.toSorted())
})

const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''
const senders = [...new Set(modules.map((module) => toDocumentedMatch(module).path ?? ''))].filter(
  (sender) => corpus === '' || existsSync(join(corpus, sender)),
)

describe.skipIf(corpus === '')('real payloads (skipped: HOOKLOOM_CORPUS names no folder)', () => {
  test.each(senders)(
    'of %s become messages without holes, or are skipped, and some become a message',
    async (sender) => {
      let accepted = 0
      for (const { name, headers, body: payload } of readAll(Captured, join(corpus, sender))) {
        for (const module of modules.filter((name) => toDocumentedMatch(name).path === sender)) {
          const decision = await run(module, { headers, payload })
          expect([name, module, decision.kind]).not.toEqual([name, module, 'park'])
          expect(['accept', 'skip']).toContain(decision.kind)
          expectNoHoles(decision, payload)
          accepted += toActions(decision).length
        }
      }
      expect(accepted).toBeGreaterThan(0)
    },
  )

  test('are there for most of the senders', () => {
    expect(senders.length).toBeGreaterThan(4)
  })
})
