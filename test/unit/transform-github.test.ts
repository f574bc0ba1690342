import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { AgentResult } from '../../src/model/transform.ts'
import type { JsonValue } from '../../src/model/json.ts'
import type { TransformCall } from '../../src/model/transform.ts'
import { load, toCall } from './loader-stage.ts'

const root = new URL('../../transforms', import.meta.url).pathname
const Json = z.json()
const Fixture = z.strictObject({
  request: z.strictObject({ path: z.string(), headers: z.record(z.string(), z.string()), payload: Json }),
  expect: z.strictObject({ decision: z.enum(['accept', 'skip']), actions: z.array(AgentResult) }),
})

function readJson<T>(schema: z.ZodType<T>, ...path: string[]): T {
  return schema.parse(JSON.parse(readFileSync(join(...path), 'utf8')))
}

function withHead(payload: JsonValue, head: Partial<TransformCall['head']>): TransformCall {
  const call = toCall(payload)
  return { ...call, head: { ...call.head, ...head } }
}

async function run(input: TransformCall): Promise<unknown> {
  const outcome = await (await load(root, 'github-pull-request.ts')).run(input)
  return outcome.kind === 'returned' ? outcome.value : outcome
}

describe('the transform of GitHub pull requests', () => {
  const folder = join(root, 'github-pull-request.fixtures')
  test.each(readdirSync(folder))('does to the request of %s what the fixture says', async (name) => {
    const { request, expect: expected } = readJson(Fixture, folder, name)
    const value = await run(withHead(request.payload, { path: request.path, headers: request.headers }))
    expect(value === null ? 'skip' : 'accept').toBe(expected.decision)
    expect(value === null ? [] : [value]).toEqual(expected.actions)
  })

  test('has fixtures of both kinds', () => {
    const decisions = readdirSync(folder).map((name) => readJson(Fixture, folder, name).expect.decision)
    expect(new Set(decisions)).toEqual(new Set(['accept', 'skip']))
  })

  const others = [
    {},
    { action: 'opened' },
    { action: 'constructor', number: 1 },
    [],
    'text',
    { zen: 'Keep it.', hook_id: 1 },
  ]
  test.each(others)('skips %j, which is no pull request', async (payload) => {
    expect(await run(toCall(payload))).toBeNull()
  })

  test('names an author whose account is gone', async () => {
    const pull = {
      title: 'T',
      html_url: 'https://github.com/a/b/pull/1',
      body: '',
      user: null,
      head: { ref: 'x' },
      base: { ref: 'main' },
    }
    const payload = { action: 'opened', number: 1, pull_request: pull, repository: { full_name: 'a/b' } }
    expect(await run(toCall(payload))).toEqual({
      kind: 'agent',
      name: 'Pull request a/b#1',
      sessionKey: 'hook:pr:a/b#1',
      message:
        'Pull request a/b#1 was opened: T\nby ghost · x → main\nhttps://github.com/a/b/pull/1\n\nIt has no description.',
    })
  })
})

const corpus = process.env['HOOKLOOM_CORPUS']
describe.skipIf(corpus === undefined)('real pull request events', () => {
  const folder = join(corpus ?? '', 'github')
  const Recorded = z.object({ headers: z.record(z.string(), z.string()).default({}), body: Json })
  const names = corpus === undefined ? [] : readdirSync(folder).filter((name) => name.startsWith('pull_request.'))

  test.each(names)('%s gives an action without holes, or is skipped', async (name) => {
    const { headers, body } = readJson(Recorded, folder, name)
    const value = await run(withHead(body, { headers }))
    if (value === null) return
    expect(AgentResult.parse(value).message).not.toMatch(/undefined|\[object|NaN/)
  })

  test('are there, and at least one becomes an action', async () => {
    const values = await Promise.all(names.map((name) => run(toCall(readJson(Recorded, folder, name).body))))
    expect(values.filter((value) => value !== null).length).toBeGreaterThan(0)
  })
})
