import { openBody, toJsonBody } from '../../../../src/core/model/body.ts'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { Match } from '../../../../src/core/model/match.ts'
import { compileCancelTest, createRouter, type MatchInput, type Router } from '../../../../src/core/mapping/match.ts'

function toMapping(id: string, match: Match = {}) {
  return { id, match: Match.parse(match) }
}

function toDelivery(parts: Partial<MatchInput> = {}): MatchInput {
  return { path: 'github', source: 'github', event: 'push', headers: {}, body: toJsonBody({}), ...parts }
}

function find<T>(router: Router<T>, parts: MatchInput) {
  return router.findMappings(parts.path).find(parts)
}

function isTaken(match: Match, parts: Partial<MatchInput>): boolean {
  return find(createRouter([toMapping('only', match)]), toDelivery(parts)).mapping !== undefined
}

function explain(match: Match, parts: Partial<MatchInput>): string | undefined {
  return createRouter([toMapping('only', match)]).explain(toDelivery(parts))[0]?.why
}

describe('the mapping of a delivery', () => {
  const router = createRouter([
    toMapping('early any', { source: 'gitlab' }),
    toMapping('first', { path: 'github', event: 'push' }),
    toMapping('second', { path: '/github/' }),
    toMapping('other', { path: 'gmail' }),
    toMapping('late any', { path: '/' }),
  ])

  test('the first mapping whose conditions are all true takes the delivery, with or without a path', () => {
    expect(find(router, toDelivery({ source: 'gitlab' })).mapping?.id).toBe('early any')
    expect(find(router, toDelivery()).mapping?.id).toBe('first')
    expect(find(router, toDelivery({ event: 'issues' })).mapping?.id).toBe('second')
    expect(find(router, toDelivery({ path: 'elsewhere' })).mapping?.id).toBe('late any')
  })

  test('the candidates are the mappings of the path and those without a path, in the order of the configuration', () => {
    const listIds = (path: string) => router.findMappings(path).mappings.map(({ id }) => id)
    expect(listIds('github')).toEqual(['early any', 'first', 'second', 'late any'])
    expect(listIds('gmail')).toEqual(['early any', 'other', 'late any'])
    expect(listIds('unheard of')).toEqual(['early any', 'late any'])
  })

  test('the trace ends with the mapping that takes the delivery', () => {
    expect(find(router, toDelivery({ event: 'issues' })).trace).toEqual([
      { mappingId: 'early any', matched: false, why: 'source is "github", this mapping takes "gitlab"' },
      { mappingId: 'first', matched: false, why: 'event is "issues", this mapping takes "push"' },
      { mappingId: 'second', matched: true, why: 'path is "github"' },
    ])
  })

  test('every candidate has a reason if no mapping takes the delivery', () => {
    const { mapping: none, trace } = find(
      createRouter([toMapping('a', { event: 'x' }), toMapping('b', { event: 'y' })]),
      toDelivery(),
    )
    expect(none).toBeUndefined()
    expect(trace.map(({ mappingId, matched }) => [mappingId, matched])).toEqual([
      ['a', false],
      ['b', false],
    ])
  })

  test('a look-up considers only the mappings of its own path, however many other paths exist', () => {
    const many = createRouter(Array.from({ length: 1000 }, (_, n) => toMapping(`m${n}`, { path: `hook-${n}` })))
    expect(many.findMappings('hook-777').mappings.map(({ id }) => id)).toEqual(['m777'])
    expect(find(many, toDelivery({ path: 'hook-777' })).trace).toHaveLength(1)
  })
})

describe('paths of hooks', () => {
  test('a path is compared exactly, after its slashes are trimmed', () => {
    expect(isTaken({ path: '/team/alerts//' }, { path: 'team/alerts' })).toBe(true)
    expect(isTaken({ path: 'team/alerts' }, { path: 'team/Alerts' })).toBe(false)
    expect(isTaken({ path: 'team' }, { path: 'team/alerts' })).toBe(false)
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'the hook name %s is a path like any other',
    (path) => {
      expect(isTaken({ path: 'github' }, { path })).toBe(false)
      expect(isTaken({ path }, { path })).toBe(true)
      expect(createRouter([toMapping('only', { path: 'github' })]).findMappings(path).mappings).toEqual([])
    },
  )

  test('an empty path or a slash in a mapping matches every hook name', () => {
    expect(isTaken({ path: '' }, { path: 'anything' })).toBe(true)
    expect(isTaken({ path: '/' }, { path: 'anything' })).toBe(true)
  })
})

describe('conditions of a mapping', () => {
  test('an event must be in the list, and an unknown event never is', () => {
    expect(isTaken({ event: ['push', 'release'] }, { event: 'release' })).toBe(true)
    expect(isTaken({ event: ['push', 'release'] }, { event: 'pull' })).toBe(false)
    expect(isTaken({ event: 'push' }, { event: undefined })).toBe(false)
  })

  test('the letter case of the name of a header does not matter, and its value is compared exactly', () => {
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
  ])('the payload %j satisfies the condition %j: %s', (payload, conditions, expected) => {
    expect(isTaken({ payload: conditions }, { body: toJsonBody(payload) })).toBe(expected)
  })

  test('a payload is not read if no condition needs it', () => {
    const parts = toDelivery({
      body: openBody({ bytes: Buffer.from('no JSON'), contentType: undefined, isProved: false }, { forms: false }),
    })
    const router = createRouter([toMapping('headers', { headers: { a: 'b' } }), toMapping('all', { event: 'push' })])
    expect(find(router, parts).mapping?.id).toBe('all')
    expect(() => find(createRouter([toMapping('asks', { payload: { a: 1 } })]), parts)).toThrow('The body is not JSON')
  })

  test.each(['items[-1].id', 'constructor.name', 'items[*].prototype', 'items.*.id'])(
    'a condition on the path %s, which finds no value in any payload, is an error',
    (path) => {
      for (const wanted of ['x', { exists: true }]) {
        const compile = () => createRouter([toMapping('never', { payload: { [path]: wanted } })])
        expect(compile).toThrow(/Mapping "never": match\.payload: /)
      }
    },
  )

  test('an invalid payload path is an error that names the mapping', () => {
    expect(() => createRouter([toMapping('broken', { payload: { 'a..b': 1 } })])).toThrow(
      /Mapping "broken": match\.payload: The path "a\.\.b" is wrong at column 3/,
    )
  })
})

describe('comparisons of values', () => {
  test.each<[JsonValue, Match['payload'], boolean]>([
    [{ sender: { type: 'User' } }, { 'sender.type': { not: 'Bot' } }, true],
    [{ sender: { type: 'Bot' } }, { 'sender.type': { not: 'Bot' } }, false],
    [{ sender: { type: 'Bot' } }, { 'sender.type': { not: ['App', 'Bot'] } }, false],
    [{ n: 1 }, { n: { not: '1' } }, true],
    [{}, { 'sender.type': { not: 'Bot' } }, true],
    [{ merged: null }, { merged: { exists: true } }, true],
    [{ merged: null }, { merged: { exists: true, not: null } }, false],
    [{}, { merged: { exists: true } }, false],
    [{}, { merged: { exists: false } }, true],
    [{ merged: '' }, { merged: { exists: false } }, false],
    [{ ref: 'refs/heads/main' }, { ref: { matches: '^refs/heads/(main|release/.+)$' } }, true],
    [{ ref: 'refs/heads/mainly' }, { ref: { matches: '^refs/heads/(main|release/.+)$' } }, false],
    [{ title: 'a WIP change' }, { title: { matches: 'WIP' } }, true],
    [{ title: 'a wip change' }, { title: { matches: '(?i)WIP' } }, true],
    [{ title: 'a WIP change' }, { title: { not: { matches: 'WIP' } } }, false],
    [{ title: 'a change' }, { title: { not: { matches: 'WIP' } } }, true],
    [{ title: 7 }, { title: { matches: '7' } }, false],
    [{ title: 7 }, { title: { not: { matches: '7' } } }, true],
    [{ amount: 5.5 }, { amount: { gt: 5, lt: 6 } }, true],
    [{ amount: 5 }, { amount: { gt: 5 } }, false],
    [{ amount: 5 }, { amount: { gte: 5, lte: 5 } }, true],
    [{ amount: 6 }, { amount: { lt: 6 } }, false],
    [{ amount: 7 }, { amount: { lte: 6 } }, false],
    [{ amount: '5.5' }, { amount: { gt: 5 } }, false],
    [{}, { amount: { lt: 6 } }, false],
  ])('the payload %j satisfies the comparison %j: %s', (payload, conditions, expected) => {
    expect(isTaken({ payload: conditions }, { body: toJsonBody(payload) })).toBe(expected)
  })

  test.each<[string, Match['payload'], readonly JsonValue[], readonly JsonValue[]]>([
    ['a value', { 'labels[*].name': 'bug' }, [[{ name: 'ui' }, { name: 'bug' }]], [[{ name: 'ui' }], [], null, {}]],
    ['a list', { 'labels[*]': ['bug', 7] }, [['ui', 7]], [['ui', '7'], 'bug']],
    ['matches', { 'labels[*].name': { matches: '^b' } }, [[{}, { name: 'bug' }]], [[{ name: 'ab' }], []]],
    ['all tests of one item', { 'labels[*].n': { gt: 5, lt: 10 } }, [[{ n: 1 }, { n: 7 }]], [[{ n: 1 }, { n: 11 }]]],
    [
      'not',
      { 'labels[*].name': { not: 'bug' } },
      [[{ name: 'ui' }, {}], [], null],
      [[{ name: 'ui' }, { name: 'bug' }]],
    ],
    ['not matches', { 'labels[*].name': { not: { matches: 'b' } } }, [[{ name: 'ui' }], []], [[{}, { name: 'bug' }]]],
    ['exists', { 'labels[*].name': { exists: true } }, [[{}, { name: null }]], [[{}], []]],
    ['exists: false', { 'labels[*].name': { exists: false } }, [[{}], []], [[{}, { name: 'bug' }]]],
    ['not, and matches', { 'labels[*]': { not: 'bug', matches: '^b' } }, [['ui', 'bad']], [['bad', 'bug'], ['ui']]],
    ['lists of lists', { 'labels[*][*]': 3 }, [[[1], [2, 3]]], [[[1], 3]]],
  ])('with "[*]", %s is about any item of a list', (_, wanted, taken, left) => {
    const isTakenWith = (labels: JsonValue) => isTaken({ payload: wanted }, { body: toJsonBody({ labels }) })
    expect(taken.map(isTakenWith)).toEqual(taken.map(() => true))
    expect(left.map(isTakenWith)).toEqual(left.map(() => false))
  })

  test('the reason for a condition about a list names the path of its items', () => {
    const why = (payload: Match['payload'], labels: JsonValue) =>
      explain({ payload }, { body: toJsonBody({ labels: labels }) })
    expect(why({ labels: { matches: 'bug' } }, ['bug'])).toBe(
      'payload.labels is an array, this mapping takes a text that matches "bug": "labels[*]" is any of its items',
    )
    expect(why({ 'labels[*]': 'bug' }, ['ui', 'api'])).toBe(
      'payload.labels[*] is another string in each item, this mapping takes "bug"',
    )
    expect(why({ 'labels[*]': 'bug' }, [])).toBe('payload.labels[*] is missing, this mapping takes "bug"')
  })

  test.each<[string, Match['payload'], boolean]>([
    ['1.50', { n: 1.5 }, true],
    ['10.0', { n: [9, 10] }, true],
    ['1.50', { n: '1.50' }, false],
    ['653247040368672768', { n: '653247040368672768' }, true],
    ['653247040368672769', { n: '653247040368672768' }, false],
    ['653247040368672769', { n: { not: '653247040368672768' } }, true],
    ['1700000000000000000', { n: '1700000000000000000' }, true],
    ['653247040368672769', { n: { matches: '^6532' } }, true],
    ['653247040368672769', { n: { gt: 1_700_000 } }, true],
    ['1e400', { n: { gt: 1 } }, true],
    ['0.1000000000000000000001', { n: { gt: 0.1 } }, true],
    ['0.10000000000000001', { n: { gt: 0.1 } }, false],
  ])('the number %s as it was sent satisfies the comparison %j: %s', (number, conditions, expected) => {
    const body = openBody(
      { bytes: Buffer.from(`{"n":${number}}`), contentType: undefined, isProved: false },
      { forms: false },
    )
    expect(isTaken({ payload: conditions }, { body })).toBe(expected)
  })

  test('comparisons also apply to events and headers, and an absent header does not count as having a forbidden value', () => {
    expect(isTaken({ event: { not: ['ping'] } }, { event: 'push' })).toBe(true)
    expect(isTaken({ event: { not: ['ping'] } }, { event: 'ping' })).toBe(false)
    expect(isTaken({ event: { not: ['ping'] } }, { event: undefined })).toBe(true)
    expect(isTaken({ event: { matches: '^pull_request' } }, { event: 'pull_request_review' })).toBe(true)
    expect(isTaken({ headers: { 'X-Env': { not: 'test' } } }, { headers: { 'x-env': 'prod' } })).toBe(true)
    expect(isTaken({ headers: { 'X-Env': { not: 'test' } } }, { headers: { 'x-env': 'test' } })).toBe(false)
    expect(isTaken({ headers: { 'X-Env': { not: 'test' } } }, { headers: {} })).toBe(true)
    expect(isTaken({ headers: { constructor: { exists: true } } }, { headers: {} })).toBe(false)
  })

  test('matching finishes quickly on a text for which a JavaScript regular expression would take years', () => {
    const body = toJsonBody({ text: `${'a'.repeat(9_000)}!` })
    expect(isTaken({ payload: { text: { matches: '^(a+)+$' } } }, { body })).toBe(false)
  })

  test('text that is too long to compare makes the condition false, even if it must not match', () => {
    const body = toJsonBody({ text: 'a'.repeat(10_001) })
    expect(isTaken({ payload: { text: { matches: 'a' } } }, { body })).toBe(false)
    expect(isTaken({ payload: { text: { not: { matches: 'b' } } } }, { body })).toBe(false)
    expect(explain({ payload: { text: { not: { matches: 'b' } } } }, { body })).toBe(
      'payload.text is a string of more than 10000 characters, this mapping takes anything but a text that matches "b"',
    )
  })

  test('texts of a list that are too long together to search make the condition false, even if none must match', () => {
    const long = { matches: 'a[ab]{200}c' }
    const toBody = (count: number) => ({
      body: toJsonBody({ notes: [...Array.from({ length: count }, () => 'b'.repeat(1_000)), `a${'b'.repeat(200)}c`] }),
    })
    expect(isTaken({ payload: { 'notes[*]': long } }, toBody(8))).toBe(true)
    expect(isTaken({ payload: { 'notes[*]': long } }, toBody(10))).toBe(false)
    expect(isTaken({ payload: { 'notes[*]': { not: { matches: 'z[ab]{200}' } } } }, toBody(10))).toBe(false)
    expect(explain({ payload: { 'notes[*]': long } }, toBody(10))).toContain(
      'texts of more than 9803 characters together',
    )
  })

  test('a reason in the trace shows the wanted value of a comparison, and no value from the payload', () => {
    const payload = { amount: { gte: 5, lt: 10 }, login: { not: 'robot' }, ref: { matches: '^v' } } as const
    const toBody = (amount: number, login: string, ref: string) => ({ body: toJsonBody({ amount, login, ref }) })
    expect(explain({ payload }, toBody(3, 'x', 'v1'))).toBe(
      'payload.amount is another number, this mapping takes a number from 5 and a number under 10',
    )
    expect(explain({ payload }, toBody(5, 'robot', 'v1'))).toBe(
      'payload.login is an excluded value, this mapping takes anything but "robot"',
    )
    expect(explain({ payload }, toBody(5, 'x', 'x'))).toBe(
      'payload.ref is another string, this mapping takes a text that matches "^v"',
    )
    expect(explain({ payload: { login: { exists: false } } }, toBody(5, 'x', 'v1'))).toBe(
      'payload.login is a string, this mapping takes no value',
    )
    expect(explain({ payload }, toBody(5, 'x', 'v1'))).toBe(
      'payload.amount is a number from 5 and a number under 10, payload.login is anything but "robot", payload.ref is a text that matches "^v"',
    )
  })
})

describe('alternatives of conditions', () => {
  const match: Match = {
    payload: { 'sender.type': { not: 'Bot' } },
    any: [{ event: 'push', payload: { ref: 'refs/heads/main' } }, { event: 'release' }, { headers: { 'x-env': 'a' } }],
  }
  const body = (ref: string, type = 'User') => toJsonBody({ ref, sender: { type } })

  test('a mapping takes a delivery if one alternative is completely true, and its other conditions are true too', () => {
    expect(isTaken(match, { event: 'push', body: body('refs/heads/main') })).toBe(true)
    expect(isTaken(match, { event: 'release', body: body('x') })).toBe(true)
    expect(isTaken(match, { event: 'ping', body: body('x'), headers: { 'x-env': 'a' } })).toBe(true)
    expect(isTaken(match, { event: 'push', body: body('x') })).toBe(false)
    expect(isTaken(match, { event: 'release', body: body('x', 'Bot') })).toBe(false)
  })

  test('a reason in the trace names the first false condition of each alternative', () => {
    expect(explain(match, { event: 'push', body: body('x') })).toBe(
      'none of the alternatives is true: payload.ref is another string, this mapping takes "refs/heads/main"; event is "push", this mapping takes "release"; header x-env is missing',
    )
    expect(explain(match, { event: 'release', body: body('x') })).toBe(
      'payload.sender.type is anything but "Bot", at least one of the 3 alternatives is true',
    )
  })

  test('a payload path of an alternative that does not parse is an error that names the mapping', () => {
    expect(() => createRouter([toMapping('broken', { any: [{ payload: { 'a..b': 1 } }] })])).toThrow(/Mapping "broken"/)
  })
})

describe('reasons of a trace', () => {
  test('every mapping has a reason, even on another path or after the mapping that takes the delivery', () => {
    const router = createRouter([
      toMapping('mail', { path: 'gmail' }),
      toMapping('taker', { path: 'github' }),
      toMapping('spare'),
    ])
    expect(router.explain(toDelivery())).toEqual([
      { mappingId: 'mail', matched: false, why: 'path is "github", this mapping takes "gmail"' },
      { mappingId: 'taker', matched: true, why: 'path is "github"' },
      { mappingId: 'spare', matched: false, why: 'it matches too, but "taker" comes first' },
    ])
  })

  test('a reason in the trace names only the kind of a payload value', () => {
    const match: Match = { payload: { action: ['opened', 'reopened'] } }
    const expected = 'this mapping takes "opened" or "reopened"'
    expect(explain(match, { body: toJsonBody({ action: 'hunter2' }) })).toBe(
      `payload.action is another string, ${expected}`,
    )
    expect(explain(match, { body: toJsonBody({ action: 5 }) })).toBe(`payload.action is a number, ${expected}`)
    expect(explain(match, { body: toJsonBody({}) })).toBe(`payload.action is missing, ${expected}`)
  })

  test('a reason in the trace about a header shows neither the received value nor the wanted one', () => {
    const match: Match = { headers: { 'X-Key': 'wanted-secret' } }
    expect(explain(match, { headers: {} })).toBe('header x-key is missing')
    expect(explain(match, { headers: { 'x-key': 'sent-secret' } })).toBe('header x-key has another value')
    expect(explain(match, { headers: { 'x-key': 'wanted-secret' } })).toBe('header x-key matches')
  })

  test('a reason in the trace is one short line, whatever the name of the event', () => {
    const why = explain({ event: 'push' }, { event: `a\nb${'x'.repeat(5000)}` })
    expect(why).toMatch(/^event is "a\\nbx+…", this mapping takes "push"$/)
    expect(why?.length).toBeLessThan(120)
  })

  test('a reason in the trace gives the number of wanted values that it does not list', () => {
    const event = Array.from({ length: 50 }, (_, n) => `e${n}`)
    expect(explain({ event }, {})).toMatch(/"e0", .*"e5" or 44 more$/)
  })
})

test('an explanation names the mapping that takes a delivery because flow.cancelOn is true', () => {
  const opened = toMapping('a', { path: 'github', event: 'opened' })
  const taking = { ...opened, isCancelledBy: compileCancelTest(opened, { event: 'closed' }) }
  const router = createRouter([taking, toMapping('b', { path: 'github' })])
  const delivery = toDelivery({ event: 'closed' })
  const { mapping, trace } = find(router, delivery)
  expect(mapping?.id).toBe('a')
  expect(router.explain(delivery)).toEqual([
    ...trace,
    { mappingId: 'b', matched: false, why: 'it matches too, but "a" comes first' },
  ])
})

test('flow.cancelOn takes a text only if the mapping accepts text', () => {
  const opened = toMapping('a', { path: 'github', event: 'opened' })
  const all = toMapping('all', { path: 'github' })
  const texts = { ...all, id: 'texts', accept: ['text' as const] }
  const text = toDelivery({ event: 'closed', body: { ...toJsonBody('closed'), syntax: 'text' } })
  const findTaker = (accept?: 'text'[]) =>
    find(
      createRouter([
        { ...opened, accept, isCancelledBy: compileCancelTest({ ...opened, accept }, { event: 'closed' }) },
        texts,
      ]),
      text,
    ).mapping?.id
  expect(findTaker()).toBe('texts')
  expect(findTaker(['text'])).toBe('a')
})
