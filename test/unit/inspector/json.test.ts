// JSON as the page shows it and sends it again: no number and no text may change.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findNodes, formatJson, readJson, findTime } from '../../../src/inspector/json.ts'

const parse = (text: string) => {
  const node = readJson(text)
  if (node === undefined) throw new Error('not JSON')
  return node
}

describe('readJson and formatJson', () => {
  test('numbers, escapes and repeated keys keep the text in which they arrived', () => {
    const text =
      '{"big":12345678901234567890,"price":1.50,"e":1E+2,"u":"\\u00e4\\"","__proto__":1,"a":1,"a":2,"2":0,"1":0}'
    expect(formatJson(parse(text)).replaceAll(/\n */g, '').replaceAll('": ', '":')).toBe(text)
  })

  test('every JSON value stays the same when it is formatted', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.constantFrom(undefined, 2, '\t'), (compact, space) => {
        const text = JSON.stringify(JSON.parse(compact), undefined, space)
        expect(JSON.parse(formatJson(parse(text)))).toEqual(JSON.parse(text))
      }),
    )
  })

  test('text that is not JSON, or is nested too deeply, has no value', () => {
    for (const text of ['', '{', 'a=1', '{"a":1}x', `${'['.repeat(1_002)}${']'.repeat(1_002)}`]) {
      expect(readJson(text)).toBeUndefined()
    }
  })

  test('a string of five million characters is read', () => {
    expect(parse(JSON.stringify({ long: '\\"'.repeat(1_000_000), after: 1 }))).toMatchObject({ kind: 'object' })
  })
})

describe('findTime', () => {
  test('findTime recognises seconds, milliseconds and ISO 8601 as times', () => {
    expect(findTime('created_at', parse('1770000000'))).toBe(1_770_000_000_000)
    expect(findTime('createdAt', parse('1770000000123'))).toBe(1_770_000_000_123)
    expect(findTime(undefined, parse('"2026-02-02T02:40:00Z"'))).toBe(1_770_000_000_000)
  })

  test('findTime does not take an id or a price with as many digits for a time', () => {
    for (const name of ['id', 'number', 'format', 'chat', undefined, 3])
      expect(findTime(name, parse('1770000000'))).toBeUndefined()
    expect(findTime('at', parse('17'))).toBeUndefined()
    expect(findTime('at', parse('"2026-99-99T00:00"'))).toBeUndefined()
  })
})

test('a search finds keys and values, and shows the branches above them', () => {
  const root = parse('{"a":{"Title":"x"},"b":["y",{"c":"the TITLE"}],"d":1}')
  const found = findNodes(root, 'title')
  expect([...found].map(({ source }) => source)).toEqual([
    '"x"',
    '{"Title":"x"}',
    '"the TITLE"',
    '{"c":"the TITLE"}',
    '["y",{"c":"the TITLE"}]',
    root.source,
  ])
  expect(findNodes(root, 'nothing').size).toBe(0)
})
