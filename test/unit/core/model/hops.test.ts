import { expect, test } from 'vitest'
import { readHops } from '../../../../src/core/model/hops.ts'

test.each<[string, number]>([
  ['', 0],
  ['0', 0],
  ['3', 3],
  [' 7 ', 7],
  // two headers that a proxy has joined: a lower number cannot hide a higher number
  ['5, 1', 5],
  ['1,5', 5],
  ['-9', 0],
  ['4.5', 0],
  ['1e9', 0],
  ['99999999999999999999', 1e20],
  ['five', 0],
])('the header "%s" counts as %i hops', (value, count) => {
  expect(readHops(value)).toBe(count)
})
