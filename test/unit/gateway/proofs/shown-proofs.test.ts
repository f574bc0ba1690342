import { expect, test } from 'vitest'
import { listProofs } from '../../../../src/gateway/proofs/verifiers/signature.ts'

const hex = '0123456789abcdef'.repeat(4)
const none: ReadonlySet<string> = new Set()

test('of a signature that came only a part is shown, with its time', () => {
  const headers = {
    'content-type': 'application/json',
    'x-hub-signature-256': `sha256=${hex}`,
    'x-request-timestamp': '1800000000',
    'stripe-signature': `t=1800000000,v1=${hex}`,
  }
  expect(listProofs(headers, none)).toEqual([
    { name: 'x-hub-signature-256', value: 'sha256=0123456789abcdef… (71 characters)' },
    { name: 'x-request-timestamp', value: '1800000000' },
    { name: 'stripe-signature', value: 't=1800000000,v1=01234567… (80 characters)' },
  ])
})

test('a secret header, a credential and a text that is no signature are not shown', () => {
  const headers = { 'x-shop-signature': 'the secret itself', 'x-sign-token': hex, authorization: `Bearer ${hex}` }
  expect(listProofs(headers, new Set(['x-sign-token', 'authorization']))).toEqual([
    { name: 'x-shop-signature', value: '17 characters, in no usual form' },
  ])
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`x-sign-${n}`, '\u202e<b>'.repeat(9_000)]))
  expect(listProofs(many, none)).toHaveLength(4)
  expect(JSON.stringify(listProofs(many, none)).length).toBeLessThan(400)
})
