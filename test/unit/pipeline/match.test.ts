import { openBody, toJsonBody } from '../../../src/model/parse-body.ts'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../src/base/json.ts'
import { Match } from '../../../src/model/mapping.ts'
import { createRouter, type MatchInput, type Router } from '../../../src/pipeline/match.ts'

function mapping(id: string, match: Match = {}) {
  return { id, match: Match.parse(match) }
}

function delivery(parts: Partial<MatchInput> = {}): MatchInput {
  return { path: 'github', source: 'github', event: 'push', headers: {}, body: toJsonBody({}), ...parts }
}

function find<T>(router: Router<T>, parts: MatchInput) {
  return router.mappingsFor(parts.path).find(parts)
}

function isTaken(match: Match, parts: Partial<MatchInput>): boolean {
  return find(createRouter([mapping('only', match)]), delivery(parts)).mapping !== undefined
}

function whyNot(match: Match, parts: Partial<MatchInput>): string | undefined {
  return createRouter([mapping('only', match)]).explain(delivery(parts))[0]?.why
}

describe('which mapping takes a delivery', () => {
  const router = createRouter([
    mapping('early any', { source: 'gitlab' }),
    mapping('first', { path: 'github', event: 'push' }),
    mapping('second', { path: '/github/' }),
    mapping('other', { path: 'gmail' }),
    mapping('late any', { path: '/' }),
  ])

  test('the first one in config order whose every condition holds, with or without a path', () => {
    expect(find(router, delivery({ source: 'gitlab' })).mapping?.id).toBe('early any')
    expect(find(router, delivery()).mapping?.id).toBe('first')
    expect(find(router, delivery({ event: 'issues' })).mapping?.id).toBe('second')
    expect(find(router, delivery({ path: 'elsewhere' })).mapping?.id).toBe('late any')
  })

  test('candidates are those of the path and those of any path, in config order', () => {
    const ids = (path: string) => router.mappingsFor(path).mappings.map(({ id }) => id)
    expect(ids('github')).toEqual(['early any', 'first', 'second', 'late any'])
    expect(ids('gmail')).toEqual(['early any', 'other', 'late any'])
    expect(ids('unheard of')).toEqual(['early any', 'late any'])
  })

  test('the trace ends with the mapping that took it', () => {
    expect(find(router, delivery({ event: 'issues' })).trace).toEqual([
      { mappingId: 'early any', matched: false, why: 'source is "github", this mapping takes "gitlab"' },
      { mappingId: 'first', matched: false, why: 'event is "issues", this mapping takes "push"' },
      { mappingId: 'second', matched: true, why: 'path is "github"' },
    ])
  })

  test('where none takes it, every candidate has its reason', () => {
    const { mapping: none, trace } = find(
      createRouter([mapping('a', { event: 'x' }), mapping('b', { event: 'y' })]),
      delivery(),
    )
    expect(none).toBeUndefined()
    expect(trace.map(({ mappingId, matched }) => [mappingId, matched])).toEqual([
      ['a', false],
      ['b', false],
    ])
  })

  test('is settled by one look-up however many other paths there are', () => {
    const many = createRouter(Array.from({ length: 1000 }, (_, n) => mapping(`m${n}`, { path: `hook-${n}` })))
    expect(many.mappingsFor('hook-777').mappings.map(({ id }) => id)).toEqual(['m777'])
    expect(find(many, delivery({ path: 'hook-777' })).trace).toHaveLength(1)
  })
})

describe('a path', () => {
  test('is compared exactly, after its slashes are trimmed', () => {
    expect(isTaken({ path: '/team/alerts//' }, { path: 'team/alerts' })).toBe(true)
    expect(isTaken({ path: 'team/alerts' }, { path: 'team/Alerts' })).toBe(false)
    expect(isTaken({ path: 'team' }, { path: 'team/alerts' })).toBe(false)
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('named %s is a name like any other', (path) => {
    expect(isTaken({ path: 'github' }, { path })).toBe(false)
    expect(isTaken({ path }, { path })).toBe(true)
    expect(createRouter([mapping('only', { path: 'github' })]).mappingsFor(path).mappings).toEqual([])
  })

  test('that is empty or a slash stands for every name', () => {
    expect(isTaken({ path: '' }, { path: 'anything' })).toBe(true)
    expect(isTaken({ path: '/' }, { path: 'anything' })).toBe(true)
  })
})

describe('conditions', () => {
  test('an event is one of a list, and an unknown event is none of it', () => {
    expect(isTaken({ event: ['push', 'release'] }, { event: 'release' })).toBe(true)
    expect(isTaken({ event: ['push', 'release'] }, { event: 'pull' })).toBe(false)
    expect(isTaken({ event: 'push' }, { event: undefined })).toBe(false)
  })

  test('a header is found under its name in any case, and its value is compared exactly', () => {
    const headers = { 'x-env': 'prod' }
    expect(isTaken({ headers: { 'X-Env': 'prod' } }, { headers })).toBe(true)
    expect(isTaken({ headers: { 'X-Env': ['test', 'prod'] } }, { headers })).toBe(true)
    expect(isTaken({ headers: { 'X-Env': 'PROD' } }, { headers })).toBe(false)
    expect(isTaken({ headers: { 'X-Env': 'prod' } }, { headers: {} })).toBe(false)
    expect(isTaken({ headers: { constructor: '' } }, { headers: {} })).toBe(false)
  })

  test.each<[JsonValue, Match['payload'], boolean]>([
    [{ action: 'opened' }, { action: ['opened', 'reopened'] }, true],
    [{ action: 'closed' }, { action: ['opened', 'reopened'] }, false],
    [{ pull_request: { draft: false } }, { 'pull_request.draft': false }, true],
    [{ pull_request: { draft: 'false' } }, { 'pull_request.draft': false }, false],
    [{ id: 1 }, { id: '1' }, false],
    [{ id: 0 }, { id: false }, false],
    [{ id: null }, { id: null }, true],
    [{}, { id: null }, false],
    [{ id: ['a'] }, { id: 'a' }, false],
    [{ a: 1, b: 2 }, { a: 1, b: 3 }, false],
    ['text', { length: 4 }, false],
  ])('the payload %j under %j: %s', (payload, conditions, expected) => {
    expect(isTaken({ payload: conditions }, { body: toJsonBody(payload) })).toBe(expected)
  })

  test('a payload that no condition asks for is never read', () => {
    const parts = delivery({
      body: openBody({ bytes: Buffer.from('no JSON'), contentType: undefined, isProved: false }, { forms: false }),
    })
    const router = createRouter([mapping('headers', { headers: { a: 'b' } }), mapping('all', { event: 'push' })])
    expect(find(router, parts).mapping?.id).toBe('all')
    expect(() => find(createRouter([mapping('asks', { payload: { a: 1 } })]), parts)).toThrow('The body is not JSON')
  })

  test('a payload path that does not parse is an error of the config that names the mapping', () => {
    expect(() => createRouter([mapping('broken', { payload: { 'a..b': 1 } })])).toThrow(
      /Mapping "broken": match\.payload: The path "a\.\.b" is wrong at column 3/,
    )
  })
})

describe('the reasons', () => {
  test('every mapping has one, also on another path and behind the one that takes it', () => {
    const router = createRouter([
      mapping('mail', { path: 'gmail' }),
      mapping('taker', { path: 'github' }),
      mapping('spare'),
    ])
    expect(router.explain(delivery())).toEqual([
      { mappingId: 'mail', matched: false, why: 'path is "github", this mapping takes "gmail"' },
      { mappingId: 'taker', matched: true, why: 'path is "github"' },
      { mappingId: 'spare', matched: false, why: 'it matches too, but "taker" comes first' },
    ])
  })

  test('name what the sender sent in a field of the payload by its kind alone', () => {
    const match: Match = { payload: { action: ['opened', 'reopened'] } }
    const expected = 'this mapping takes "opened" or "reopened"'
    expect(whyNot(match, { body: toJsonBody({ action: 'hunter2' }) })).toBe(
      `payload.action is another string, ${expected}`,
    )
    expect(whyNot(match, { body: toJsonBody({ action: 5 }) })).toBe(`payload.action is a number, ${expected}`)
    expect(whyNot(match, { body: toJsonBody({}) })).toBe(`payload.action is nothing, ${expected}`)
  })

  test('say of a header neither the value that came nor the one that is wanted', () => {
    const match: Match = { headers: { 'X-Key': 'wanted-secret' } }
    expect(whyNot(match, { headers: {} })).toBe('header x-key is missing')
    expect(whyNot(match, { headers: { 'x-key': 'sent-secret' } })).toBe('header x-key has another value')
    expect(whyNot(match, { headers: { 'x-key': 'wanted-secret' } })).toBe('header x-key matches')
  })

  test('stay one short line whatever a sender calls its event', () => {
    const why = whyNot({ event: 'push' }, { event: `a\nb${'x'.repeat(5000)}` })
    expect(why).toMatch(/^event is "a\\nbx+…", this mapping takes "push"$/)
    expect(why?.length).toBeLessThan(120)
  })

  test('count the wanted values that are too many to say', () => {
    const event = Array.from({ length: 50 }, (_, n) => `e${n}`)
    expect(whyNot({ event }, {})).toMatch(/"e0", .*"e5" or 44 more$/)
  })
})
