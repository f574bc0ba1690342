import { describe, expect, test } from 'vitest'
import { JobKeys } from '../../../../src/core/model/job-keys.ts'
import { Mapping } from '../../../../src/core/model/mapping.ts'
import { compare, matchIds, groupChanges } from '../../../../src/gateway/replay/comparison.ts'
import { type Outcome, toComparedAction } from '../../../../src/gateway/replay/outcome.ts'
import { readRecorded } from '../../../../src/gateway/replay/replay.ts'
import { planned } from '../../../contract/stage.ts'

const outcome = (over: Partial<Outcome> = {}): Outcome => ({
  decision: 'accept',
  mappingId: 'a',
  actions: [{ kind: 'agent', message: 'm', name: 'n' }],
  hasFlows: true,
  response: undefined,
  problem: undefined,
  why: undefined,
  ...over,
})
const says = (...messages: string[]) => outcome({ actions: messages.map((message) => ({ kind: 'agent', message })) })
const buildParked = (detail: string) =>
  outcome({ decision: 'park', actions: [], problem: { code: 'transform-failed', detail } })
const skips = outcome({ decision: 'skip', actions: [], why: 'x.ts returned null' })
const refuses = outcome({ decision: 'refuse', actions: [], problem: { code: 'hook-unknown', detail: 'gone' } })
const same = (id: string) => id
const compareOutcomes = (before: Outcome, after: Outcome, again = after, recorded?: Outcome) =>
  compare({ before, after: [after, again], recorded }, same)

describe('the comparison of two outcomes', () => {
  test.each([
    ['same', outcome(), outcome()],
    ['same', skips, { ...skips, why: 'another reason' }],
    ['changed', says('a'), says('b')],
    ['changed', says('a'), says('a', 'b')],
    ['now skipped', outcome(), skips],
    ['now refused', outcome(), refuses],
    ['now parks', outcome(), buildParked('threw')],
    ['now works', buildParked('threw'), outcome()],
    ['now works', skips, outcome()],
    ['another mapping', outcome(), outcome({ mappingId: 'b' })],
    ['another mapping', says('a'), { ...says('b'), mappingId: 'b' }],
    ['now skipped', outcome(), { ...skips, mappingId: 'b' }],
  ] as const)('a comparison has the class %s', (expected, before, after) => {
    expect(compareOutcomes(before, after).class).toBe(expected)
  })

  test('a comparison lists each changed field, and an action on only one side as one change', () => {
    expect(compareOutcomes(says('a', 'b'), says('a', 'c', 'd')).changes).toEqual([
      { path: 'actions[1].message', before: 'b', after: 'c' },
      { path: 'actions[2]', before: undefined, after: { kind: 'agent', message: 'd' } },
    ])
  })

  test('in a comparison, a failure at another line is the same outcome, and another failure is a change', () => {
    const buildFailureAt = (line: number, what = 'TypeError') =>
      buildParked(`x.ts threw ${what} at transforms/x.ts:${line}:7.`)
    expect(compareOutcomes(buildFailureAt(3), buildFailureAt(9)).class).toBe('same')
    expect(compareOutcomes(buildFailureAt(3), buildFailureAt(3, 'RangeError')).changes).toMatchObject([
      { path: 'problem.detail' },
    ])
  })

  test('a comparison leaves out a difference that also appears between two runs of the edited code', () => {
    const found = compareOutcomes(says('a', 'x'), says('b', 'y'), says('b', 'z'))
    expect(found).toMatchObject({ class: 'changed', unstable: ['actions[1].message'] })
    expect(found.changes.map(({ path }) => path)).toEqual(['actions[0].message'])
    expect(compareOutcomes(says('a'), says('b'), says('c'))).toMatchObject({ class: 'same', changes: [] })
    expect(compareOutcomes(outcome(), skips, outcome())).toMatchObject({
      class: 'same',
      changes: [],
      unstable: ['decision'],
    })
  })

  test('a comparison shows the recorded value of a changed field if the live code gives another value', () => {
    const found = compareOutcomes(says('live'), says('edit'), says('edit'), says('recorded'))
    expect(found.changes).toEqual([{ path: 'actions[0].message', before: 'live', after: 'edit', recorded: 'recorded' }])
    expect(found.drift).toEqual([{ path: 'actions[0].message', before: 'recorded', after: 'live' }])
  })
})

test('a parked delivery equals its record, although only the record has a code frame', () => {
  const problem = { code: 'transform-failed', detail: 'x.ts threw a TypeError at x.ts:3.', frame: '3 | throw' } as const
  const recorded = readRecorded({
    state: 'parked',
    mappingId: 'a',
    problem,
    jobs: [],
    answer: { status: 200, body: '{}' },
  })
  expect(recorded && compareOutcomes(recorded, buildParked(problem.detail))).toMatchObject({
    class: 'same',
    changes: [],
  })
})

describe('the comparison of answers to the sender', () => {
  const answer = { status: 200, contentType: 'text/plain', body: 'Got it' }
  const record = (stored: { status: number; body: string; contentType?: string }) =>
    readRecorded({ state: 'accepted', mappingId: 'a', problem: undefined, jobs: [], answer: stored })
  const live = outcome({ actions: [], response: answer })

  test('an edit of the answer to the sender is a change', () => {
    expect(compareOutcomes(live, outcome({ actions: [], response: { ...answer, body: 'Done' } }))).toMatchObject({
      class: 'changed',
      changes: [{ path: 'response.body', before: 'Got it', after: 'Done' }],
    })
    expect(compareOutcomes(live, live)).toMatchObject({ class: 'same', changes: [] })
  })

  test('the answer to the sender is compared with the record, unless it was sent before the delivery was decided', () => {
    expect(compareOutcomes(live, live, live, record(answer)).drift).toEqual([])
    expect(
      compareOutcomes(live, live, live, record({ status: 200, body: '{"ok":true,"runId":"r"}' })).drift,
    ).toHaveLength(3)
    for (const status of ['pending', 'parked']) {
      const stored = { status: 200, body: JSON.stringify({ ok: true, status }) }
      expect(compareOutcomes(live, live, live, record(stored)).drift).toEqual([])
    }
  })
})

test('a difference between generated session keys is not a change, and one between chosen keys is', () => {
  const key = (end: string) => planned(`hook:01a1fb45-0fdd-7713-8f98-0244159400${end}`)
  expect(toComparedAction(key('01'))).toEqual(toComparedAction(key('02')))
  expect(toComparedAction(planned('hook:a'))).not.toEqual(toComparedAction(planned('hook:b')))
})

test.each(Object.keys(JobKeys.shape))(
  'an edit of the key %s of a mapping is a change, because the key goes into the job',
  (key) => {
    const edited = { ...planned(), [key]: 'edited' }
    expect(toComparedAction(edited)).toEqual({ ...toComparedAction(planned()), [key]: 'edited' })
  },
)

test('a group of differences has one class and one set of paths, and deliveries parked for different reasons are in different groups', () => {
  const all = [
    compareOutcomes(says('a'), says('b')),
    compareOutcomes(says('a', 'b'), says('x', 'y')),
    compareOutcomes(outcome(), buildParked('one')),
    compareOutcomes(outcome(), buildParked('other')),
  ]
  expect(groupChanges(all).map(({ class: name, paths, members }) => [name, paths, members.length])).toEqual([
    ['changed', ['actions[].message'], 2],
    ['now parks', ['decision'], 1],
    ['now parks', ['decision'], 1],
  ])
})

test('a mapping without an id is recognized when an edit changes its position', () => {
  const made = (id: string, path: string) => ({
    ...Mapping.parse({ match: { path } }),
    id,
    isUnnamed: id !== 'named',
  })
  const before = [made('mapping-1', 'a'), made('named', 'b'), made('mapping-3', 'c')]
  const after = [made('mapping-1', 'new'), made('mapping-2', 'a'), made('named', 'other'), made('mapping-4', 'edited')]
  const toId = matchIds(before, after)
  expect(['mapping-1', 'named', 'mapping-3'].map(toId)).toEqual(['mapping-2', 'named', 'mapping-3'])
})
