// What the table of the README says about a captured request that is sent again: by what it is recognised or refused.
import { expect, test } from 'vitest'
import { toRepeats } from '../../../readme-senders.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { schemes } = builtInSenders

const findRepeats = (id: string) => schemes.filter((scheme) => scheme.id === id).map(toRepeats)[0]

test.each([
  ['standard-webhooks', 'refused by time · by signed id'],
  ['paypal', 'refused by time · by signed id'],
  ['mailgun', 'refused by time · by signed id'],
  ['stripe', 'refused by time · by signed id'],
  ['notion', 'by signed id'],
  // this sender signs the body, and its id is in a header
  ['github', 'by unsigned id'],
  ['linear', 'refused by time · by signed text'],
  // this sender has its id in the body, and signs nothing
  ['telegram', 'by unsigned id'],
  ['azure-devops', 'by unsigned id'],
  // the token of this sender expires, and until then it is valid for every body
  ['google-pubsub', 'refused by time · by unsigned id'],
  // this sender signs no id, but the text with its time
  ['sendgrid', 'refused by time · by signed text'],
  ['zoom', 'refused by time · by signed text'],
  ['plaid', 'refused by time'],
  ['netlify', 'not at all'],
  ['meta', 'not at all'],
  ['grafana', 'not at all; refused by time where the time is signed'],
])('a captured request of %s that is sent again is recognised or refused: %s', (id, expected) => {
  expect(findRepeats(id)).toBe(expected)
})

test('a proof that is only a secret does not cover the delivery id', () => {
  const secrets = schemes.filter(({ kind }) => kind === 'token' || kind === 'basic' || kind === 'client-state')
  expect(secrets.map(toRepeats).filter((text) => text.includes('by signed id'))).toEqual([])
})
