// The hooks that the credentials of a request open, and the rules for requests without a valid token, which are the same for every hook.
import { expect, test } from 'vitest'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { Mapping, type MappingInput } from '../../../../src/core/model/mapping.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import { findMapping } from '../../../../src/core/mapping/hook.ts'
import { toGeneration, toTestDelivery } from './decide.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

function findRules(mappings: readonly (MappingInput & { maxBodyBytes?: number })[], name = 'unknown') {
  const generation = createGeneration({
    senders: builtInSenders,
    config: ConfigSchema.parse({ hooks: { token: 'hook-secret' }, server: { maxBodyBytes: 1_000 } }),
    mappings: mappings.map(({ maxBodyBytes, ...mapping }, index) => ({
      ...Mapping.parse(mapping),
      id: `m-${index}`,
      maxBodyBytes,
    })),
    transforms: new Map(),
  })
  return generation.findHook(name).tokenless
}

const github = { match: { path: 'a' }, verify: { scheme: 'github', secret: 's' } }
const large = { ...github, match: { path: '/b/' }, maxBodyBytes: 5_000 }

test('the body limit before a proof is the largest limit of all signed mappings, and mappings that only the token opens do not raise it', () => {
  expect(findRules([github]).maxBodyBytes).toBe(1_000)
  expect(findRules([github, large]).maxBodyBytes).toBe(5_000)
  expect(findRules([github, { match: { path: 'open' }, maxBodyBytes: 9_000 }]).maxBodyBytes).toBe(1_000)
})

test('a signed mapping without a path raises the body limit before a proof to the largest limit of all mappings, because it takes every hook', () => {
  const anywhere = { verify: github.verify }
  const open = { match: { path: 'open' }, maxBodyBytes: 9_000 }
  expect(findRules([open, anywhere], 'open').maxBodyBytes).toBe(9_000)
  expect(findRules([open, anywhere], 'unknown').maxBodyBytes).toBe(9_000)
})

test('before a proof, every hook name has the same body limit, and the same header counts as a proof', () => {
  for (const name of ['a', 'b', 'wake', '', 'unknown']) {
    expect(findRules([github, large], name).maxBodyBytes).toBe(5_000)
    expect(findRules([github, large], name).isProofShown({ 'x-hub-signature-256': 'sha256=00' })).toBe(true)
  }
})

test('only the headers of a scheme in use count as a proof: a Bearer token and a proof in the body do not', () => {
  const verify = [
    github.verify,
    { scheme: 'alertmanager', secret: 's' },
    { scheme: 'mailgun', secret: 's' },
    { scheme: 'postmark', secret: 'u:p' },
  ]
  const { isProofShown } = findRules(verify.map((one, index) => ({ match: { path: `p-${index}` }, verify: one })))
  expect(isProofShown({ 'x-hub-signature-256': 'sha256=00' })).toBe(true)
  expect(isProofShown({ 'x-hub-signature-256': 'sha256=00', authorization: 'Bearer x' })).toBe(true)
  expect(isProofShown({ authorization: 'Basic eA==' })).toBe(true)
  for (const headers of [{}, { authorization: 'Bearer x' }, { authorization: 'bearer' }, { 'stripe-signature': 't=1' }])
    expect(isProofShown(headers)).toBe(false)
})

test('no header counts as a proof if no mapping is signed', () => {
  expect(findRules([{ match: { path: 'open' } }]).isProofShown({ 'x-hub-signature-256': 'sha256=00' })).toBe(false)
})

test('the trace names the credential that the request lacks for a mapping: the token, the proof, or the token in addition to the proof', () => {
  const signed = { ...github, id: 'signed', match: { path: 'x' } }
  const generation = toGeneration([
    { id: 'plain', match: { path: 'x' } },
    { ...signed, id: 'other', verify: { scheme: 'stripe', secret: 's' } },
    { ...signed, id: 'both', verify: { ...github.verify, secret: 't', also: 'token' } },
    signed,
  ])
  const signedFor = generation.mappings.filter(({ id }) => id !== 'other').flatMap(({ identity }) => identity.proves)
  const delivery = { ...toTestDelivery('x', {}), admitted: { token: false, signedFor } }
  const { trace, mapping } = findMapping(generation.findHook('x'), delivery)
  expect(mapping?.id).toBe('signed')
  expect(trace.map(({ mappingId, why }) => `${mappingId}: ${why}`)).toEqual([
    'plain: the request has no hook token, which this mapping requires because it has no verify',
    'other: the request has no valid proof for this mapping',
    'both: the request has no hook token, which verify.also of this mapping requires',
    'signed: path is "x"',
  ])
})
