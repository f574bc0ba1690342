// The parser cases of nst/JSONTestSuite as bodies of a mapped hook: `n_` is refused, `y_` is not, and nothing breaks.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import { expectSound, readVerdict } from './answers.ts'
import { type Inside, startInside } from './inside.ts'
import { post } from './wire.ts'

const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''

/** Two long cases are given by their beginning, which is repeated up to `gen` bytes. */
const Case = z.union([
  z.object({ name: z.string(), base64: z.string() }),
  z.object({ name: z.string(), base64Head: z.string(), gen: z.int() }),
])
const Suite = z.object({ cases: z.array(Case) })

function toBody(each: z.infer<typeof Case>): Buffer {
  if ('base64' in each) return Buffer.from(each.base64, 'base64')
  // the repeated parts are one byte and five bytes long
  return Buffer.alloc(each.gen, Buffer.from(each.base64Head, 'base64').subarray(0, 60))
}

function readCases(prefix: string): [string, Buffer][] {
  if (corpus === '') return [['none', Buffer.alloc(0)]]
  const text = readFileSync(join(corpus, '../reference/jsontestsuite.json'), 'utf8')
  const { cases } = Suite.parse(JSON.parse(text))
  return cases.filter(({ name }) => name.startsWith(prefix)).map((each) => [each.name, toBody(each)])
}

let gateway: Inside

beforeAll(async () => {
  gateway = await startInside({
    store: createMemoryStore({ clock: Date.now }),
    config: {
      hooks: {
        mappings: [
          { id: 'all', match: { path: 'all' }, messageTemplate: 'It says: {{payload}}', deliver: false },
          { id: 'none', match: { path: 'none' }, messageTemplate: 'It came at {{now}}', deliver: false },
          { id: 'broken', match: { path: 'broken' }, transform: { module: 'broken.ts' }, deliver: false },
          { id: 'missing', match: { path: 'missing' }, transform: { module: 'missing.ts' }, deliver: false },
          { id: 'items', match: { path: 'items' }, forEach: 'items', messageTemplate: 'An item', deliver: false },
          { id: 'code', match: { path: 'code' }, transform: { module: 'code.ts' }, deliver: false },
          { id: 'never', match: { path: 'never', event: 'never' }, messageTemplate: 'Never', deliver: false },
        ],
      },
    },
    files: {
      'hooks/transforms/broken.ts': 'export default (',
      'hooks/transforms/code.ts': "export default () => ({ message: 'It reads nothing.' })",
    },
  })
})

/** The decision of each hook on a JSON payload. Parked deliveries count as accepted; no case has an array named `items`. */
const verdicts = {
  all: 'accepted',
  none: 'accepted',
  broken: 'accepted',
  missing: 'accepted',
  items: 'skipped',
  code: 'accepted',
  never: 'skipped',
}

describe.skipIf(corpus === '')('a suite of JSON parser cases (skipped when HOOKLOOM_CORPUS names no folder)', () => {
  describe.each(Object.entries(verdicts))('cases at the hook "%s"', (hook, verdict) => {
    test.each(readCases('n_'))('the case %s is refused', async (_, body) => {
      expect(readVerdict(await post(gateway.port, `/hooks/${hook}`, body))).toBe('body-invalid')
    })

    test.each(readCases('y_'))('the case %s is accepted', async (_, body) => {
      expect(readVerdict(await post(gateway.port, `/hooks/${hook}`, body))).toBe(verdict)
    })

    test.each(readCases('i_'))(
      'the case %s is accepted or refused, and no part of the gateway breaks',
      async (_, body) => {
        const reply = await post(gateway.port, `/hooks/${hook}`, body)
        expectSound(reply)
        expect([200, 204, 400]).toContain(reply.status)
      },
    )
  })

  test('the suite has 318 cases', () => {
    expect(['n_', 'y_', 'i_'].flatMap(readCases)).toHaveLength(318)
  })
})
