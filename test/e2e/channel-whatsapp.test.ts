// Replies on WhatsApp, through a fake Cloud API that checks requests as documented.
import { describe, expect, it } from 'vitest'
import { whatsappChannel } from '../../src/plugins/channels/whatsapp.ts'
import { toOutgoing, openChannel, sectionOf } from '../unit/plugins/channels/stage.ts'
import { testTroubles } from './channel-troubles.ts'
import { startFakeWhatsApp } from './fakes/whatsapp.ts'

const accessToken = 'EAAG-system-user'
const phoneNumberId = '106540352242922'
const to = '+1 555-0100'

async function start(config: object = {}, closed: readonly string[] = []) {
  const fake = await startFakeWhatsApp({ accessToken, phoneNumberId, templates: ['agent_reply'], closed })
  const section = sectionOf(whatsappChannel)
  const channel = openChannel(
    whatsappChannel,
    section.parse({ accessToken, phoneNumberId, baseUrl: fake.baseUrl, ...config }),
  )
  return { channel, fake, to, secret: accessToken }
}

it('a reply is posted as a text without a link preview, to the digits of the number', async () => {
  const { channel, fake } = await start()
  expect(await channel.send(toOutgoing({ to }))).toEqual({ kind: 'sent', id: 'wamid.1' })
  expect(fake.posted).toEqual([
    {
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      to: '15550100',
      type: 'text',
      text: { body: 'The build is green.', preview_url: false },
    },
  ])
  expect(fake.received[0]).toMatchObject({ method: 'POST', path: `/v25.0/${phoneNumberId}/messages` })
})

it('Markdown arrives in the markup of WhatsApp, and a long reply arrives as several messages', async () => {
  const { channel, fake } = await start()
  const pieces = channel.split(`This is **important**.\n\n${'A long line of words. '.repeat(400)}`)
  for (const text of pieces) expect(await channel.send(toOutgoing({ to, text }))).toMatchObject({ kind: 'sent' })
  expect(pieces.length).toBeGreaterThan(1)
  expect(fake.posted).toHaveLength(pieces.length)
  expect(fake.posted[0]).toHaveProperty('text.body', expect.stringMatching(/^This is \*important\*\./))
})

it('a recipient who has not written for 24 hours gets the configured template, on one line', async () => {
  const { channel, fake } = await start({ template: { name: 'agent_reply', language: 'en_US' } }, ['15550100'])
  const text = `First line\n\n\tsecond${' '.repeat(9)}line ${'x'.repeat(2_000)}`
  expect(await channel.send(toOutgoing({ to, text }))).toEqual({ kind: 'sent', id: 'wamid.1' })
  expect(fake.posted).toEqual([
    {
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      to: '15550100',
      type: 'template',
      template: {
        name: 'agent_reply',
        language: { code: 'en_US' },
        components: [
          { type: 'body', parameters: [{ type: 'text', text: expect.stringMatching(/^First line second line x+…$/) }] },
        ],
      },
    },
  ])
})

it('a reply after 24 hours without a template is a permanent failure whose reason names the key', async () => {
  const { channel, fake } = await start({}, ['15550100'])
  expect(await channel.send(toOutgoing({ to }))).toEqual({
    kind: 'permanent',
    detail: expect.stringMatching(/\(131047\).*channels\.whatsapp\.template/),
  })
  expect(fake.posted).toEqual([])
})

it('a template that Meta does not know is a permanent failure', async () => {
  const { channel } = await start({ template: { name: 'unknown' } }, ['15550100'])
  expect(await channel.send(toOutgoing({ to }))).toMatchObject({
    kind: 'permanent',
    detail: expect.stringContaining('132001'),
  })
})

it('a wrong WhatsApp token is a permanent failure and is not shown', async () => {
  const { channel } = await start({ accessToken: 'EAAG-wrong' })
  const result = await channel.send(toOutgoing({ to }))
  expect(result).toMatchObject({ kind: 'permanent', detail: expect.stringContaining('channels.whatsapp.accessToken') })
  expect(JSON.stringify(result)).not.toContain('EAAG-wrong')
})

it('a probe of WhatsApp posts nothing, and says whether the number and the token are valid', async () => {
  const { signal } = new AbortController()
  const { channel, fake } = await start()
  expect(await channel.probe?.(signal)).toMatchObject({ ok: true })
  expect(fake.posted).toEqual([])
  const wrong = await start({ accessToken: 'EAAG-wrong' })
  expect(await wrong.channel.probe?.(signal)).toMatchObject({ ok: false, detail: expect.stringContaining('190') })
})

describe('faults of the connection to WhatsApp', () => {
  testTroubles((options) => start(options))
})
