// A request of GitHub, GitLab or Linear names the place for a reply only with a proof, but an agent's comment is recognised even without a proof.
import { expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { isOwnCommentId, toCommentId, toMarker } from '../../../../src/model/comment.ts'
import { toJsonBody } from '../../../../src/core/model/body.ts'
import { isAboutOwnComment, readPlace } from '../../../../src/gateway/generation/event-place.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { recognise: recogniseSender } = builtInSenders

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

test('a request that is proved to come from GitHub names the place for its reply', () => {
  expect(readPlace(toDelivery({ headers, verifiedBy: 'github' }))).toMatchObject({
    channel: 'github',
    to: 'acme/app#17',
  })
})

test.each([
  ['headers', { headers }],
  ['payload', { headers: {}, namedSource: 'github' }],
])('a request names no place if nothing but its %s says that it comes from GitHub', (_, given) => {
  expect(readPlace(toDelivery(given))).toBeUndefined()
})

test.each([
  ['a proof', { headers, verifiedBy: 'github' }],
  ['headers', { headers }],
])('a request about an agent’s comment is recognised if %s shows the sender', (_, given) => {
  expect(isAboutOwnComment(toDelivery(given))).toBe(true)
})

const project = { path_with_namespace: 'acme/tools/app' }
const sha = '0123456789abcdef0123456789abcdef01234567'
const nothing = { to: undefined, commit: undefined }

test.each<[string, JsonValue, object]>([
  ['an issue', { object_kind: 'issue', project, object_attributes: { iid: 17 } }, { to: 'acme/tools/app#17' }],
  [
    'a merge request',
    { object_kind: 'merge_request', project, object_attributes: { iid: 9, last_commit: { id: sha } } },
    { to: 'acme/tools/app!9', commit: `acme/tools/app@${sha}` },
  ],
  [
    'a comment on a merge request',
    { object_kind: 'note', project, object_attributes: { id: 1 }, merge_request: { iid: 9, last_commit: { id: sha } } },
    { to: 'acme/tools/app!9', commit: `acme/tools/app@${sha}` },
  ],
  [
    'a comment on an issue',
    { object_kind: 'note', project, object_attributes: { id: 1 }, issue: { iid: 17 } },
    { to: 'acme/tools/app#17' },
  ],
  [
    'an internal comment',
    { object_kind: 'note', event_type: 'confidential_note', project, object_attributes: { id: 1 }, issue: { iid: 17 } },
    {},
  ],
  [
    'a pipeline of a merge request',
    { object_kind: 'pipeline', project, object_attributes: { iid: 3, sha }, merge_request: { iid: 9 } },
    { to: 'acme/tools/app!9', commit: `acme/tools/app@${sha}` },
  ],
  ['a push', { object_kind: 'push', project, checkout_sha: sha }, { commit: `acme/tools/app@${sha}` }],
  ['a deleted branch', { object_kind: 'push', project, checkout_sha: null, after: '0'.repeat(40) }, {}],
  ['a release', { object_kind: 'release', project, id: 3 }, {}],
])(
  'a request about %s of GitLab names the recipient of a reply and the commit, as far as it has them and a reply may be public',
  (_, given, expected) => {
    const sender = recogniseSender({ headers: { 'x-gitlab-event': 'A Hook' }, verifiedBy: 'gitlab' })
    expect(readPlace({ sender, body: toJsonBody(given) })).toEqual({ channel: 'gitlab', ...nothing, ...expected })
  },
)

test.each<[string, JsonValue, object]>([
  ['an issue', { type: 'Issue', data: { id: 'i1' } }, { to: 'i1' }],
  ['a comment', { type: 'Comment', data: { id: 'c1', issueId: 'i1' } }, { to: 'i1' }],
  ['a project update', { type: 'ProjectUpdate', data: { id: 'p1' } }, {}],
])('a request about %s of Linear names the issue for its reply, if it has one', (_, given, expected) => {
  const sender = recogniseSender({ headers: { 'linear-event': 'Issue', 'linear-delivery': 'd' }, verifiedBy: 'linear' })
  expect(readPlace({ sender, body: toJsonBody(given) })).toEqual({ channel: 'linear', ...nothing, ...expected })
})

test('a comment of an agent is recognised at GitLab by its marker, and at Linear by its id', () => {
  const marked = `It boils.\n\n${toMarker('0123456789abcdef012345678')}`
  const gitlab = recogniseSender({ headers: { 'x-gitlab-event': 'Note Hook' } })
  const isOwnNote = (note: string) =>
    isAboutOwnComment({ sender: gitlab, body: toJsonBody({ object_kind: 'note', object_attributes: { note } }) })
  expect([isOwnNote(marked), isOwnNote(`> ${marked}\n\nWhy?`)]).toEqual([true, false])
  const linear = recogniseSender({ headers: { 'linear-event': 'Comment', 'linear-delivery': 'd' } })
  const isOwnId = (id: string, type = 'Comment') =>
    isAboutOwnComment({ sender: linear, body: toJsonBody({ type, data: { id } }) })
  const id = toCommentId('0123456789abcdef012345678')
  expect([isOwnId(id), isOwnId(id, 'Issue'), isOwnId('2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9')]).toEqual([
    true,
    false,
    false,
  ])
})

test('a comment id is a UUID of version 4 derived from the nonce, and no other id is recognised', () => {
  const id = toCommentId('0123456789abcdef012345678')
  expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/)
  expect([toCommentId('0123456789abcdef012345678'), isOwnCommentId(id.toUpperCase())]).toEqual([id, true])
  expect(toCommentId('0123456789abcdef012345679')).not.toBe(id)
  for (const other of ['', id.slice(1), `${id.slice(0, -1)}g`, `f${id.slice(1)}`, crypto.randomUUID()])
    expect(isOwnCommentId(other === id ? '' : other)).toBe(false)
})
