import { sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createPinnedFetch } from '../../../../../src/gateway/proofs/verifiers/pinned-fetch.ts'
import { now, requestOf, verifierOf, withHeader } from './stage.ts'

const fixtures = join(import.meta.dirname, '../../../../fixtures/verify')
const certificate = readFileSync(join(fixtures, 'throw-away-certificate.pem'), 'utf8')
const key = readFileSync(join(fixtures, 'throw-away-key.pem'), 'utf8')

function fetchOf(answer: { status: number; body: string } = { status: 200, body: certificate }) {
  const asked: string[] = []
  const fetch = createPinnedFetch({
    now: () => now,
    transport: async (url) => {
      asked.push(url.href)
      return answer
    },
  })
  return { asked, fetch }
}

describe('notifications of SNS', () => {
  const settings = { scheme: 'aws-sns', topicArn: 'arn:aws:sns:us-east-1:1:topic' }
  const url = 'https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem'

  function buildMessage(change: Record<string, string> = {}, version: '1' | '2' = '2') {
    const fields: Record<string, string> = {
      Type: 'Notification',
      MessageId: 'm-1',
      TopicArn: settings.topicArn,
      Message: 'hello',
      Timestamp: new Date(now).toISOString(),
      ...change,
    }
    const names = ['Message', 'MessageId', 'Subject', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
    const text = names.map((name) => (fields[name] === undefined ? '' : `${name}\n${fields[name]}\n`)).join('')
    const Signature = sign(version === '1' ? 'sha1' : 'sha256', Buffer.from(text), key).toString('base64')
    return { SigningCertURL: url, SignatureVersion: version, Signature, ...fields }
  }
  const sends = (body: object, { fetch } = fetchOf()) =>
    verifierOf(settings, { fetch }).verify(
      requestOf({ 'x-amz-sns-message-type': 'Notification' }, JSON.stringify(body)),
    )

  test('a notification of SNS is proven with and without a subject, in both versions of the signature', async () => {
    expect(await sends(buildMessage())).toEqual({ ok: true, id: 'm-1' })
    expect(await sends(buildMessage({ Subject: 'a subject' }))).toEqual({ ok: true, id: 'm-1' })
    expect(await sends(buildMessage({}, '1'))).toEqual({ ok: true, id: 'm-1' })
    expect(await sends(buildMessage({ Type: 'SubscriptionConfirmation', SubscribeURL: 'u', Token: 't' }))).toEqual({
      ok: true,
      id: 'm-1',
    })
  })

  test('a certificate is kept after a valid proof even if unknown clients name many other certificates, and is not kept after a forged request', async () => {
    for (const isForged of [false, true]) {
      const asked: string[] = []
      const clock = { now }
      const fetch = createPinnedFetch({
        now: () => clock.now,
        transport: async ({ href }) => {
          asked.push(href)
          return { status: 200, body: certificate }
        },
      })
      await sends({ ...buildMessage(), ...(isForged ? { Message: 'forged' } : {}) }, { asked, fetch })
      for (let index = 0; index < 110; index++) {
        clock.now += 4_000
        const SigningCertURL = url.replace('-1.pem', `-x${index}.pem`)
        await sends({ ...buildMessage(), SigningCertURL, Message: 'forged' }, { asked, fetch })
      }
      expect(await sends(buildMessage(), { asked, fetch })).toEqual({ ok: true, id: 'm-1' })
      expect(asked.filter((href) => href === url).length).toBe(isForged ? 2 : 1)
    }
  })

  test('a notification of SNS with another Message, MessageId or Subject, or another version of its signature, is refused', async () => {
    for (const change of [{ Message: 'x' }, { MessageId: 'm-2' }, { Subject: 'added' }, { SignatureVersion: '1' }]) {
      expect(await sends({ ...buildMessage(), ...change })).toMatchObject({ ok: false, fault: 'sender' })
    }
  })

  test('with a captured signature, the Subject of a message cannot be moved into its MessageId', async () => {
    const { Signature } = buildMessage({ Subject: 'a subject' })
    const joined = { ...buildMessage(), MessageId: 'm-1\nSubject\na subject', Signature }
    expect(await sends(joined)).toMatchObject({ ok: false, reason: expect.stringContaining('more than one line') })
  })

  test('a valid message of another topic is refused without a fetch', async () => {
    const world = fetchOf()
    expect(await sends(buildMessage({ TopicArn: 'arn:aws:sns:us-east-1:666:evil' }), world)).toMatchObject({
      ok: false,
    })
    expect(world.asked).toEqual([])
  })

  test('the time window is the hour in which SNS repeats a message, plus five minutes for the clocks', async () => {
    const buildMessageAt = (seconds: number) =>
      buildMessage({ Timestamp: new Date(now + seconds * 1000).toISOString() })
    expect(await sends(buildMessageAt(-3900))).toEqual({ ok: true, id: 'm-1' })
    expect(await sends(buildMessageAt(-3901))).toMatchObject({ ok: false })
    expect(await sends(buildMessageAt(3901))).toMatchObject({ ok: false })
  })

  test('a certificate that cannot be fetched is a fault of the gateway, and an invalid one is a fault of the sender', async () => {
    expect(await sends(buildMessage(), fetchOf({ status: 503, body: '' }))).toMatchObject({
      ok: false,
      fault: 'gateway',
    })
    expect(await sends(buildMessage(), fetchOf({ status: 200, body: 'no pem' }))).toMatchObject({
      ok: false,
      fault: 'sender',
    })
  })

  test('the header of SNS claims the scheme', () => {
    const verifier = verifierOf(settings)
    expect(verifier.isClaimed({ 'x-amz-sns-message-type': 'Notification' })).toBe(true)
    expect(verifier.isClaimed({})).toBe(false)
  })
})

describe('requests of PayPal', () => {
  const body = '{"id":"WH-1","event_type":"PAYMENT.SALE.COMPLETED"}'
  const time = new Date(now).toISOString()

  /** CRC-32 as IEEE 802.3 defines it, bit by bit. */
  function crcOf(text: string): number {
    let crc = 0xffffffff
    for (const byte of Buffer.from(text)) {
      crc ^= byte
      for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
    }
    return (crc ^ 0xffffffff) >>> 0
  }

  /** The text with four more bytes, so that it has the wanted checksum. They are computed by running CRC-32 backwards from that checksum. */
  function appendChecksum(text: string, wanted: number): Buffer {
    let register = wanted ^ 0xffffffff
    for (let bit = 0; bit < 32; bit++) {
      register = register < 0 ? ((register ^ 0xedb88320) << 1) | 1 : register << 1
    }
    const patch = Buffer.alloc(4)
    patch.writeInt32LE(register ^ crcOf(text) ^ 0xffffffff)
    return Buffer.concat([Buffer.from(text), patch])
  }

  const request = requestOf(
    {
      'paypal-transmission-id': 'tx-1',
      'paypal-transmission-time': time,
      'paypal-cert-url': 'https://api.paypal.com/v1/notifications/certs/CERT-1',
      'paypal-auth-algo': 'SHA256withRSA',
      'paypal-transmission-sig': sign('sha256', Buffer.from(`tx-1|${time}|WH-ID|${crcOf(body)}`), key).toString(
        'base64',
      ),
    },
    body,
  )
  const verify = (given = request, webhookId = 'WH-ID', world = fetchOf()) =>
    verifierOf({ scheme: 'paypal', webhookId }, { fetch: world.fetch }).verify(given)

  test('for PayPal, only the signed bytes for the configured webhook are proven', async () => {
    expect(await verify()).toEqual({ ok: true, id: 'tx-1' })
    expect(await verify(request, 'WH-OTHER')).toMatchObject({ ok: false })
    expect(await verify({ ...request, rawBody: Buffer.from(`${body} `) })).toMatchObject({ ok: false })
    expect(await verify(withHeader(request, 'paypal-transmission-id', 'tx-2'))).toMatchObject({ ok: false })
    expect(await verify(withHeader(request, 'paypal-auth-algo', 'SHA1withRSA'))).toMatchObject({ ok: false })
    for (const name of Object.keys(request.headers)) {
      expect(await verify(withHeader(request, name, undefined))).toMatchObject({ ok: false, fault: 'sender' })
    }
  })

  test('another body with the same checksum has the signed id of the captured request, and is refused after its time window', async () => {
    // CRC-32 is linear: four bytes bring any text to any checksum
    const forged = { ...request, rawBody: appendChecksum('{"id":"WH-2","resource":"forged"}', crcOf(body)) }
    expect(await verify(forged)).toEqual({ ok: true, id: 'tx-1' })
    expect(verifierOf({ scheme: 'paypal', webhookId: 'WH-ID' }).covers).toEqual({ id: true, body: false })
    // PayPal retries for three days, and the clocks may differ by five minutes
    const window = (3 * 24 * 3600 + 300) * 1000
    const at = (time: number, toleranceSeconds?: number) =>
      verifierOf(
        { scheme: 'paypal', webhookId: 'WH-ID', ...(toleranceSeconds && { toleranceSeconds }) },
        { fetch: fetchOf().fetch, now: () => time },
      ).verify(forged)
    expect(await at(now + window)).toMatchObject({ ok: true })
    expect(await at(now + window + 1000)).toMatchObject({ ok: false, reason: expect.stringContaining('behind') })
    expect(await at(now - window - 1000)).toMatchObject({ ok: false, reason: expect.stringContaining('ahead') })
    expect(await at(now + 301_000, 300)).toMatchObject({ ok: false })
  })

  test('a certificate of another host is never fetched', async () => {
    const world = fetchOf()
    const evil = withHeader(request, 'paypal-cert-url', 'https://api.paypal.com.evil.example/v1/notifications/certs/C')
    expect(await verify(evil, 'WH-ID', world)).toMatchObject({ ok: false, fault: 'sender' })
    expect(world.asked).toEqual([])
  })
})
