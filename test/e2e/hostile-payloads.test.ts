// Payloads of wake and agent: a known field with a wrong type is refused by name, and everything else is ignored.
import { beforeAll, describe, expect, test } from 'vitest'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type Inside, readStore, startInside } from './inside.ts'
import { post } from './wire.ts'

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({
    config: {
      hooks: { allowedAgentIds: ['main'], allowRequestSessionKey: true, allowedSessionKeyPrefixes: ['hook:'] },
      agents: { defaults: { models: ['openai/small'] } },
      models: { aliases: { little: 'openai/small', large: 'openai/large' } },
    },
  })
})

const notText = ['', '  ', '\n', 0, 1, true, null, [], ['x'], {}]
const wrong: Record<string, readonly unknown[]> = {
  name: notText,
  agentId: notText,
  sessionKey: notText,
  sessionMode: ['PERSISTENT', 'forever', ...notText],
  to: notText,
  model: notText,
  wakeMode: ['later', 'NOW', 'next_heartbeat', ...notText],
  deliver: ['true', 'false', 0, 1, null, [], {}],
  channel: ['sms', 'Slack', 'last ', '__proto__', 'constructor', ...notText],
  thinking: ['max', 'HIGH', 'none', ...notText],
  timeoutSeconds: [0, -0, -1, 86_400.5, 86_401, 1e21, '60', true, null, [], {}],
}
const right: Record<string, readonly unknown[]> = {
  name: ['x', 'n'.repeat(5_000), 'a\u0000b', '‮'],
  agentId: ['main', ' main '],
  sessionMode: ['isolated'],
  sessionKey: ['hook:a', 'hook:B', ` hook:${'k'.repeat(500)} `],
  to: ['+15550100', 'C0123'],
  model: ['openai/small', 'little'],
  wakeMode: ['now', 'next-heartbeat'],
  deliver: [true, false],
  channel:
    `last whatsapp telegram discord slack mattermost signal imessage msteams matrix webhook console imsg teams`.split(
      ' ',
    ),
  timeoutSeconds: [0.001, 1, 60, 86_400],
}
const listPairs = (table: Record<string, readonly unknown[]>) =>
  Object.entries(table).flatMap(([field, values]) => values.map((value) => [field, value] as const))
const show = (value: unknown) => JSON.stringify(value).slice(0, 40)

describe('payloads of the hook agent', () => {
  test.each(listPairs(wrong).map(([field, value]) => [field, show(value), value] as const))(
    'the field %s with the value %s is refused by name',
    async (field, _, value) => {
      const reply = await post(gateway.port, '/hooks/agent', { message: 'x', [field]: value })
      expect(readVerdict(reply)).toBe('payload-invalid')
      expect(reply.body).toContain(field)
    },
  )

  test.each(listPairs(right).map(([field, value]) => [field, show(value), value] as const))(
    'the field %s with the value %s is accepted',
    async (field, _, value) => {
      // only the field is under test, so no reply needs to be sent
      const rest = field === 'deliver' ? {} : { deliver: false }
      expect(readVerdict(await post(gateway.port, '/hooks/agent', { message: 'x', ...rest, [field]: value }))).toBe(
        'accepted',
      )
    },
  )

  test.each([...notText, undefined].map((value) => [String(JSON.stringify(value)), value] as const))(
    'a message that is %s is refused by the hook agent',
    async (_, message) => {
      expect(readVerdict(await post(gateway.port, '/hooks/agent', { message }))).toBe('payload-invalid')
    },
  )

  test('a timeout that is too large for a number is refused', async () => {
    expect(readVerdict(await post(gateway.port, '/hooks/agent', '{"message":"x","timeoutSeconds":1e999}'))).toBe(
      'payload-invalid',
    )
  })

  test.each([
    ['sessionKey', 'main', 'session-key-denied'],
    ['sessionKey', 'HOOK:a', 'session-key-denied'],
    ['sessionKey', 'agent:main:main', 'session-key-denied'],
    ['sessionKey', 'hook:a\nb', 'session-key-denied'],
    ['sessionKey', `hook:${'k'.repeat(512)}`, 'session-key-denied'],
    ['agentId', 'other', 'agent-denied'],
    ['agentId', '*', 'agent-denied'],
    ['agentId', '__proto__', 'agent-denied'],
    ['model', 'openai/large', 'model-denied'],
    ['model', 'large', 'model-denied'],
    ['model', 'constructor', 'model-denied'],
  ] as const)('the field %s with the value %j is denied by policy', async (field, value, code) => {
    expect(
      readVerdict(await post(gateway.port, '/hooks/agent', { message: 'x', deliver: false, [field]: value })),
    ).toBe(code)
  })

  test('a session key in a payload is refused unless the operator allows one', async () => {
    const { port } = await startInside()
    const withKey = { message: 'x', deliver: false, sessionKey: 'hook:a' }
    expect(readVerdict(await post(port, '/hooks/agent', withKey))).toBe('session-key-denied')
    expect(readVerdict(await post(port, '/hooks/agent', { message: 'x', deliver: false }))).toBe('accepted')
  })
})

describe('payloads of the hook wake', () => {
  test.each([...notText, undefined].map((value) => [String(JSON.stringify(value)), value] as const))(
    'a text that is %s is refused by the hook wake',
    async (_, text) => {
      const reply = await post(gateway.port, '/hooks/wake', { text })
      expect(readVerdict(reply)).toBe('payload-invalid')
      expect(reply.body).toContain('text')
    },
  )

  test.each(['later', 'NOW', '', 1, null, [], {}, true])('the mode %j is refused by the hook wake', async (mode) => {
    expect(readVerdict(await post(gateway.port, '/hooks/wake', { text: 'x', mode }))).toBe('payload-invalid')
  })

  test.each(['now', 'next-heartbeat', undefined])(
    'the mode %j is accepted by the hook wake, and the answer has the mode',
    async (mode) => {
      const reply = await post(gateway.port, '/hooks/wake', { text: 'x', mode })
      expect(readVerdict(reply)).toBe('accepted')
      expect(JSON.parse(reply.body)).toMatchObject({ mode: mode ?? 'now' })
    },
  )

  test.each(['[]', '[{"text":"x"}]', '"text"', '1', 'null', 'true'])(
    'the body %s is refused by the hooks wake and agent',
    async (body) => {
      expect(readVerdict(await post(gateway.port, '/hooks/wake', body))).toBe('payload-invalid')
      expect(readVerdict(await post(gateway.port, '/hooks/agent', body))).toBe('payload-invalid')
    },
  )
})

describe('texts that are almost JSON', () => {
  const toBytes = (...values: number[]) => new Uint8Array(values)
  const buildNested = (levels: number) => `{"text":"x","deep":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`

  test.each<[string, string | Uint8Array]>([
    ['nothing', ''],
    ['white space', ' \n\t'],
    ['half an object', '{"text":"x"'],
    ['two objects in a row', '{"text":"x"}{}'],
    ['single quotes', "{'text':'x'}"],
    ['a trailing comma', '{"text":"x",}'],
    ['a comment', '{"text":"x"/**/}'],
    ['NaN', '{"text":"x","n":NaN}'],
    ['a line break in a string', '{"text":"a\nb"}'],
    ['a form', 'text=x'],
    ['a byte that is invalid in UTF-8', Buffer.concat([Buffer.from('{"text":"'), toBytes(0xff), Buffer.from('"}')])],
    ['an overlong slash', Buffer.concat([Buffer.from('{"text":"'), toBytes(0xc0, 0xaf), Buffer.from('"}')])],
    [
      'a surrogate encoded in UTF-8',
      Buffer.concat([Buffer.from('{"text":"'), toBytes(0xed, 0xa0, 0x80), Buffer.from('"}')]),
    ],
    ['UTF-16', Buffer.from('{"text":"x"}', 'utf16le')],
    ['65 levels', buildNested(65)],
    ['a hundred thousand brackets', '['.repeat(100_000)],
    ['a hundred thousand levels', '['.repeat(100_000) + ']'.repeat(100_000)],
  ])('the text %s is not JSON', async (_, body) => {
    expect(readVerdict(await post(gateway.port, '/hooks/wake', body))).toBe('body-invalid')
  })

  test.each([
    ['64 levels', buildNested(64)],
    ['a byte order mark', '\uFEFF{"text":"x"}'],
    ['a repeated name', '{"text":1,"text":"x"}'],
    ['half a surrogate pair', String.raw`{"text":"\ud800"}`],
    ['a string of control characters', String.raw`{"text":"\u0000\u001b[2J\u202e"}`],
    ['unknown fields', '{"text":"x","kind":"agent","allowUnsafeExternalContent":true,"ok":[1,{"a":null}]}'],
  ])('the text %s is JSON', async (_, body) => {
    expect(readVerdict(await post(gateway.port, '/hooks/wake', body))).toBe('accepted')
  })

  test('text after a NUL character is kept', async () => {
    const id = readDeliveryId(await post(gateway.port, '/hooks/wake', String.raw`{"text":"a\u0000b"}`))
    const events = await readStore(gateway.dir, (reader) => reader.events({ limit: 1_000 }))
    expect(events.find(({ deliveryId }) => deliveryId === id)?.text).toMatch(/^a.b$/s)
  })

  test('a request cannot turn off the boundary around its text', async () => {
    const body = { text: 'x', allowUnsafeExternalContent: true }
    const id = readDeliveryId(await post(gateway.port, '/hooks/wake', body))
    const events = await readStore(gateway.dir, (reader) => reader.events({ limit: 1_000 }))
    expect(events.find(({ deliveryId }) => deliveryId === id)?.trusted).toBe(false)
  })
})
