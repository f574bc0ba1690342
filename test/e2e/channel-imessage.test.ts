// Replies on iMessage, through a fake server that answers like BlueBubbles.
import { describe, expect, it } from 'vitest'
import { imessageChannel } from '../../src/plugins/channels/imessage.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { startFakeBlueBubbles } from './fakes/imessage.ts'

const password = 'p&ss#word 1'
const chat = 'iMessage;+;chat831551415676550949'
const to = `chat_guid:${chat}`

async function start(config: object = {}, given: { chats?: readonly string[]; sending?: readonly string[] } = {}) {
  const fake = await startFakeBlueBubbles({ password, ...given })
  const section = sectionOf(imessageChannel)
  const channel = openChannel(imessageChannel, section.parse({ password, baseUrl: fake.url, ...config }))
  return { channel, fake, to, secret: 'p&ss' }
}

it('a reply is posted to the named chat as plain text, under its own tempGuid', async () => {
  const { channel, fake } = await start()
  const text = 'This is **important**.'
  expect(await channel.send(toOutgoing({ to, text }))).toEqual({ kind: 'sent', id: 'guid-1' })
  expect(fake.posted).toEqual([{ chatGuid: chat, tempGuid: 'nonce-1', message: 'This is important.' }])
})

it('a reply to a person with an existing chat is posted in that chat', async () => {
  const { channel, fake } = await start({}, { chats: ['iMessage;-;+15550100'] })
  expect(await channel.send(toOutgoing({ to: '+1 555-0100' }))).toEqual({ kind: 'sent', id: 'guid-1' })
  expect(fake.posted).toEqual([
    { chatGuid: 'iMessage;-;+15550100', tempGuid: 'nonce-1', message: 'The build is green.' },
  ])
})

it('a message to a person without a chat starts a new chat', async () => {
  const { channel, fake } = await start()
  expect(await channel.send(toOutgoing({ to: 'Someone@example.com' }))).toEqual({ kind: 'sent', id: 'guid-1' })
  expect(fake.posted).toEqual([
    { addresses: ['someone@example.com'], tempGuid: 'nonce-1', message: 'The build is green.' },
  ])
})

it('no message is sent if the server closes the connection during the search for the chat', async () => {
  const { channel, fake } = await start()
  fake.planAnswers('reset')
  expect(await channel.send(toOutgoing({ to: '+15550100' }))).toMatchObject({ kind: 'transient' })
  expect(fake.received.map(({ method }) => method)).toEqual(['GET'])
})

it('the server drops a second attempt while the first one is on its way, and the result is unknown', async () => {
  const { channel, fake } = await start({}, { sending: ['nonce-1'] })
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({ kind: 'ambiguous' })
  expect(fake.posted).toEqual([])
  expect(channel.dedupes).toBe(false)
})

it('a wrong password is a permanent failure and is not shown', async () => {
  const { channel } = await start({ password: 'guessed' })
  const result = await channel.send(toOutgoing({ to }))
  expect(result).toMatchObject({ kind: 'permanent', detail: expect.stringContaining('channels.imessage.password') })
  expect(JSON.stringify(result)).not.toContain('guessed')
})

it('a probe of the iMessage server says whether it accepts the password', async () => {
  const { signal } = new AbortController()
  expect(await (await start()).channel.probe?.(signal)).toMatchObject({ ok: true })
  expect(await (await start({ password: 'guessed' })).channel.probe?.(signal)).toMatchObject({ ok: false })
})

describe('faults of the connection to iMessage', () => {
  testTroubles((options) => start(options))
})
