import { expect, test } from 'vitest'
import { check, type Entry } from './check.ts'

const invoke = (op: number, key: string, lane?: string): Entry => ({ do: 'invoke', op, key, ...(lane && { lane }) })
const ok = (op: number, key: string, run = `run-${key}`): Entry => ({ do: 'ok', op, delivery: `delivery-${key}`, run })
const unknown = (op: number): Entry => ({ do: 'unknown', op, why: 'cut off' })
const effect = (key: string, where = 'model'): Entry => ({ do: 'effect', key, where })
const fault: Entry = { do: 'fault', what: 'kill' }
const over: Entry = { do: 'fault', what: 'kill, over' }
const listed = (key: string): Entry => ({ do: 'listed', delivery: `delivery-${key}` })
const look = (number: number, key: string, state?: string): Entry[] => [
  { do: 'look', look: number, run: `run-${key}` },
  state === undefined ? { do: 'missing', look: number } : { do: 'seen', look: number, state },
]
const a = [invoke(1, 'a'), ok(1, 'a')]

test.for<[string, Entry[]]>([
  ['an effect after its answer, and a look', [...a, effect('a'), ...look(1, 'a', 'done'), listed('a')]],
  ['an effect before its answer', [invoke(1, 'a'), effect('a'), ok(1, 'a')]],
  ['an unknown request that did not happen', [invoke(1, 'a'), unknown(1)]],
  ['an unknown request that happened', [invoke(1, 'a'), unknown(1), effect('a'), listed('a')]],
  ['a request that never ended and happened', [invoke(1, 'a'), effect('a')]],
  ['an unknown request that was repeated', [invoke(1, 'a'), unknown(1), invoke(2, 'a'), ok(2, 'a'), effect('a')]],
  ['a refused request without an effect', [invoke(1, 'a'), { do: 'fail', op: 1, why: '400' }]],
  ['a repetition with the same answer', [...a, effect('a'), invoke(2, 'a'), ok(2, 'a')]],
  ['an effect that a kill cut off before it was recorded', [...a, effect('a'), fault, over, effect('a')]],
  ['an effect that arrives while a kill lasts, and its repetition', [...a, fault, effect('a'), effect('a'), over]],
  ['effects in two places', [...a, effect('a'), effect('a', 'sink')]],
  [
    'a look that began before the answer and found nothing',
    [invoke(1, 'a'), look(1, 'a')[0] as Entry, ok(1, 'a'), look(1, 'a')[1] as Entry, effect('a')],
  ],
  ['lanes whose effects mix', [invoke(1, 'a', 'x'), invoke(2, 'b', 'y'), effect('b'), effect('a')]],
])('the checker finds no fault in %s', ([, history]) => {
  expect(check(history).faults).toEqual([])
})

test.for<[string, RegExp, Entry[]]>([
  ['an acknowledged request without an effect', /^lost: a .* line 2/, a],
  ['an acknowledged delivery that is not listed', /^lost: delivery-a/, [...a, effect('a'), listed('b')]],
  ['an effect that happens twice', /^twice: a in model, in lines 3 and 4/, [...a, effect('a'), effect('a')]],
  ['an effect that happens twice after a kill', /^twice: a .* 5 and 6/, [...a, fault, over, effect('a'), effect('a')]],
  ['an unknown request that happens twice', /^twice: a/, [invoke(1, 'a'), unknown(1), effect('a'), effect('a')]],
  ['a delivery that is listed twice', /^twice: delivery-a/, [...a, effect('a'), listed('a'), listed('a')]],
  [
    'an effect after its run was seen done',
    /^after its end: line 6/,
    [...a, effect('a'), ...look(1, 'a', 'done'), effect('a'), fault],
  ],
  [
    'a second run for a repetition',
    /^other answer: a .* 2 and another one in line 4/,
    [...a, invoke(2, 'a'), ok(2, 'a', 'run-2'), effect('a')],
  ],
  [
    'effects of a lane that changed places',
    /^reordered: a of lane x/,
    [invoke(1, 'a', 'x'), invoke(2, 'b', 'x'), effect('b'), effect('a')],
  ],
  ['an acknowledged run that is not there', /^unseen: run-a, known since line 2/, [...a, effect('a'), ...look(1, 'a')]],
  ['a run that was seen and is gone', /^unseen: run-a/, [...look(1, 'a', 'queued'), ...look(2, 'a')]],
  [
    'a run that was done and waits again',
    /^undone: run-a/,
    [...a, effect('a'), ...look(1, 'a', 'done'), ...look(2, 'a', 'queued')],
  ],
  ['a run that died', /^not done: the run of a is dead/, [...a, effect('a'), ...look(1, 'a', 'dead'), listed('a')]],
  ['an effect that nobody asked for', /^unasked: line 1 is an effect of a/, [effect('a')]],
  ['an effect before its request', /^unasked: line 1/, [effect('a'), ...a]],
  ['a delivery that nobody sent', /^unasked: delivery-b/, [...a, effect('a'), listed('a'), listed('b')]],
  [
    'an effect of a refused request',
    /^refused: line 3/,
    [invoke(1, 'a'), { do: 'fail', op: 1, why: '400' }, effect('a')],
  ],
])('the checker finds %s', ([, expected, history]) => {
  expect(check(history).faults).toContainEqual(expect.stringMatching(expected))
})
