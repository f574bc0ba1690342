// Mappings whose commit status is never set, or whose reply has no recipient.
import { expect, test } from 'vitest'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import { findPlaceWarnings } from '../../../../src/gateway/replay/place-warnings.ts'
import { toGeneration } from '../../core/mapping/decide.ts'

const github = { token: 'ghp_token' }
const gitlab = { token: 'glpat-token' }
const buildVerify = (scheme: string): MappingInput['verify'] => ({ scheme, secret: 'a-secret-of-more-than-16-bytes' })
const warn = (mapping: MappingInput, channels: object = { github, gitlab }) =>
  findPlaceWarnings(toGeneration([{ messageTemplate: 'x', ...mapping }], { config: { channels } })).map(
    ({ mappingId, text }) => `${mappingId}: ${text}`,
  )

test.each<[string, MappingInput, object, RegExp]>([
  [
    'status without verify',
    { status: 'review' },
    { github },
    /^mapping-1: status is never set: .* no verify\. Set verify/,
  ],
  [
    'status of another sender',
    { status: 'review', verify: buildVerify('stripe') },
    { github },
    /status is never set: verify has the scheme "stripe"/,
  ],
  [
    'status of a forge whose channel is missing',
    { status: 'review', verify: buildVerify('gitlab-token') },
    { github },
    /channels\.gitlab is not configured/,
  ],
  [
    'channel without verify',
    { channel: 'github' },
    { github },
    /^mapping-1: channel "github" has no recipient: .* no verify/,
  ],
  [
    'channel of another forge',
    { channel: 'gitlab', verify: buildVerify('github') },
    { github, gitlab },
    /channel "gitlab" has no recipient: .* the scheme "github"/,
  ],
  [
    'message without an agent',
    { action: 'deliver', channel: 'github' },
    { github },
    /channel "github" has no recipient/,
  ],
  [
    'list with a recipient that has only a channel',
    { action: 'deliver', to: [{ channel: 'console' }, { channel: 'github' }] },
    { github },
    /channel "github" has no recipient/,
  ],
])('a mapping gets a warning about a %s', (_, mapping, channels, expected) => {
  expect(warn(mapping, channels)).toEqual([expect.stringMatching(expected)])
})

test.each<[string, MappingInput, object]>([
  [
    'whose status and reply go to its own sender',
    { status: 'review', channel: 'github', verify: buildVerify('github') },
    { github },
  ],
  [
    'whose sender proves itself with a token of GitLab',
    { status: 'review', channel: 'gitlab', verify: buildVerify('gitlab-token') },
    { gitlab },
  ],
  [
    'with generic-hmac and the source github',
    {
      status: 'review',
      verify: { ...buildVerify('generic-hmac'), scheme: 'generic-hmac', header: 'x-sig' },
      match: { source: 'github' },
    },
    { github },
  ],
  ['with a recipient', { channel: 'github', to: 'acme/app#17' }, { github }],
  [
    'with a recipient in the section of the channel',
    { channel: 'github' },
    { github: { ...github, to: 'acme/app#1' } },
  ],
  ['with a default recipient', { channel: 'github' }, { github, default: { channel: 'github', to: 'acme/app#1' } }],
  ['whose transform can name a recipient', { channel: 'github', transform: { module: 'x.ts' } }, { github }],
  ['that sends no reply', { channel: 'github', deliver: false }, { github }],
])('a mapping %s gets no warning', (_, mapping, channels) => {
  expect(warn(mapping, channels)).toEqual([])
})
