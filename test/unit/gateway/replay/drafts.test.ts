// What the page and an agent are told about a draft that is no mapping.
import { expect, test } from 'vitest'
import { parseDraft } from '../../../../src/gateway/replay/drafts.ts'

test.each<[object, RegExp]>([
  [
    { payload: { a: { matches: '(' } } },
    /^The draft: match\.payload\.a\.matches must be a regular expression of RE2: missing closing \)/,
  ],
  [
    { any: [{ payload: { a: { matches: String.raw`\pL{1000}` } } }] },
    /^The draft: match\.any\[0\]\.payload\.a\.matches .*too large/,
  ],
  [{ payload: { a: { gt: 5, lt: 5 } } }, /^The draft: match\.payload\.a must have limits that a number can fit\.$/],
  [{ evnt: 'push' }, /^The draft: match\.evnt is an unknown key\. Did you mean event\?$/],
])('the error of a draft with the conditions %j has the cause', (match, message) => {
  expect(() => parseDraft({ match, messageTemplate: 'x' })).toThrow(message)
})

test('the error of a draft with a blank template names the template', () => {
  expect(() => parseDraft({ match: {}, messageTemplate: ' ' })).toThrow(
    /^The draft: messageTemplate must not be blank\.$/,
  )
})
