import { expect, test } from 'vitest'
import { isSameJson } from '../../../src/base/json.ts'

test.each([
  [
    { a: 1, b: [{ c: null }] },
    { b: [{ c: null }], a: 1 },
  ],
  [{ a: 1, b: undefined }, { a: 1 }],
  [[], []],
])('%j and %j are the same JSON', (one, other) => {
  expect(isSameJson(one, other)).toBe(true)
})

test.each([
  [{ a: 1 }, { a: '1' }],
  [
    [1, 2],
    [2, 1],
  ],
  [[1], { 0: 1 }],
  [{ a: null }, {}],
  [JSON.parse('{"__proto__":{}}'), {}],
  [{ constructor: 1 }, {}],
  [[1], [1, 2]],
])('%j and %j are different JSON', (one, other) => {
  expect([isSameJson(one, other), isSameJson(other, one)]).toEqual([false, false])
})
