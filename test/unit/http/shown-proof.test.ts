import { expect, test } from 'vitest'
import { Config } from '../../../src/model/config.ts'
import { Mapping, type MappingInput } from '../../../src/model/mapping.ts'
import { createGeneration } from '../../../src/pipeline/generation.ts'
import { findClaimedSchemes } from '../../../src/http/claimed-schemes.ts'

function askedOf(mappings: readonly (MappingInput & { maxBodyBytes?: number })[]) {
  return findClaimedSchemes(
    createGeneration({
      config: Config.parse({ hooks: { token: 'hook-secret' }, server: { maxBodyBytes: 1_000 } }),
      mappings: mappings.map(({ maxBodyBytes, ...mapping }, index) => ({
        ...Mapping.parse(mapping),
        id: `m-${index}`,
        maxBodyBytes,
      })),
      transforms: new Map(),
    }),
  )
}

const github = { match: { path: 'a' }, verify: { scheme: 'github', secret: 's' } }

test('before a proof every name has the limit of the largest signed hook, and token hooks lend none', () => {
  expect(askedOf([github]).limit).toBe(1_000)
  expect(askedOf([github, { ...github, match: { path: 'b' }, maxBodyBytes: 5_000 }]).limit).toBe(5_000)
  expect(askedOf([github, { match: { path: 'open' }, maxBodyBytes: 9_000 }]).limit).toBe(1_000)
})

test('a proof is shown by headers of a scheme in use; a Bearer token and a proof in the body show none', () => {
  const verify = [
    github.verify,
    { scheme: 'alertmanager', secret: 's' },
    { scheme: 'mailgun', secret: 's' },
    { scheme: 'postmark', secret: 'u:p' },
  ]
  const { isShown } = askedOf(verify.map((one, index) => ({ match: { path: `p-${index}` }, verify: one })))
  expect(isShown({ 'x-hub-signature-256': 'sha256=00' })).toBe(true)
  expect(isShown({ 'x-hub-signature-256': 'sha256=00', authorization: 'Bearer x' })).toBe(true)
  expect(isShown({ authorization: 'Basic eA==' })).toBe(true)
  for (const headers of [{}, { authorization: 'Bearer x' }, { authorization: 'bearer' }, { 'stripe-signature': 't=1' }])
    expect(isShown(headers)).toBe(false)
})

test('without a signed mapping nothing is shown by anything', () => {
  expect(askedOf([{ match: { path: 'open' } }]).isShown({ 'x-hub-signature-256': 'sha256=00' })).toBe(false)
})
