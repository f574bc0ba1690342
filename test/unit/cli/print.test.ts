import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { renderTable } from '../../../src/cli/terminal/print.ts'

test('a long cell of a table is cut, unless it is in the last column', () => {
  const table = renderTable(['from', 'why'], [['x'.repeat(5_000), 'y'.repeat(200)]])
  expect(stripVTControlCharacters(table).split('\n')).toEqual([
    `${'from'.padEnd(80)}  why`,
    `${'x'.repeat(79)}…  ${'y'.repeat(200)}`,
  ])
})
