import { expect, test } from 'vitest'
import { escapeLine } from '../../../src/cli/gateway/log.ts'

const listBytes = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => String.fromCodePoint(from + at))

test('a log line shows control and invisible characters as escapes, and is still the same JSON', () => {
  const hostile = [
    ...listBytes(0x7f, 0xa0),
    '\u202e',
    '\u2066',
    '\u2028',
    '\u2029',
    '\u200b',
    '\u{e0041}',
    '\u001b[2J',
  ].join('x')
  const line = `${JSON.stringify({ msg: hostile, ok: 'Grüße 你好 👩‍💻' })}\n`
  const escaped = escapeLine(line)
  expect(escaped).toContain('Grüße 你好 👩‍💻')
  expect(escaped.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029\u202e\u2066\u200b\u{e0041}]/u)
  expect(JSON.parse(escaped)).toEqual(JSON.parse(line))
})
