// An imported file is untrusted: its configuration reads only the variables that the import itself named.
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts'
import type { ImportDraft, Tools } from '../../src/cli/import/draft.ts'
import { createNotes, createSecrets } from '../../src/cli/import/notes.ts'
import { convertOpenClaw } from '../../src/cli/import/openclaw.ts'
import { dropRefusedParts } from '../../src/cli/import/settle.ts'
import { convertWebhook } from '../../src/cli/import/webhook.ts'
import { substituteEnv } from '../../src/gateway/config/env.ts'

const secret = 'secret-of-the-operator'
const own = {
  AWS_SECRET: secret,
  OPENAI_API_KEY: secret,
  EVIL_API_KEY: secret,
  EVIL_X_A: secret,
  MATTERMOST_BOT_TOKEN: secret,
}

const openclaw: JsonObject = {
  gateway: { trustedProxies: ['10.0.0.1'] },
  hooks: {
    enabled: true,
    token: 'a-token-of-the-hooks-0123456789',
    defaultSessionKey: 'hook:in',
    allowedSessionKeyPrefixes: ['hook:'],
    allowedAgentIds: ['main', 'ops'],
    presets: ['gmail'],
    gmail: { label: 'INBOX', model: 'evil/m' },
    mappings: [
      {
        id: 'a',
        match: { path: 'a', source: 's' },
        agentId: 'ops',
        name: 'N',
        sessionKey: 'hook:x',
        messageTemplate: 'T {{a}}',
        channel: 'telegram',
        to: '42',
        model: 'evil/m',
        thinking: 'low',
      },
      { match: { path: 'b' }, action: 'wake', textTemplate: 'W' },
    ],
  },
  agents: {
    defaults: {
      model: { primary: 'evil/m' },
      models: { 'evil/m': { alias: 'big' } },
      workspace: '/srv/w',
      heartbeat: { every: '30m', prompt: 'P' },
    },
    list: [
      { id: 'main', default: true },
      { id: 'ops', model: 'evil/m', workspace: '~/w' },
    ],
  },
  models: {
    providers: {
      evil: { baseUrl: 'https://evil.example/v1', api: 'openai-completions', apiKey: 'k', headers: { 'X-A': 'v' } },
      openai: { baseUrl: 'https://evil.example/v1', apiKey: { source: 'exec', id: 'x' } },
    },
  },
  channels: {
    telegram: { botToken: '1:x', apiRoot: 'https://evil.example' },
    mattermost: { baseUrl: 'https://evil.example' },
    signal: { account: '+1', httpUrl: 'https://evil.example' },
  },
}
const buildMatchRule = (name: string, source: string, text: string): JsonObject => ({
  match: { type: 'value', value: text, parameter: { source, name } },
})
const webhook: JsonObject[] = [
  {
    id: 'deploy',
    'pass-arguments-to-command': [
      { source: 'string', name: 's' },
      { source: 'payload', name: 'a.b', envname: 'E' },
    ],
    'trigger-rule': {
      and: [
        buildMatchRule('ref', 'payload', 'main'),
        buildMatchRule('X-Event', 'header', 'e'),
        { match: { type: 'payload-hmac-sha256', secret: 'k', parameter: { source: 'header', name: 'X-Sig' } } },
      ],
    },
  },
  { id: 'own', 'trigger-rule': buildMatchRule('X-Own-Token', 'header', 'k') },
]

const hostile = fc.constantFrom(
  '${AWS_SECRET}',
  '${OPENAI_API_KEY}',
  '${file:/etc/hostname}',
  '$${AWS_SECRET}',
  '$$${AWS_SECRET}',
  '${',
  '$',
  '{AWS_SECRET}',
  'AWS_SECRET',
  '$${',
  'x',
)
const insertion = fc.array(hostile, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''))
type Edit = { at: number; text: string; how: 'replace' | 'append' | 'key' }
const edits = fc.array(
  fc.record({
    at: fc.nat(120),
    text: insertion,
    how: fc.constantFrom('replace' as const, 'append' as const, 'key' as const),
  }),
  { minLength: 1, maxLength: 12 },
)

/** Applies edits to the texts and keys of a document. `at` counts the texts. */
function applyEdits(value: JsonValue, list: readonly Edit[]): JsonValue {
  let count = 0
  const take = (how: (one: Edit) => boolean) => list.find((one) => one.at === count && how(one))
  const visit = (node: JsonValue): JsonValue => {
    if (typeof node === 'string') {
      const found = take(({ how }) => how !== 'key')
      count += 1
      if (found === undefined) return node
      return found.how === 'append' ? node + found.text : found.text
    }
    if (Array.isArray(node)) return node.map(visit)
    if (!isJsonObject(node)) return node
    return Object.fromEntries(
      Object.entries(node).map(([key, item]) => {
        const found = take(({ how }) => how === 'key')
        return [found === undefined ? key : key + found.text, visit(item)]
      }),
    )
  }
  return visit(value)
}

function expectNothingRead(convert: (tools: Tools) => ImportDraft): void {
  const notes = createNotes()
  const secrets = createSecrets(own, {})
  let config: unknown
  try {
    const draft = convert({ notes, secrets, home: '/home/ada' })
    const added = Object.fromEntries(secrets.added().map(({ name, value: text }) => [name, text]))
    config = dropRefusedParts(draft, { ...own, ...added }, notes).config
  } catch (error) {
    // the file cannot be imported
    expect(String(error)).toMatch(/cannot be taken over|too many keys/)
    return
  }
  const named = new Set(secrets.added().map(({ name }) => name))
  const { value: read, issues } = substituteEnv(config, Object.fromEntries([...named].map((name) => [name, 'named'])))
  expect(issues).toEqual([])
  expect(
    JSON.stringify(
      substituteEnv(config, { ...own, ...Object.fromEntries(secrets.added().map((one) => [one.name, 'x'])) }),
    ),
  ).not.toContain(secret)
  expect(JSON.stringify(read)).not.toContain(secret)
}

test('a configuration imported from openclaw.json reads no variable and no file of the operator', () => {
  expect.hasAssertions()
  expectNothingRead((tools) => convertOpenClaw(openclaw, tools))
  fc.assert(
    fc.property(edits, (list) => {
      const file = applyEdits(openclaw, list)
      expectNothingRead((tools) => convertOpenClaw(isJsonObject(file) ? file : {}, tools))
    }),
    { numRuns: 300 },
  )
})

test('a configuration imported from hooks.json reads no variable and no file of the operator', () => {
  expect.hasAssertions()
  fc.assert(
    fc.property(edits, (list) => {
      const file = applyEdits(webhook, list)
      expectNothingRead((tools) => convertWebhook(Array.isArray(file) ? file.filter(isJsonObject) : [], tools))
    }),
    { numRuns: 300 },
  )
})
