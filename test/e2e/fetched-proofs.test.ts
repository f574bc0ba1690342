// PayPal's proof over HTTP, whose certificate URL is in the request: which requests are accepted, and which attacks fail.
import { sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import { readVerdict } from './answers.ts'
import { startSignedGateway } from './proving.ts'

const fixtures = join(import.meta.dirname, '../fixtures/verify')
const certificate = readFileSync(join(fixtures, 'throw-away-certificate.pem'), 'utf8')
const key = readFileSync(join(fixtures, 'throw-away-key.pem'), 'utf8')
const certificates = 'https://api.paypal.com/v1/notifications/certs'
const body = '{"event_type":"PAYMENT.SALE.COMPLETED"}'

async function startPaypal() {
  const transport = async (url: URL) =>
    url.href === `${certificates}/CERT-1` ? { status: 200, body: certificate } : { status: 404, body: '' }
  const mapping = { match: { path: 'paypal' }, verify: { scheme: 'paypal', webhookId: 'WH-1' } }
  const gateway = await startSignedGateway([mapping], undefined, { transport })
  const time = new Date(gateway.time.now).toISOString()
  const text = `tx-1|${time}|WH-1|${crc32(body)}`
  const deliver = (name: string, payload = body) =>
    gateway.ask({
      target: '/hooks/paypal',
      headers: Object.entries({
        'content-type': 'application/json',
        'paypal-transmission-id': 'tx-1',
        'paypal-transmission-time': time,
        'paypal-cert-url': `${certificates}/${name}`,
        'paypal-auth-algo': 'SHA256withRSA',
        'paypal-transmission-sig': sign('sha256', Buffer.from(text), key).toString('base64'),
      }),
      body: payload,
    })
  return { gateway, deliver }
}

test('a request from PayPal is accepted under its certificate, and refused with another byte or another certificate', async () => {
  const { deliver } = await startPaypal()
  expect((await deliver('CERT-1')).status).toBe(200)
  expect(readVerdict(await deliver('CERT-1', `${body} `))).toBe('unauthorized')
  expect(readVerdict(await deliver('CERT-2'))).toBe('unauthorized')
})

test('a delivery is answered 503 while unknown clients use up the fetches, and is accepted when it is repeated', async () => {
  const { gateway, deliver } = await startPaypal()
  for (let index = 0; index < 20; index++) expect((await deliver(`CERT-X${index}`)).status).toBe(401)
  const first = await deliver('CERT-1')
  expect([first.status, readVerdict(first)]).toEqual([503, 'proof-unavailable'])
  gateway.time.now += 60_000
  expect((await deliver('CERT-1')).status).toBe(200)
})
