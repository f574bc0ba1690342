import { expect, it } from 'vitest'
import { imessageChannel } from '../../../../src/plugins/channels/imessage.ts'
import { refuse } from '../../../e2e/fakes/imessage.ts'
import { createFetch, toOutgoing, openChannel, sectionOf } from './stage.ts'

const chat = 'chat_guid:iMessage;-;+15550100'

function createChannel(fetch?: typeof globalThis.fetch) {
  const config = { password: 'p&ss word', baseUrl: 'http://mac.local:1234' }
  return openChannel(imessageChannel, sectionOf(imessageChannel).parse(config), fetch && { fetch })
}

it.each(['+15550100', '+1 (555) 01-00', 'Someone@example.com', chat, 'chat_guid:iMessage;+;chat831551415676550949'])(
  'the address %s is a valid recipient',
  (to) => {
    expect(createChannel().whyNot(to)).toBeUndefined()
  },
)

it.each(['5550100', 'someone', 'chat_id:7', 'chat_guid:', 'a@b c', ''])(
  'the recipient "%s" is refused, and the reason names the valid forms',
  (to) => {
    expect(createChannel().whyNot(to)).toMatch(/a mail address or chat_guid:<guid>/)
  },
)

it.each([
  ['a wrong password', refuse(401, 'Authentication Error', 'Unauthorized'), 'permanent'],
  [
    'a message that is already being sent',
    refuse(400, 'Validation Error', 'Message is already queued to be sent! (Temp GUID: n)'),
    'ambiguous',
  ],
  ['any other bad request', refuse(400, 'Validation Error', 'The build is green.'), 'permanent'],
  ['a recipient without iMessage', refuse(500, 'iMessage Error', 'Failed', { guid: 'g', error: 22 }), 'permanent'],
  [
    'a message that Messages could not send',
    refuse(500, 'iMessage Error', 'Failed', { guid: 'g', error: 4 }),
    'transient',
  ],
  [
    'an error that does not say whether the message was sent',
    refuse(500, 'iMessage Error', 'The build is green.'),
    'ambiguous',
  ],
])(
  'an answer of the server about %s is a failure of its documented kind, and the failure quotes no text of the server',
  async (_, { status, body }, kind) => {
    const result = await createChannel(createFetch(status, body)).send(toOutgoing({ to: chat }))
    expect(result.kind).toBe(kind)
    expect(JSON.stringify(result)).not.toMatch(/The build is green|p&ss|p%26ss|mac\.local/)
  },
)
