import { expect, test } from 'vitest'
import { splitByPaths, choosePaths, findOpenPath, findRestOfPath } from '../../../src/inspector/paths.ts'

test.each([
  ['Say {{', { from: 4, word: '' }],
  ['Say {{ order.ti', { from: 4, word: 'order.ti' }],
  ['{{a}} and {{b["x y', { from: 10, word: 'b["x y' }],
  [`{{b['x}} | y'].c`, { from: 0, word: `b['x}} | y'].c` }],
  ['{{{{a', { from: 2, word: 'a' }],
])('paths are suggested in the template %j', (text, open) => {
  expect(findOpenPath(text, text.length)).toEqual(open)
})

test.each(['', '{', 'Say', '{{a}}', '{{a}} b', '{{a | trunc', '{{a\nb'])(
  'no path is suggested in the template %j',
  (text) => {
    expect(findOpenPath(text, text.length)).toBeUndefined()
  },
)

test('only the text before the caret decides which paths are suggested', () => {
  expect(findOpenPath('Say {{title}} to {{by}}', 8)).toEqual({ from: 4, word: 'ti' })
  expect(findOpenPath('Say {{title}}', 5)).toBeUndefined()
})

test('paths that begin with the typed word are suggested first, with or without the root in front of the word', () => {
  const paths = ['subtitle', 'title', 'payload.event', 'title_html'].map((path) => ({ path, kinds: [], count: 1 }))
  const listChosen = (word: string) => choosePaths(paths, word).map(({ path }) => path)
  expect(listChosen('TITLE')).toEqual(['title', 'title_html', 'subtitle'])
  expect(listChosen('payload.ti')).toEqual(['title', 'title_html', 'subtitle'])
  expect(listChosen('eve')).toEqual(['payload.event'])
  expect(listChosen('nothing')).toEqual([])
  expect(listChosen('')).toHaveLength(4)
})

test('a path with a quoted key is found by the text of its key', () => {
  const paths = ["fields['System.Title']", "['data[email]']"].map((path) => ({ path, kinds: [], count: 1 }))
  const listChosen = (word: string) => choosePaths(paths, word).map(({ path }) => path)
  for (const word of ['fields.sys', "fields['Sys", 'fields["System.T', "payload.fields['sys"]) {
    expect(listChosen(word)).toEqual(["fields['System.Title']"])
  }
  expect(listChosen('data')).toEqual(["['data[email]']"])
})

test('a completed path replaces the rest of the old one, also inside the quotes of a key', () => {
  expect(findRestOfPath('tle}} x')).toBe('tle')
  expect(findRestOfPath("tem.Title']}} x")).toBe("tem.Title']")
  expect(findRestOfPath(`['a}}b'].c | x`)).toBe(`['a}}b'].c `)
  expect(findRestOfPath(' and {{b}}')).toBeUndefined()
})

test('the paths of placeholders are marked, and a path that is only a part of another one or plain text is not', () => {
  const template = 'name {{name}}, {{ a.name | truncate: 3 }} {{a.names}} {{a["x}}y"]}} a.name'
  const parts = splitByPaths(template, new Set(['a.name']))
  expect(parts.filter(({ isMarked }) => isMarked).map(({ text }) => text)).toEqual(['a.name'])
  expect(parts.map(({ text }) => text).join('')).toBe(template)
  expect(parts[0]?.text).toBe('name {{name}}, {{ ')
  expect(splitByPaths(template, new Set(['a["x}}y"]'])).filter(({ isMarked }) => isMarked)).toHaveLength(1)
})
