import { expect, test } from 'vitest'
import { choosePaths, findOpenPath } from '../../../src/inspector/paths.ts'

test.each([
  ['Say {{', { from: 4, word: '' }],
  ['Say {{ order.ti', { from: 4, word: 'order.ti' }],
  ['{{a}} and {{b["x y', { from: 10, word: 'b["x y' }],
  ['{{{{a', { from: 2, word: 'a' }],
])('a path is completed in %j', (text, open) => {
  expect(findOpenPath(text, text.length)).toEqual(open)
})

test.each(['', '{', 'Say', '{{a}}', '{{a}} b', '{{a | trunc', '{{a\nb'])('no path is completed in %j', (text) => {
  expect(findOpenPath(text, text.length)).toBeUndefined()
})

test('only the text before the caret counts', () => {
  expect(findOpenPath('Say {{title}} to {{by}}', 8)).toEqual({ from: 4, word: 'ti' })
  expect(findOpenPath('Say {{title}}', 5)).toBeUndefined()
})

test('paths that begin with the word come first, and the root may be written or not', () => {
  const paths = ['subtitle', 'title', 'payload.event', 'title_html'].map((path) => ({ path, kinds: [], count: 1 }))
  const chosen = (word: string) => choosePaths({ requests: 1, paths }, word).map(({ path }) => path)
  expect(chosen('TITLE')).toEqual(['title', 'title_html', 'subtitle'])
  expect(chosen('payload.ti')).toEqual(['title', 'title_html', 'subtitle'])
  expect(chosen('eve')).toEqual(['payload.event'])
  expect(chosen('nothing')).toEqual([])
  expect(chosen('')).toHaveLength(4)
})
