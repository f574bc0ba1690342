import { expect, it } from 'vitest'
import { createWhatsAppChannel } from '../../../src/channels/whatsapp.ts'
import { channelSections } from '../../../src/model/channels-config.ts'
import { answering, toOutgoing } from './stage.ts'

const accessToken = 'EAAG-secret'

function channel(fetch?: typeof globalThis.fetch, to?: string) {
  const config = channelSections.whatsapp.unwrap().parse({ accessToken, phoneNumberId: '1065', ...(to && { to }) })
  return createWhatsAppChannel(config, fetch && { fetch })
}

it.each(['+15550100', '15550100', '+1 (555) 0100', 'whatsapp:+15550100', '+49 171.123-4567'])(
  '%s is a number that WhatsApp can be asked for',
  (to) => {
    expect(channel().whyNot(to)).toBeUndefined()
  },
)

it.each(['bob', '123', '0155501000', '+1555010012345678', '120363041234567890@g.us', '', '+1555 0100 x2'])(
  'a recipient "%s" is refused with the form that is expected',
  (to) => {
    expect(channel().whyNot(to)).toMatch(/not a recipient on whatsapp: expected a phone number with its country code/)
  },
)

it('without any recipient, the sentence names the key to set; with one in the configuration, nothing is missing', () => {
  expect(channel().whyNot(undefined)).toMatch(/set channels\.whatsapp\.to/)
  expect(channel(undefined, '+15550100').whyNot(undefined)).toBeUndefined()
})

it('a recipient from outside cannot fill a screen or write on a second line', () => {
  const why = channel().whyNot(`x\n\u001b[2J${'y'.repeat(500)}`) ?? ''
  expect(why).not.toMatch(/\p{Cc}/u)
  expect(why.length).toBeLessThan(250)
})

it.each([
  [400, 130_429, 'rate-limited'],
  [400, 131_056, 'rate-limited'],
  [400, 80_007, 'rate-limited'],
  [500, 131_016, 'transient'],
  [500, 131_000, 'transient'],
  [401, 190, 'permanent'],
  [400, 131_026, 'permanent'],
  [400, 131_047, 'permanent'],
  // not in the table: the status decides
  [400, 999_999, 'permanent'],
  [500, 999_999, 'ambiguous'],
  [503, 999_999, 'transient'],
])('an answer %i with the code %i is %s', async (status, code, kind) => {
  const error = { message: 'The build is green.', code, error_data: { details: 'The build is green.' } }
  const result = await channel(answering(status, { error })).send(toOutgoing({ to: '+15550100' }))
  expect(result.kind).toBe(kind)
  expect(result).toHaveProperty('detail', expect.stringContaining(`(${code})`))
  expect(JSON.stringify(result)).not.toMatch(/The build is green|EAAG/)
})

it('the pair limit is waited out, and so is what Retry-After asks for', async () => {
  const send = (code: number, headers = {}) =>
    channel(answering(400, { error: { code } }, headers)).send(toOutgoing({ to: '+15550100' }))
  expect(await send(131_056)).toMatchObject({ retryAfterMs: 6_000 })
  expect(await send(130_429, { 'retry-after': '7' })).toMatchObject({ retryAfterMs: 7_000 })
  expect(await send(130_429)).not.toHaveProperty('retryAfterMs')
})

it('a closed window without a template says which key to set', async () => {
  const result = await channel(answering(400, { error: { code: 131_047 } })).send(toOutgoing({ to: '+15550100' }))
  expect(result).toHaveProperty('detail', expect.stringContaining('Set channels.whatsapp.template'))
})

it('a 200 without the id of a message is no success', async () => {
  const result = await channel(answering(200, { messages: [] })).send(toOutgoing({ to: '+15550100' }))
  expect(result.kind).toBe('ambiguous')
})

it('no piece is longer than WhatsApp takes', () => {
  const pieces = channel().split('word & <word> *star*\n'.repeat(2_000))
  expect(pieces.length).toBeGreaterThan(5)
  for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(4_096)
})
