// The bundled transforms do what their fixtures say, are listed by their README, and survive the payloads of other senders. HOOKLOOM_CORPUS
// names a folder that has, for each sender, a folder of real {headers, body}.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { AgentAction, WakeAction } from '../../../src/core/model/action.ts'
import type { JsonValue } from '../../../src/base/json.ts'
import { AgentResult, WakeResult } from '../../../src/core/model/transform.ts'
import type { Decision } from '../../../src/core/mapping/decision.ts'
import { loading, modules, readme, root, run, toActions, toDocumentedMatch, toText } from './stage.ts'

const Headers = z.record(z.string(), z.string())
const Fixture = z.strictObject({
  request: z.strictObject({ path: z.string(), headers: Headers, payload: z.json() }),
  expect: z.strictObject({
    decision: z.enum(['accept', 'skip', 'refusal']),
    actions: z.array(z.union([AgentResult, WakeResult])),
    code: z.string().optional(),
  }),
})
const Captured = z.object({ headers: Headers, body: z.json() })

function readAll<T>(schema: z.ZodType<T>, folder: string): (T & { name: string })[] {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  return names.map((name) => ({ ...schema.parse(JSON.parse(readFileSync(join(folder, name), 'utf8'))), name }))
}

const readFixtures = (module: string) => readAll(Fixture, join(root, `${basename(module, '.ts')}.fixtures`))

/** The fields of a fixture as a complete action. */
const toAction = (fields: object) => ('text' in fields ? WakeAction : AgentAction).parse(fields)

const hasSchema = (module: string) => readFileSync(join(root, module), 'utf8').includes("from 'zod'")

/** The verdict on a payload of an unknown sender: a schema refuses it, and code without a schema skips it. */
function toVerdict(decision: Decision): string {
  return decision.kind === 'refuse' ? decision.problem.code : decision.kind
}

/** Signs of a missing field: a word such as "undefined", no text after a label or a separator, empty brackets, empty lines. */
const holes = [
  /\b(undefined|null|NaN)\b|\[object|Invalid Date/,
  /^[\w -]*: *$/m,
  /[·,] *$/m,
  /\(\)|<>|""/,
  /^\s|\s$|\n{3}/,
]
const isHoled = (text: string) => holes.some((hole) => hole.test(text))

/** The text of a message without the values of the payload, because a sender may write "undefined". */
function removeValues(message: string, payload: JsonValue): string {
  const texts = toTexts(payload).map((text) => text.replaceAll('\r\n', '\n').trim())
  return texts.filter(isHoled).reduce((rest, text) => rest.replaceAll(text, '…'), message)
}

function toTexts(value: JsonValue): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(toTexts) : []
}

function expectNoHoles(decision: Decision, payload: JsonValue): void {
  for (const action of toActions(decision)) {
    const { name = '', sessionKey } = action.kind === 'agent' ? action : { sessionKey: 'hook:wake:main' }
    expect([toText(action), name].filter((text) => isHoled(removeValues(text, payload)))).toEqual([])
    expect(sessionKey).toMatch(/^hook:[a-z]+:[^\s:]+/)
    expect(sessionKey).not.toMatch(/undefined|null|\[object/)
  }
}

describe.each(modules)('the bundled transform %s', (module) => {
  const fixtures = readFixtures(module)

  test('a bundled transform is one documented default export and imports only what needs no installation', async () => {
    const text = readFileSync(join(root, module), 'utf8')
    expect(text).toMatch(/^\/\*\* [A-Z].*\. \*\/\nimport \{ defineTransform \} from 'hookloom'\n/)
    const imported = [...text.matchAll(/\bimport\b.* from '(.*)'|\bimport\b|\brequire\b/g)].map(([, from]) => from)
    expect(imported.filter((from) => from !== 'hookloom' && from !== 'zod')).toEqual([])
    expect([...text.matchAll(/^export /gm)]).toHaveLength(1)
    expect((await loading).get(`${module}#`)?.problem).toBeUndefined()
  })

  test('a bundled transform has a fixture for each of its decisions, with the path of the README', () => {
    const decisions = hasSchema(module) ? ['accept', 'skip', 'refusal'] : ['accept', 'skip']
    expect(new Set(fixtures.map((fixture) => fixture.expect.decision))).toEqual(new Set(decisions))
    expect(new Set(fixtures.map(({ request }) => request.path))).toEqual(new Set([toDocumentedMatch(module).path]))
  })

  test.each(fixtures)('the fixture $name passes', async ({ request, expect: expected }) => {
    const decision = await run(module, request)
    expect(decision.kind).toBe(expected.decision === 'refusal' ? 'refuse' : expected.decision)
    expect('problem' in decision ? decision.problem.code : undefined).toBe(expected.code)
    expect(toActions(decision)).toEqual(expected.actions.map(toAction))
    expectNoHoles(decision, request.payload)
  })

  test.each(fixtures.filter((fixture) => fixture.expect.decision === 'accept'))(
    'the request of $name matches the conditions of the README',
    async ({ request }) => {
      expect((await run(module, request, toDocumentedMatch(module))).kind).toBe('accept')
    },
  )

  const foreign = hasSchema(module) ? 'payload-invalid' : 'skip'

  test.each([{}, [], 'text', 1, { action: 'constructor', type: 'constructor', triggerEvent: '__proto__' }])(
    `a payload of an unknown sender (%j) is answered with ${foreign}`,
    async (payload) => {
      expect(toVerdict(await run(module, { headers: {}, payload }))).toBe(foreign)
    },
  )

  test('a bundled transform skips the events of other senders without failing', async () => {
    for (const other of modules.filter((name) => name !== module)) {
      for (const { name, request } of readFixtures(other)) {
        expect([other, name, toVerdict(await run(module, request))]).toEqual([other, name, foreign])
      }
    }
  })
})

describe('the table of the README', () => {
  const rows = readme.split('\n').filter((line) => /^\| \[[\w-]+\.ts\]/.test(line))
  const cells = rows.map((row) => row.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')))

  test('the table lists exactly the bundled transforms', () => {
    const listed = cells.map(([name = '']) => /^\[([\w-]+\.ts)\]\(\1\)$/.exec(name)?.[1])
    expect(listed.toSorted()).toEqual(modules.toSorted())
  })

  test.each(cells)('the row of %s has the first line of the file and a link to its section', (name, what, link) => {
    const module = /\[(.*)\]/.exec(name ?? '')?.[1] ?? ''
    expect(`/** ${what} */`).toBe(readFileSync(join(root, module), 'utf8').split('\n')[0])
    const [, title = '', anchor] = /^\[(.*)\]\(#(.*)\)$/.exec(link ?? '') ?? []
    expect(anchor).toBe(title.toLowerCase().replaceAll(' ', '-'))
    const [, section = ''] = readme.split(`\n### ${title}\n`)
    expect(section.split('\n#')[0]).toContain(`[${module}](${module})`)
  })
})

const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''
const senders = [...new Set(modules.map((module) => toDocumentedMatch(module).path ?? ''))].filter(
  (sender) => corpus === '' || existsSync(join(corpus, sender)),
)

describe.skipIf(corpus === '')('real payloads (skipped: HOOKLOOM_CORPUS names no folder)', () => {
  test.each(senders)(
    'real payloads of %s become messages without missing values or are skipped, and at least one becomes a message',
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

  test('real payloads exist for most senders', () => {
    expect(senders.length).toBeGreaterThan(3)
  })
})
