import { readdirSync, readFileSync } from 'node:fs'
import { chmod, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type GenerationParts, runFixture } from '../../../../src/gateway/replay/fixtures.ts'
import {
  type FixtureFile,
  parseFixture,
  readFixtures,
  updateFixture,
} from '../../../../src/gateway/replay/fixture-files.ts'
import { loadTransforms } from '../../../inline-transforms.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { Mapping, type MappingInput } from '../../../../src/core/model/mapping.ts'
import { createConfigDir, writeFiles } from '../../core/transforms/stage.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const bundled = new URL('../../../../transforms', import.meta.url).pathname

async function createParts(
  root: string,
  mappings: readonly MappingInput[],
  hooks: object = {},
): Promise<GenerationParts> {
  const named = mappings.map((mapping, index) => ({ ...Mapping.parse(mapping), id: `m-${index + 1}` }))
  const refs = named.flatMap(({ transform }) => transform ?? [])
  const transforms = await loadTransforms({
    root,
    refs: refs.length > 0 ? refs : [{ module: 'x.ts' }],
    timeoutMs: 5000,
  })
  return {
    config: ConfigSchema.parse({ hooks: { enabled: true, token: 't', ...hooks } }),
    mappings: named,
    transforms,
    senders: builtInSenders,
  }
}

function toFile(fixture: object): FixtureFile {
  const parsed = parseFixture(JSON.stringify(fixture))
  if (typeof parsed === 'string') throw new Error(parsed)
  return { kind: 'fixture', name: 'one.json', file: 'one.json', fixture: parsed }
}

/** Runs one fixture of x.ts with this source. */
async function run(source: string, fixture: object, mapping: Partial<MappingInput> = {}, hooks: object = {}) {
  const { root } = await createConfigDir()
  await writeFiles(root, { 'x.ts': source })
  const parts = await createParts(root, [{ match: { path: 'x' }, transform: { module: 'x.ts' }, ...mapping }], hooks)
  return runFixture(parts, 'x.ts', toFile(fixture))
}

const request = { path: 'x', payload: { n: 1 } }
const hello = 'export default ({ payload }) => ({ message: `n is ${payload.n}`, name: "N" })'

test('a fixture compares only the fields of the answer that it names, and an update writes all of them', async () => {
  const source = 'export default ({ payload }) => ({ message: "m", response: { body: `n is ${payload.n}` } })'
  const expecting = (response: object) => ({ request, expect: { decision: 'accept', response } })
  expect(await run(source, expecting({ body: 'n is 1' }))).toMatchObject({ ok: true })
  expect(await run(source, expecting({ body: 'n is 2', status: 201 }))).toMatchObject({
    ok: false,
    diff: ['response.status: expected 201, got 200', 'response.body: expected "n is 2", got "n is 1"'],
  })
  expect(await run(hello, expecting({ body: 'x' }))).toMatchObject({
    diff: ['response.body: expected "x", got nothing'],
  })
  const { actual } = await run(source, expecting({ body: 'n is 2' }))
  const updated = updateFixture(JSON.stringify({ request }), actual ?? { decision: 'park', actions: [] })
  expect(JSON.parse(updated)).toMatchObject({
    expect: { response: { status: 200, contentType: 'text/plain', body: 'n is 1' } },
  })
})

test('the payload of a fixture keeps a key with the name __proto__', async () => {
  const payload: unknown = JSON.parse('{"__proto__":{"isAdmin":true},"n":1}')
  const source = 'export default ({ payload }) => ({ message: JSON.stringify(payload) })'
  const { actual } = await run(source, { request: { path: 'x', payload }, expect: { decision: 'accept' } })
  expect(actual?.actions[0]?.['message']).toBe(JSON.stringify(payload))
})

describe('fixtures', () => {
  test('the fixtures of a bundled transform pass, whatever the path of the mapping', async () => {
    const module = 'github-pull-request.ts'
    const files = await readFixtures(bundled, module)
    expect(files.map(({ name }) => name)).toEqual(readdirSync(join(bundled, 'github-pull-request.fixtures')).toSorted())
    for (const path of ['github', 'gh']) {
      const parts = await createParts(bundled, [{ match: { path }, transform: { module } }])
      const outcomes = await Promise.all(files.map((file) => runFixture(parts, module, file)))
      expect(outcomes.flatMap((outcome) => (outcome.ok ? [] : outcome.diff))).toEqual([])
    }
  })

  test.each([
    ['fewer fields than the action has', { decision: 'accept', actions: [{ name: 'N' }] }],
    [
      'fields of the mapping',
      { decision: 'accept', actions: [{ kind: 'agent', channel: 'slack', message: 'n is 1' }] },
    ],
    ['only the decision', { decision: 'accept' }],
  ])('a fixture that expects %s passes', async (_what, expected) => {
    expect(await run(hello, { request, expect: expected }, { channel: 'slack' })).toMatchObject({ ok: true })
  })

  test.each([
    [{ decision: 'accept', actions: [{ message: 'n is 2' }] }, 'actions[0].message: expected "n is 2", got "n is 1"'],
    [{ decision: 'accept', actions: [{ to: 'me' }] }, 'actions[0].to: expected "me", got nothing'],
    [{ decision: 'accept', actions: [] }, 'actions: expected 0, got 1'],
    [{ decision: 'skip' }, 'decision: expected skip, got accept'],
  ])('a fixture that expects %j reports where the result differs', async (expected, line) => {
    expect(await run(hello, { request, expect: expected })).toMatchObject({ ok: false, diff: [line] })
  })

  test('a difference between long texts is shown from shortly before its position', async () => {
    const long = 'a'.repeat(500)
    const source = `export default () => ({ message: '${long}b' })`
    const outcome = await run(source, { request, expect: { decision: 'accept', actions: [{ message: `${long}c` }] } })
    const [line] = outcome.ok ? [] : outcome.diff
    expect(line).toMatch(/^actions\[0\]\.message from character 481: expected "a{20}c", got "a{20}b"$/)
  })

  test('a fixture obeys the policy as a delivery does: it is parked if its session key is not allowed', async () => {
    const source = 'export default () => ({ message: "m", sessionKey: "main" })'
    const hooks = { allowedSessionKeyPrefixes: ['hook:'] }
    const failed = await run(source, { request, expect: { decision: 'accept' } }, {}, hooks)
    expect(failed).toMatchObject({ ok: false, diff: [expect.stringContaining('expected accept, got park')] })
    const expected = { decision: 'park', code: 'transform-result-invalid' }
    expect(await run(source, { request, expect: expected }, {}, hooks)).toMatchObject({ ok: true })
  })

  test('a fixture runs through the first mapping that matches', async () => {
    const source = 'export const a = () => ({ message: "a" })\nexport const b = () => ({ message: "b" })'
    const { root } = await createConfigDir()
    await writeFiles(root, { 'x.ts': source })
    const parts = await createParts(root, [
      { match: { path: 'x', payload: { n: 2 } }, transform: { module: 'x.ts', export: 'a' } },
      { match: { path: 'x' }, transform: { module: 'x.ts', export: 'b' } },
    ])
    const file = toFile({ request, expect: { decision: 'accept', actions: [{ message: 'b' }] } })
    expect(await runFixture(parts, 'x.ts', file)).toMatchObject({ ok: true })
  })

  test('a fixture of a module without a mapping runs', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, { 'x.ts': hello })
    const file = toFile({ request, expect: { decision: 'accept', actions: [{ message: 'n is 1' }] } })
    expect(await runFixture(await createParts(root, []), 'x.ts', file)).toMatchObject({ ok: true })
  })

  test('a fixture gets the same time and ids at each run', async () => {
    const source = 'export default ({ receivedAt, deliveryId }) => ({ message: `${receivedAt} ${deliveryId}` })'
    const one = await run(source, { request, expect: { decision: 'accept' } })
    const other = await run(source, { request, expect: { decision: 'accept' } })
    expect(one).toEqual(other)
  })
})

describe('fixture files', () => {
  test('fixture files are read in order, and an invalid file is reported with its reason', async () => {
    const { root } = await createConfigDir()
    await writeFiles(root, {
      'pr/x.fixtures/b.json': JSON.stringify({ request, expect: { decision: 'skip' } }),
      'pr/x.fixtures/a.json': '{',
      'pr/x.fixtures/c.json': JSON.stringify({ request, expect: { decision: 'maybe' } }),
      'pr/x.fixtures/notes.md': 'no fixture',
    })
    expect(await readFixtures(root, 'pr/x.ts')).toMatchObject([
      { name: 'a.json', kind: 'unusable', why: expect.stringMatching(/not JSON/) },
      { name: 'b.json', kind: 'fixture', fixture: { request: { method: 'POST' } } },
      { name: 'c.json', kind: 'unusable', why: expect.stringMatching(/^expect\.decision: expected one of "accept"/) },
    ])
    expect(await readFixtures(root, 'other.ts')).toEqual([])
  })

  test('a fixture over 1 MB, more than 200 fixtures, and a link to a file that others can write are reported', async () => {
    const { root, configDir } = await createConfigDir()
    const text = JSON.stringify({ request, expect: { decision: 'skip' } })
    const many = Array.from({ length: 201 }, (_, n) => [`x.fixtures/${String(n).padStart(3, '0')}.json`, text])
    await writeFiles(root, Object.fromEntries(many))
    const found = await readFixtures(root, 'x.ts')
    expect(found.filter(({ kind }) => kind === 'fixture')).toHaveLength(200)
    expect(found.at(-1)).toMatchObject({ kind: 'unusable', why: expect.stringMatching(/201 fixtures/) })

    await writeFiles(root, { 'y.fixtures/big.json': ' '.repeat(1_000_001) })
    await writeFiles(configDir, { 'secret.json': text })
    await chmod(join(configDir, 'secret.json'), 0o666)
    await symlink(join(configDir, 'secret.json'), join(root, 'y.fixtures', 'link.json'))
    expect((await readFixtures(root, 'y.ts')).map((file) => file.kind)).toEqual(['unusable', 'unusable'])
  })
})

describe('updates of fixtures', () => {
  test('an update does not change a fixture that passes', async () => {
    const folder = join(bundled, 'github-pull-request.fixtures')
    const text = readFileSync(join(folder, 'opened.json'), 'utf8')
    const fixture = parseFixture(text)
    if (typeof fixture === 'string') throw new Error(fixture)
    const { decision, actions = [] } = fixture.expect
    expect(updateFixture(text, { decision: decision ?? 'park', actions })).toBe(text)
  })

  test('an update keeps the bytes of the request, and the expected fields of an action in their order', () => {
    const head = '{\n  "request": { "path": "x",   "payload": { "b": 1.0, "a": 12345678901234567890 } },\n  "expect": '
    const before = `${head}{ "decision": "accept", "actions": [{ "name": "N", "message": "old" }] }\n}\n`
    const actual = { decision: 'accept', actions: [{ kind: 'agent', message: 'new', name: 'N' }] } as const
    const after = updateFixture(before, actual)
    expect(after.startsWith(head)).toBe(true)
    expect(JSON.stringify(JSON.parse(after).expect)).toBe(
      '{"decision":"accept","actions":[{"name":"N","message":"new"}]}',
    )
  })

  test('an updated fixture passes', async () => {
    const before = { request, expect: { decision: 'skip' } }
    const { actual } = await run(hello, before)
    if (actual === undefined) throw new Error('it was not run')
    const after: object = JSON.parse(updateFixture(JSON.stringify(before), actual))
    expect(after).toMatchObject({ expect: { decision: 'accept', actions: [{ kind: 'agent', message: 'n is 1' }] } })
    expect(await run(hello, after)).toMatchObject({ ok: true })
  })
})
