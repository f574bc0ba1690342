// What a request of a forge decides: the place of its reply only with a proof, and that an agent does not answer itself even without one.
import { expect, test } from 'vitest'
import { toMarker } from '../../../src/model/comment.ts'
import { toJsonBody } from '../../../src/model/parse-body.ts'
import { isAboutOwnComment, readPlace } from '../../../src/pipeline/forges.ts'
import { recogniseSender } from '../../../src/pipeline/sources.ts'

const payload = {
  repository: { full_name: 'acme/app' },
  issue: { number: 17 },
  comment: { body: `It boils.\n\n${toMarker('0123456789abcdef012345678')}` },
}
const headers = { 'x-github-event': 'issue_comment', 'x-github-delivery': 'one' }

const toDelivery = (given: Parameters<typeof recogniseSender>[0]) => ({
  sender: recogniseSender(given),
  body: toJsonBody(payload),
})

test('a request that is proved to be of GitHub names the place of its reply', () => {
  expect(readPlace(toDelivery({ headers, verifiedBy: 'github' }))).toMatchObject({
    channel: 'github',
    to: 'acme/app#17',
  })
})

test.each([
  ['headers', { headers }],
  ['payload', { headers: {}, namedSource: 'github' }],
])('a request whose %s only claim that it is of GitHub names no place', (_, given) => {
  expect(readPlace(toDelivery(given))).toBeUndefined()
})

test.each([
  ['a proof', { headers, verifiedBy: 'github' }],
  ['headers', { headers }],
])('a request about the comment of an agent is recognised if %s shows the sender', (_, given) => {
  expect(isAboutOwnComment(toDelivery(given))).toBe(true)
})
