// Which comments a channel of Hookloom wrote.
import { expect, test } from 'vitest'
import { isOwnComment, toMarker } from '../../../src/model/comment.ts'

const marker = toMarker('0123456789abcdef012345678')

test.each([
  ['as it was posted', `The build is green.\n\n${marker}`],
  ['with the line ends of a form', `The build is green.\r\n\r\n${marker}\r\n`],
  ['without a text', marker],
])('a comment with a marker at its end is recognised as one by Hookloom: %s', (_, body) => {
  expect(isOwnComment(body)).toBe(true)
})

test.each([
  [
    'a quotation of a comment by Hookloom with an answer',
    `> The build is green.\n> \n> ${marker}\n\nPlease release it.`,
  ],
  ['a quotation of a comment by Hookloom without an answer', `> The build is green.\n> \n> ${marker}`],
  ['a marker before other text', `${marker}\n\nPlease release it.`],
  ['a marker inside a line', `Please release it. ${marker}`],
  ['a marker in a code block', `\`\`\`\n${marker}\n\`\`\``],
  ['a marker whose id is too short', '<!-- hookloom:00000000 -->'],
  ['a marker whose id is too long', toMarker('0123456789abcdef0123456789')],
  ['a comment without a marker', 'Please release it.'],
])('%s is not recognised as a comment by Hookloom', (_, body) => {
  expect(isOwnComment(body)).toBe(false)
})
