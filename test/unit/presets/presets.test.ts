// Tests every bundled preset with its own fixtures, and with the real payloads in the folder that HOOKLOOM_CORPUS names.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { presets } from '../../../presets/index.ts'
import { ConfigSchema } from '../../../src/gateway/config/keys.ts'
import { findMappingIssues } from '../../../src/model/config/rules.ts'
import { isJsonObject, type JsonValue } from '../../../src/base/json.ts'
import { Mapping } from '../../../src/core/model/mapping.ts'
import type { Preset } from '../../../src/model/preset.ts'
import type { Generation } from '../../../src/gateway/generation/generation.ts'
import { createGeneration } from '../../../src/gateway/generation/generation.ts'
import { decide } from '../../../src/core/mapping/pipeline.ts'
import { createVerifier } from '../../../src/gateway/proofs/verify.ts'
import { buildDelivery, toLocalHead } from '../../../src/core/mapping/delivery.ts'
import { builtInSenders } from '../../../src/gateway/built-in.ts'

const { schemeNames } = builtInSenders

const folder = join(import.meta.dirname, '../../../presets')
const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''
const bundled: readonly Preset[] = presets
/** The options with which a preset requires a proof, for the presets that need other options than `secret`. */
const keys: Record<string, object> = {
  notion: { handed: true },
  discord: { publicKey: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a' },
  twilio: { secret: 'c2VjcmV0', publicUrl: 'https://gateway.example/hooks/twilio' },
}
const keysOf = (name: string): object => keys[name] ?? { secret: 'c2VjcmV0' }
const signed = bundled.filter(({ name }) => name !== 'gmail' && name !== 'imap')
const namesOf = (list: readonly Preset[]) => list.map(({ name }) => name)

function findPreset(name: string): Preset {
  const preset = bundled.find((candidate) => candidate.name === name)
  if (preset === undefined) throw new Error(`no preset ${name}`)
  return preset
}

const config = ConfigSchema.parse({
  hooks: { enabled: true, token: 'hook-secret', allowedSessionKeyPrefixes: ['hook:'] },
})

function mappingsOf(name: string, options: object = {}) {
  const preset = findPreset(name)
  const { mappings, maxBodyBytes } = preset.build(preset.options.parse(options))
  return mappings.map((mapping, index) => ({
    ...Mapping.parse(mapping),
    id: mapping.id ?? `${name}-${index + 1}`,
    maxBodyBytes,
  }))
}

const toGeneration = (name: string, options?: object): Generation =>
  createGeneration({ senders: builtInSenders, config, mappings: mappingsOf(name, options), transforms: new Map() })

/** The decision on a request with a valid signature. Its body is read as JSON, whatever its media type. */
async function decideOn(name: string, headers: Record<string, string>, payload: JsonValue) {
  const generation = toGeneration(name, keysOf(name))
  const hook = generation.findHook(name)
  const head = toLocalHead(hook, {
    prefix: '/hooks',
    path: name,
    headers: { ...headers, 'content-type': 'application/json' },
    verifiedBy: hook.signed[0]?.verifier.source,
  })
  const body = Buffer.from(JSON.stringify(payload))
  return decide(buildDelivery(head, body, { hook, id: 'd-1', receivedAt: 0 }), { hook, newId: () => 'id' })
}

const Fixture = z.strictObject({
  request: z.strictObject({ path: z.string(), headers: z.record(z.string(), z.string()), payload: z.json() }),
  expect: z.strictObject({ decision: z.string(), actions: z.array(z.record(z.string(), z.json())) }),
})

const fixturesOf = (name: string) =>
  readdirSync(join(folder, name, 'fixtures')).map((file) => ({
    file,
    ...Fixture.parse(JSON.parse(readFileSync(join(folder, name, 'fixtures', file), 'utf8'))),
  }))

const fixtures = signed.flatMap(({ name }) => fixturesOf(name).map((fixture) => ({ name, ...fixture })))

/** Gaps in a message: a missing value, a label without a value, a placeholder, or JSON that does not follow a line that ends with "as JSON:". */
function findFlaws(message: string, payload: JsonValue): string[] {
  const texts = toTexts(payload)
  const words = message.replace(/, as JSON:\n.*/, '')
  const flaws = /\b(undefined|null|NaN)\b|^[^\n:]+:[ \t]*$|\{\{|[[{]"/gm
  return [...words.matchAll(flaws)].map(([found]) => found).filter((found) => !texts.includes(found))
}

/** Every text of a payload, which a message may contain. */
function toTexts(value: JsonValue): string {
  if (typeof value === 'string') return `${value}\n`
  if (Array.isArray(value)) return value.map(toTexts).join('')
  return isJsonObject(value) ? Object.values(value).map(toTexts).join('') : ''
}

describe('bundled presets', () => {
  test('every preset is a folder with its name, a page and fixtures, and is listed', () => {
    const folders = readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? entry.name : [],
    )
    expect(namesOf(bundled)).toEqual(folders.toSorted())
    for (const name of folders) {
      expect(readFileSync(join(folder, name, 'README.md'), 'utf8')).toMatch(
        new RegExp(`^# ${name}\\n[^]*\\n## Set up\\n`),
      )
      expect(fixturesOf(name).length).toBeGreaterThan(1)
    }
  })

  test.each(fixtures)('the fixture $file of $name passes', async ({ name, request, expect: expected }) => {
    const decision = await decideOn(name, request.headers, request.payload)
    expect(decision.kind).toBe(expected.decision)
    const actions = decision.kind === 'accept' ? decision.actions.map(({ action }) => action) : []
    expect(actions).toEqual(expected.actions.map((action) => expect.objectContaining(action)))
    expect(actions).toHaveLength(expected.actions.length)
  })

  test.each(fixtures.filter(({ name }) => name !== 'generic' && name !== 'mcp-events'))(
    'the text that $name makes from $file has no gaps',
    async ({ name, request }) => {
      const decision = await decideOn(name, request.headers, request.payload)
      const actions = decision.kind === 'accept' ? decision.actions.map(({ action }) => action) : []
      for (const action of actions) {
        expect(action.kind === 'agent' && findFlaws(action.message, request.payload)).toEqual([])
      }
    },
  )

  test.each(namesOf(signed))('the preset %s has a fixture for every mapping', async (name) => {
    const taken = new Set<string | undefined>()
    for (const { request } of fixturesOf(name)) {
      taken.add((await decideOn(name, request.headers, request.payload)).mappingId)
    }
    expect(
      mappingsOf(name)
        .map(({ id }) => id)
        .filter((id) => !taken.has(id)),
    ).toEqual([])
  })

  test.each(namesOf(signed))('the preset %s requires a proof only if it has a key', (name) => {
    const schemes = mappingsOf(name, keysOf(name)).map(({ verify }) => verify?.scheme)
    expect(schemes.filter((scheme) => scheme === undefined || !schemeNames.includes(scheme))).toEqual([])
    expect(mappingsOf(name).filter(({ verify }) => verify !== undefined)).toEqual([])
  })

  test.each(namesOf(signed))(
    'the preset %s works on any path, and two uses with different paths share no mapping id',
    (name) => {
      const here = mappingsOf(name)
      const there = mappingsOf(name, { path: 'in/there' })
      expect(new Set(here.map(({ match }) => match.path))).toEqual(new Set([name]))
      expect(new Set(there.map(({ match }) => match.path))).toEqual(new Set(['in/there']))
      const ids = [...here, ...there].map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
    },
  )

  test.each(namesOf(signed))('the preset %s refuses a blank key and an unknown option', (name) => {
    const { options } = findPreset(name)
    const key = name === 'discord' ? 'publicKey' : 'secret'
    expect(options.safeParse(keysOf(name)).success).toBe(true)
    for (const wrong of [{ [key]: '' }, { [key]: ' ' }, { path: '' }, { sekret: 'x' }]) {
      expect(options.safeParse({ ...keysOf(name), ...wrong }).success).toBe(false)
    }
  })

  test.each(namesOf(signed))('the preset %s has its own prefix for session keys', (name) => {
    for (const mapping of mappingsOf(name, keysOf(name))) {
      expect(mapping.sessionKey?.startsWith(`hook:${name}:`)).toBe(true)
      expect(findMappingIssues(mapping, config, [])).toEqual([])
    }
  })

  test.each(namesOf(bundled))(
    'the preset %s has instructions, which the operator can replace but not leave blank',
    (name) => {
      const listInstructions = (options: object) => mappingsOf(name, options).map(({ instructions }) => instructions)
      for (const own of listInstructions({}))
        expect(own).toMatch(/^(Say|Summarize) in (a few|one or two) sentences |^Summarize the mail in /)
      expect(new Set(listInstructions({ instructions: 'Open a ticket.' }))).toEqual(new Set(['Open a ticket.']))
      expect(findPreset(name).options.safeParse({ instructions: ' ' }).success).toBe(false)
    },
  )

  test('a preset with two secrets passes both to its verifier', () => {
    const [mapping] = mappingsOf('github', { secrets: ['old', 'new'] })
    expect(mapping?.verify).toMatchObject({ scheme: 'github', secrets: ['old', 'new'] })
  })

  test('the GitLab preset uses the signing token if the option says so', () => {
    expect(mappingsOf('gitlab', { secret: 'x' })[0]?.verify?.scheme).toBe('gitlab-token')
    expect(mappingsOf('gitlab', { secret: 'x', scheme: 'gitlab-signing' })[0]?.verify?.scheme).toBe('gitlab-signing')
  })

  test('the Grafana preset includes the time in the signature if the option names its header', () => {
    const [mapping] = mappingsOf('grafana', { secret: 'x', header: 'X-Sum', timestampHeader: 'X-Time' })
    expect(mapping?.verify).toMatchObject({ header: 'x-sum', timestamp: { header: 'x-time', unit: 's' } })
  })

  test('the Notion preset accepts a secret from a handshake only if the option says so', () => {
    const tools = { fetch: () => Promise.reject(new Error('nothing is fetched')), now: () => 0 }
    const [mapping] = mappingsOf('notion', { handed: true })
    expect(mapping?.verify && createVerifier(mapping.verify, { ...tools, senders: builtInSenders }).scheme).toBe(
      'notion',
    )
    expect(mappingsOf('notion', { handed: false })[0]?.verify).toBeUndefined()
  })

  test('the Twilio preset requires the signed URL in addition to the secret', () => {
    expect(findPreset('twilio').options.safeParse({ secret: 'x' }).success).toBe(false)
    expect(findPreset('twilio').options.safeParse({}).success).toBe(true)
  })
})

const Captured = z.object({ headers: z.record(z.string(), z.string()), body: z.json() })

describe.skipIf(corpus === '')('a corpus of real payloads (skipped: HOOKLOOM_CORPUS names no folder)', () => {
  /** The minimum number of payloads in the corpus that the preset matches. */
  const leastTaken: Record<string, number> = {
    alertmanager: 2,
    calendly: 4,
    github: 5,
    gitlab: 5,
    grafana: 2,
    linear: 2,
    notion: 3,
    sentry: 1,
    shopify: 5,
    slack: 1,
    stripe: 2,
    twilio: 4,
  }

  test.each(Object.keys(leastTaken))('the payloads of %s become messages without gaps', async (name) => {
    const at = join(corpus, name)
    expect(existsSync(at)).toBe(true)
    let taken = 0
    for (const file of readdirSync(at).filter((entry) => entry.endsWith('.json'))) {
      const { headers, body } = Captured.parse(JSON.parse(readFileSync(join(at, file), 'utf8')))
      const decision = await decideOn(name, headers, body)
      expect([file, decision.kind]).toEqual([file, expect.stringMatching(/^(accept|skip)$/)])
      if (decision.kind !== 'accept') continue
      taken += 1
      for (const { action } of decision.actions) {
        expect([file, action.kind === 'agent' && findFlaws(action.message, body)]).toEqual([file, []])
      }
    }
    expect(taken).toBeGreaterThanOrEqual(leastTaken[name] ?? 1)
  })
})
