import { expect, it } from 'vitest'
import { whatsappChannel } from '../../../../src/plugins/channels/whatsapp.ts'
import { createFetch, toOutgoing, openChannel, sectionOf } from './stage.ts'

const accessToken = 'EAAG-secret'

function createChannel(fetch?: typeof globalThis.fetch, to?: string) {
  const config = sectionOf(whatsappChannel).parse({ accessToken, phoneNumberId: '1065', ...(to && { to }) })
  return openChannel(whatsappChannel, config, fetch && { fetch })
}

it.each(['+15550100', '15550100', '+1 (555) 0100', 'whatsapp:+15550100', '+49 171.123-4567'])(
  'the number %s is a valid recipient',
  (to) => {
    expect(createChannel().whyNot(to)).toBeUndefined()
  },
)

it.each(['bob', '123', '0155501000', '+1555010012345678', '120363041234567890@g.us', '', '+1555 0100 x2'])(
  'the recipient "%s" is refused, and the reason names the valid form',
  (to) => {
    expect(createChannel().whyNot(to)).toMatch(
      /not a recipient on whatsapp: expected a phone number with its country code/,
    )
  },
)

it('a message without a recipient goes to the configured one, or its error names the key to set', () => {
  expect(createChannel().whyNot(undefined)).toMatch(/set channels\.whatsapp\.to/)
  expect(createChannel(undefined, '+15550100').whyNot(undefined)).toBeUndefined()
})

it('the reason for an invalid recipient is one short line', () => {
  const why = createChannel().whyNot(`x\n\u001b[2J${'y'.repeat(500)}`) ?? ''
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
  // this code is not in the table, so the status decides
  [400, 999_999, 'permanent'],
  [500, 999_999, 'ambiguous'],
  [503, 999_999, 'transient'],
])('an answer %i with the code %i is a failure of the kind %s', async (status, code, kind) => {
  const error = { message: 'The build is green.', code, error_data: { details: 'The build is green.' } }
  const result = await createChannel(createFetch(status, { error })).send(toOutgoing({ to: '+15550100' }))
  expect(result.kind).toBe(kind)
  expect(result).toHaveProperty('detail', expect.stringContaining(`(${code})`))
  expect(JSON.stringify(result)).not.toMatch(/The build is green|EAAG/)
})

it('a message waits six seconds after the limit for one recipient, and as long as Retry-After says after another limit', async () => {
  const send = (code: number, headers = {}) =>
    createChannel(createFetch(400, { error: { code } }, headers)).send(toOutgoing({ to: '+15550100' }))
  expect(await send(131_056)).toMatchObject({ retryAfterMs: 6_000 })
  expect(await send(130_429, { 'retry-after': '7' })).toMatchObject({ retryAfterMs: 7_000 })
  expect(await send(130_429)).not.toHaveProperty('retryAfterMs')
})

it('the error about a recipient who has not written for 24 hours names the template key', async () => {
  const result = await createChannel(createFetch(400, { error: { code: 131_047 } })).send(
    toOutgoing({ to: '+15550100' }),
  )
  expect(result).toHaveProperty('detail', expect.stringContaining('Set channels.whatsapp.template'))
})

it('an answer 200 without a message id is ambiguous', async () => {
  const result = await createChannel(createFetch(200, { messages: [] })).send(toOutgoing({ to: '+15550100' }))
  expect(result.kind).toBe('ambiguous')
})

it('no piece is longer than WhatsApp accepts', () => {
  const pieces = createChannel().split('word & <word> *star*\n'.repeat(2_000))
  expect(pieces.length).toBeGreaterThan(5)
  for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(4_096)
})
