import { expect, test } from 'vitest'
import { toPrintable, toPrintableLine } from '../../../src/base/text.ts'
import { markUnseen } from '../../../src/inspector/format.ts'

test('control characters are shown as pictures, or as U+FFFD if they have none', () => {
  expect(toPrintable('a\u001b[31mb')).toBe('a␛[31mb')
  expect(toPrintable('\u0007\u0008\r\u007f')).toBe('␇␈␍␡')
  expect(toPrintable('\u009b2J')).toBe('\uFFFD2J')
  expect(toPrintable('left\u202eright')).toBe('left\uFFFDright')
})

test('toPrintable changes nothing in ordinary text but CRLF, which becomes a line feed', () => {
  const text = 'Grüße, 你好 👋🏽\n\tand more'
  expect(toPrintable(text)).toBe(text)
  expect(toPrintable('one\r\ntwo')).toBe('one\ntwo')
})

test('every invisible Unicode character except tab and line feed is replaced', () => {
  const kept: string[] = []
  const seen = /^[\t\n]$/
  for (let code = 0; code <= 0x10ffff; code += 1) {
    if (code >= 0xd800 && code <= 0xdfff) continue
    const character = String.fromCodePoint(code)
    if (!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(character) || seen.test(character)) continue
    if (toPrintable(`a${character}b`) === `a${character}b`) kept.push(code.toString(16))
  }
  expect(kept).toEqual([])
})

test('joiners and variation selectors stay only where an emoji or a script needs them', () => {
  for (const text of ['👩‍💻 👨‍👩‍👧 ❤️ 🏳️‍🌈 1️⃣', 'می‌خواهم', 'क्‍ष']) expect(toPrintable(text)).toBe(text)
  expect(toPrintable('😀\u{E0101}\u{E0102}')).toBe('😀\uFFFD\uFFFD')
  expect(toPrintable('❤\uFE0F\uFE0E')).toBe('❤\uFE0F\uFFFD')
  expect(toPrintable('in\u200Dvisible')).toBe('in\uFFFDvisible')
})

test('toPrintableLine returns one line', () => {
  expect(toPrintableLine(' one\n\ttwo\r\nthree\u0085four\u2028five ')).toBe('one two three\uFFFDfour\uFFFDfive')
})

test('the page and the terminal replace the same characters', () => {
  const differs: string[] = []
  for (let code = 0; code <= 0x10ffff; code += 1) {
    if (code >= 0xd800 && code <= 0xdfff) continue
    const text = `a${String.fromCodePoint(code)}b`
    if ((markUnseen(text) === text) !== (toPrintable(text) === text)) differs.push(code.toString(16))
  }
  expect(differs).toEqual([])
  for (const text of ['👩‍💻 ❤️ می‌خواهم', '😀\u{E0101}', 'in\u200Dvisible', '❤\uFE0F\uFE0E'])
    expect(markUnseen(text) === text).toBe(toPrintable(text) === text)
})

test('the page shows an invisible character by its number, and an ANSI escape by a picture', () => {
  const tags = 'a\u{E0041}b\u3164c\u034Fd\u{E0101}e\u202Ef'
  expect(markUnseen(tags)).toBe('a⟨e0041⟩b⟨3164⟩c⟨034f⟩d⟨e0101⟩e⟨202e⟩f')
  expect(markUnseen('\u001b[31m\u007f 👩‍💻 ❤️\n\t')).toBe('␛[31m⟨007f⟩ 👩‍💻 ❤️\n\t')
})
