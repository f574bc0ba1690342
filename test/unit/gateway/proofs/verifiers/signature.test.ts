import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  buildSignatureHint,
  findSignature as findSignatureOf,
} from '../../../../../src/gateway/proofs/verifiers/signature.ts'
import { builtInSenders } from '../../../../../src/gateway/built-in.ts'

const findSignature = (headers: Readonly<Record<string, string>>) => findSignatureOf(headers, builtInSenders)

const sign = (algorithm: string, encoding: 'hex' | 'base64' | 'base64url') =>
  createHmac(algorithm, 'a secret').update('{}').digest(encoding)

describe('the form of an HMAC shows its algorithm and its encoding', () => {
  for (const algorithm of ['sha1', 'sha256', 'sha384', 'sha512'] as const) {
    test.each(['hex', 'base64', 'base64url'] as const)(`the form of an HMAC shows ${algorithm} in %s`, (encoding) => {
      const plain = { 'x-acme-signature': sign(algorithm, encoding) }
      // base64url looks like base64 if the digest has neither "-" nor "_", and needs no padding
      const isBoth = sign(algorithm, 'base64') === sign(algorithm, 'base64url')
      const shown = encoding === 'base64url' && isBoth ? 'base64' : encoding
      expect(findSignature(plain)).toMatchObject({ prefix: '', algorithm, encoding: shown })
      for (const prefix of ['sha256=', 'v0=', 'HMAC-SHA256 '])
        expect(findSignature({ 'x-acme-key': `${prefix}${sign(algorithm, encoding)}` })).toMatchObject({
          header: 'x-acme-key',
          prefix,
          algorithm,
          encoding: shown,
        })
    })
  }
})

test.each([
  ['a token', { authorization: `Bearer ${sign('sha256', 'hex')}` }],
  ['an id', { 'x-request-id': '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' }],
  ['a checksum of the body', { 'content-digest': `sha-256=${sign('sha256', 'base64')}` }],
  ['a short value', { 'x-acme-signature': 'sha256=757107ea' }],
  ['a long value', { 'x-acme-signature': `sha256=${'a'.repeat(10_000)}` }],
])('%s is not taken for a signature', (_, headers) => {
  expect(findSignature(headers)).toBeUndefined()
})

test('of several signatures in a request, the strongest is named, with the header of its time', () => {
  expect(
    findSignature({
      'x-acme-signature-256': `sha256=${sign('sha256', 'hex')}`,
      'x-acme-signature': `sha1=${sign('sha1', 'hex')}`,
      'x-acme-request-timestamp': '1790000000',
    }),
  ).toMatchObject({ header: 'x-acme-signature-256', time: { header: 'x-acme-request-timestamp', unit: 's' } })
})

test('for a signature with the headers of a known sender, the suggestion is the scheme of that sender', () => {
  const signature = findSignature({
    'x-github-event': 'push',
    'x-hub-signature-256': `sha256=${sign('sha256', 'hex')}`,
  })
  expect(signature).toEqual({ kind: 'sender', source: 'github' })
  expect(
    signature && buildSignatureHint(signature, { hook: 'code', mapping: undefined, senders: builtInSenders }),
  ).toMatchObject({
    config: expect.stringContaining('"verify": { "scheme": "github", "secret": "${GITHUB_SECRET}" }'),
  })
})

test('for a signature with several fields, the suggestion is a verifier in code', () => {
  const signature = findSignature({ 'x-acme-signature': `t=1790000000,v1=${sign('sha256', 'hex')}` })
  expect(
    signature && buildSignatureHint(signature, { hook: 'acme', mapping: undefined, senders: builtInSenders }),
  ).toMatchObject({
    next: expect.stringContaining('hooks/verifiers'),
    config: null,
  })
})

test('no suggestion for the configuration has a hook name that an unknown client made up', () => {
  const signature = findSignature({ 'x-acme-signature': sign('sha256', 'hex') })
  const { config } = buildSignatureHint(signature ?? { kind: 'fields', header: '' }, {
    hook: 'a"}\u001b',
    mapping: undefined,
    senders: builtInSenders,
  })
  expect(config).toContain('"path": "<hook>"')
})

test('a list of signatures of one form is read as this form, and a list of two forms is not', () => {
  const one = `sha256=${sign('sha256', 'hex')}`
  for (const value of [`${one},${one}`, `${one}, ${one}`])
    expect(findSignature({ 'x-acme-signature': value })).toMatchObject({ kind: 'hmac', prefix: 'sha256=' })
  expect(findSignature({ 'x-acme-signature': `${one},sha1=${sign('sha1', 'hex')}` })?.kind).not.toBe('hmac')
})

test('the suggested mapping has the name of its hook as its id, or a free name if a mapping has that id', () => {
  const signature = findSignature({ 'x-acme-signature': sign('sha256', 'hex') })
  if (signature === undefined) throw new Error('no signature')
  const readConfig = (hook: string, ids: readonly string[]) =>
    buildSignatureHint(signature, { hook, mapping: undefined, senders: builtInSenders, ids }).config
  expect(readConfig('acme', ['other'])).toContain('"id": "acme", ')
  expect(readConfig('team/acme', ['acme', 'acme-2'])).toContain('"id": "acme-3", ')
  expect(readConfig('a"}', [])).not.toContain('"id"')
})
