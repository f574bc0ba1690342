import { expect, test } from 'vitest'
import { z } from 'zod'
import { describeFirstIssue, hideFieldNames } from '../../../src/core/model/issue.ts'

const lead = 'The payload does not fit: '

test.each([
  `${lead}user.name: expected a string, found a number.`,
  `${lead}items[3].price: expected a number above 0, found a number.`,
  `${lead}expected an object, found an array.`,
  `${lead}note: "tittle" is not a known field.`,
  '"titel", "boddy" are not known fields.',
  'The body: expected an object such as {"text": "…"}, found a string.',
  'model: its provider is not in models.providers. Name a configured one, or leave the field out.',
])('an error message with plain words is shown: %s', (message) => {
  expect(hideFieldNames(message)).toBe(message)
})

test.each([
  [`${lead}people.ada@example.org: expected a number, found a string.`, 'one of its fields: expected a number'],
  [`${lead}people.+49 151 23456: expected a number, found a string.`, 'one of its fields: expected a number'],
  [`${lead}expected ada: expected a number, found a string.`, 'one of its fields: expected a number'],
  [`${lead}a: expected ada.b: expected a number, found a string.`, 'one of its fields: expected a number'],
  [`${lead}"ada lovelace" is not a known field.`, 'it has a field that is not known.'],
  [`${lead}people.ada@example.org: "text" is not a known field.`, 'it has a field that is not known.'],
  [`${lead}"ada@example.org", "text" are not known fields.`, 'it has a field that is not known.'],
  [`${lead}${'ada@example.org '.repeat(20)}`, 'a field is missing or of the wrong type.'],
  [`model: ${'ada@example.org '.repeat(20)}`, 'a field is missing or of the wrong type.'],
])('an error message hides a name that may be data: %s', (message, shown) => {
  const hidden = hideFieldNames(message)
  expect(hidden).toContain(shown)
  expect(hidden).not.toMatch(/ada|49/)
})

test.each([
  [{ titel: 1 }, '"titel" is not a known field'],
  [{ titel: 1, boddy: 2 }, '"titel", "boddy" are not known fields'],
])('one unknown field or several are described: %j', (input, message) => {
  const { error } = z.strictObject({}).safeParse(input)
  expect(error && describeFirstIssue(error, input)).toBe(message)
})
