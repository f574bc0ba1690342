import { expect, test } from 'vitest'
import { findReason, unclaimedReason } from '../../../../src/gateway/deliveries/refused/reasons.ts'

const entry = (mappingId: string, why: string) => ({ mappingId, matched: false, why })
const refusal = { status: 401, error: 'No valid credential.' }

test('with several signed mappings on a hook, the reason is that of the first proof that was checked, and not that of the last mapping', () => {
  const trace = [
    entry('stripe', `${unclaimedReason} stripe`),
    entry('github', 'the signature is not that of the body'),
    entry('shop', `${unclaimedReason} generic-hmac`),
  ]
  expect(findReason({ ...refusal, trace })).toBe('github: the signature is not that of the body')
})

test('if no proof was checked, the reason names what is missing', () => {
  const trace = [entry('stripe', `${unclaimedReason} stripe`)]
  expect(findReason({ ...refusal, trace })).toBe(`stripe: ${unclaimedReason} stripe`)
  expect(findReason({ ...refusal, trace: [] })).toBe('No valid credential.')
})

test('the reason of an invalid payload is its error, and not why the mapping matched', () => {
  const trace = [{ mappingId: 'tickets', matched: true, why: 'path is "tickets"' }]
  expect(findReason({ status: 400, error: 'text: must not be blank.', trace })).toBe('text: must not be blank.')
})
