import { toJsonBody } from '../../../src/core/model/body.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import gmail from '../../../presets/gmail/preset.ts'
import { presets } from '../../../presets/index.ts'
import { ConfigSchema } from '../../../src/gateway/config/keys.ts'
import type { Delivery } from '../../../src/core/model/delivery.ts'
import { GmailPresetConfig } from '../../../src/model/config/gmail.ts'
import type { JsonValue } from '../../../src/base/json.ts'
import { Mapping } from '../../../src/core/model/mapping.ts'
import { decideOn } from '../core/mapping/decide.ts'
import { createGeneration } from '../../../src/gateway/generation/generation.ts'
import { builtInSenders } from '../../../src/gateway/built-in.ts'

const { recognise: recogniseSender } = builtInSenders

const folder = new URL('../../../presets/gmail/fixtures/', import.meta.url)
const Fixture = z.object({
  request: z.object({ path: z.string(), headers: z.record(z.string(), z.string()), payload: z.json() }),
  expect: z.object({ decision: z.string(), actions: z.array(z.record(z.string(), z.json())) }),
})

function toGeneration(options: object, config: object = {}) {
  const { mappings, maxBodyBytes } = gmail.build(gmail.options.parse(options))
  return createGeneration({
    senders: builtInSenders,
    config: ConfigSchema.parse({ hooks: { allowedSessionKeyPrefixes: ['hook:'] }, ...config }),
    mappings: mappings.map((mapping) => ({ ...Mapping.parse(mapping), id: mapping.id ?? 'gmail', maxBodyBytes })),
    transforms: new Map(),
  })
}

function toDelivery(payload: JsonValue, headers: Record<string, string> = {}): Delivery {
  const request = { method: 'POST', url: '/hooks/gmail', path: 'gmail', headers, query: {}, body: toJsonBody(payload) }
  const origin = {
    source: 'gmail',
    sender: recogniseSender({ headers, namedSource: 'gmail' }),
    event: undefined,
    verifiedBy: undefined,
    admitted: { token: true, signedFor: [] },
  }
  return { id: 'd-1', receivedAt: 0, ...request, ...origin }
}

const decideMails = (messages: JsonValue, options: object = {}) =>
  decideOn(toGeneration(options), toDelivery({ source: 'gmail', messages }))

describe('the gmail preset', () => {
  test('the gmail preset is bundled', () => {
    expect(presets.map(({ name }) => name)).toContain('gmail')
  })

  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  test.each(files)('the fixture %s of the gmail preset passes', async (file) => {
    const fixture = Fixture.parse(JSON.parse(readFileSync(new URL(file, folder), 'utf8')))
    const { payload, headers } = fixture.request
    const decision = await decideOn(toGeneration({}), toDelivery(payload, headers))
    expect(decision.kind).toBe(fixture.expect.decision)
    const actions = decision.kind === 'accept' ? decision.actions.map(({ action }) => action) : []
    expect(actions).toEqual(fixture.expect.actions)
  })

  test('every mail of a batch gets a separate session', async () => {
    const decision = await decideMails([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    const keys = decision.kind === 'accept' ? decision.actions.map(({ sessionKey }) => sessionKey) : []
    expect(keys).toEqual(['hook:gmail:a', 'hook:gmail:b', 'hook:gmail:c'])
  })

  test('the gmail preset works without hooks.allowRequestSessionKey', async () => {
    const decision = await decideMails([{ id: 'a' }])
    expect(decision.kind).toBe('accept')
  })

  test('the gmail preset is refused if the prefixes exclude its session key', async () => {
    const generation = toGeneration({}, { hooks: { allowedSessionKeyPrefixes: ['mine:'] } })
    const decision = await decideOn(generation, toDelivery({ messages: [{ id: 'a' }] }))
    expect(decision.kind === 'refuse' && decision.problem.code).toBe('session-key-denied')
  })

  test('the gmail preset takes only its own path', async () => {
    const delivery = { ...toDelivery({ source: 'gmail', messages: [{ id: 'a' }] }), path: 'mail' }
    expect((await decideOn(toGeneration({}), delivery)).kind).toBe('skip')
  })

  test('the options of the gmail preset become fields of the action, and mails stay inside the boundary by default', async () => {
    const options = { model: 'acme/small', thinking: 'low', allowUnsafeExternalContent: true }
    const [plain, told] = [await decideMails([{ id: 'a' }]), await decideMails([{ id: 'a' }], options)]
    expect(plain).toMatchObject({ actions: [{ action: { allowUnsafeExternalContent: false } }] })
    expect(told).toMatchObject({ actions: [{ action: options }] })
  })

  test('the body limit of the gmail path is computed from maxBytes, and is at most 32 MiB', () => {
    const findLimit = (options: object, path = 'gmail') => toGeneration(options).findHook(path).maxBodyBytes
    expect(findLimit({})).toBe(6_819_200)
    expect(findLimit({ maxBytes: 1 })).toBe(100 * (3 + 8192))
    expect(findLimit({ maxBytes: 10_000_000 })).toBe(33_554_432)
    expect(findLimit({}, 'other')).toBe(262_144)
  })

  test('the gmail preset has the keys, defaults and refusals of hooks.gmail', () => {
    const bare = (schema: z.ZodType): unknown =>
      JSON.parse(
        JSON.stringify(z.toJSONSchema(schema, { io: 'input' }), (key, value) =>
          key === 'description' ? undefined : value,
        ),
      )
    expect(bare(gmail.options)).toEqual(bare(GmailPresetConfig))
    expect(gmail.options.parse({})).toEqual(GmailPresetConfig.parse({}))
    for (const wrong of [{ model: ' ' }, { instructions: '' }, { maxBytes: 0 }, { thinking: 'deep' }, { more: 1 }]) {
      expect(gmail.options.safeParse(wrong).success).toBe(false)
      expect(GmailPresetConfig.safeParse(wrong).success).toBe(false)
    }
  })
})
