// Replies to the operator's own receiver, verified by the reference library of Standard Webhooks.
import { describe, expect, it } from 'vitest'
import { webhookChannel } from '../../src/plugins/channels/webhook.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { startFakeReceiver } from './fakes/webhook.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const section = sectionOf(webhookChannel)

async function start(config: object = {}) {
  const fake = await startFakeReceiver({ secret })
  const endpoints = { ops: { url: `${fake.url}/in?key=1`, secret } }
  return { channel: openChannel(webhookChannel, section.parse({ endpoints, ...config })), fake, to: 'ops', secret }
}

it('the reference library of Standard Webhooks accepts the signature of a reply', async () => {
  const { channel, fake } = await start()
  const text = 'Grün: "✓"\nund fertig.'
  expect(await channel.send(toOutgoing({ to: 'ops', text }))).toEqual({ kind: 'sent', id: 'msg_nonce-1' })
  expect(fake.posted).toEqual([{ runId: 'run-1', agentId: 'main', name: 'CI', text }])
  expect(fake.received[0]).toMatchObject({ method: 'POST', path: '/in', headers: { 'webhook-id': 'msg_nonce-1' } })
  expect(fake.received[0]?.headers['content-type']).toMatch(/^application\/json/)
})

it('a secret in plain text signs a reply too', async () => {
  const fake = await startFakeReceiver({ secret: 'correct horse battery', raw: true })
  const endpoints = { ops: { url: fake.url, secret: 'correct horse battery' } }
  expect(await openChannel(webhookChannel, section.parse({ endpoints })).send(toOutgoing())).toMatchObject({
    kind: 'sent',
  })
  expect(fake.posted).toHaveLength(1)
})

it('an attempt with an unknown result is repeated under the same id, and the receiver stores one reply', async () => {
  const { channel, fake } = await start()
  const message = toOutgoing({ to: 'ops' })
  expect(await channel.send(message)).toMatchObject({ kind: 'sent' })
  fake.planAnswers('reset')
  expect(await channel.send(message)).toMatchObject({ kind: 'ambiguous' })
  expect(await channel.send(message)).toMatchObject({ kind: 'sent' })
  expect(fake.received).toHaveLength(3)
  expect(fake.posted).toHaveLength(1)
  expect(channel.dedupes).toBe(true)
})

it('a wrong secret is a permanent failure, and the failure does not show the secret', async () => {
  const { fake } = await start()
  const endpoints = { ops: { url: fake.url, secret: 'whsec_AAAA' } }
  const result = await openChannel(webhookChannel, section.parse({ endpoints })).send(toOutgoing())
  expect(result).toMatchObject({ kind: 'permanent', detail: expect.stringContaining('secret') })
  expect(JSON.stringify(result)).not.toContain('AAAA')
})

it('a reply to a webhook is one request, however long it is', async () => {
  const { channel, fake } = await start()
  const text = 'A long line of words. '.repeat(5_000)
  expect(channel.split(text)).toEqual([text])
  expect(await channel.send(toOutgoing({ text }))).toMatchObject({ kind: 'sent' })
  expect(fake.posted[0]?.text).toHaveLength(text.length)
})

describe('faults of the connection to a webhook', () => {
  testTroubles((options) => start(options))
})
