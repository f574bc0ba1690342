import { expect, test } from 'vitest'
import { toPrintable, toPrintableLine } from '../../src/base/text.ts'

test('what drives a terminal is shown as a picture', () => {
  expect(toPrintable('a\u001b[31mb')).toBe('a␛[31mb')
  expect(toPrintable('\u0007\u0008\r\u007f')).toBe('␇␈␍␡')
  expect(toPrintable('\u009b2J')).toBe('\uFFFD2J')
  expect(toPrintable('left\u202eright')).toBe('left\uFFFDright')
})

test('text that only says something stays as it is', () => {
  const text = 'Grüße, 你好 👋🏽\n\tand more'
  expect(toPrintable(text)).toBe(text)
  expect(toPrintable('one\r\ntwo')).toBe('one\ntwo')
})

test('a line stays one line', () => {
  expect(toPrintableLine(' one\n\ttwo\r\nthree\u0085four\u2028five ')).toBe('one two three\uFFFDfour\uFFFDfive')
})
