// Feishu and Lark: signed and encrypted events, events with a token, and the check of a URL. Signs and encrypts with code of its own.
import { createCipheriv, createHash, createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { decryptLark } from '../../../../../src/plugins/senders/lark.ts'
import { isProven, now, reasonOf, requestOf, verifierOf } from './stage.ts'

const encryptKey = 'an-encrypt-key-of-the-app'
const token = 'l802sPhp2r1AMSPDTaJc5eYZOEnKypxx'
const seconds = now / 1_000
const signed = { scheme: 'lark', secret: encryptKey }
const json = { 'content-type': 'application/json' }

function encrypt(event: unknown, key = encryptKey): string {
  const iv = Buffer.alloc(16, 7)
  const cipher = createCipheriv('aes-256-cbc', createHash('sha256').update(key).digest(), iv)
  return Buffer.concat([iv, cipher.update(JSON.stringify(event)), cipher.final()]).toString('base64')
}

const toBody = (event: unknown, key = encryptKey) => JSON.stringify({ encrypt: encrypt(event, key) })

function toHash(parts: readonly (string | Uint8Array)[]): string {
  const sum = createHash('sha256')
  for (const part of parts) sum.update(part)
  return sum.digest('hex')
}

function toRequest(body: string, { at = String(seconds), nonce = '950646929', key = encryptKey } = {}) {
  const headers = {
    ...json,
    'x-lark-request-timestamp': at,
    'x-lark-request-nonce': nonce,
    'x-lark-signature': toHash([at, nonce, key, body]),
  }
  return requestOf(headers, body)
}

const event = { schema: '2.0', header: { event_id: 'ev-1', event_type: 'im.message.receive_v1', token }, event: {} }

test('the example of the documentation is decrypted', () => {
  expect(decryptLark('P37w+VZImNgPEO1RBhJ6RtKl7n6zymIbEG1pReEzghk=', 'test key')).toBe('hello world')
  expect(decryptLark('P37w+VZImNgPEO1RBhJ6RtKl7n6zymIbEG1pReEzghk=', 'test kez')).toBeUndefined()
  expect(decryptLark('AAAA', 'test key')).toBeUndefined()
})

describe('an encrypted event', () => {
  test('its id, which only the key shows, is the delivery id', async () => {
    const verifier = verifierOf(signed)
    const open = (sent: object) => Buffer.from(JSON.stringify(sent))
    expect(await verifier.verify(toRequest(toBody(event)))).toEqual({ ok: true, id: 'ev-1', body: open(event) })
    const old = { uuid: 'old-1', token }
    expect(await verifier.verify(toRequest(toBody(old)))).toEqual({ ok: true, id: 'old-1', body: open(old) })
    expect(await verifier.verify(toRequest(toBody({ schema: '2.0' })))).toEqual({
      ok: true,
      body: open({ schema: '2.0' }),
    })
  })

  test('another key, another body and another nonce are refused', async () => {
    const request = toRequest(toBody(event))
    expect(await isProven({ scheme: 'lark', secret: 'the-encrypt-key-of-others' }, request)).toBe(false)
    expect(await isProven(signed, { ...request, rawBody: Buffer.from(toBody({ ...event, event: { x: 1 } })) })).toBe(
      false,
    )
    const headers = { ...request.headers, 'x-lark-request-nonce': '950646928' }
    expect(await isProven(signed, { ...request, headers })).toBe(false)
    expect(await isProven({ scheme: 'lark', secrets: ['the-encrypt-key-of-others', encryptKey] }, request)).toBe(true)
  })

  test('an old time is refused after the last attempt of its sender', async () => {
    const at = (age: number) => isProven(signed, toRequest(toBody(event), { at: String(seconds - age) }))
    expect(await at(25_515)).toBe(true)
    expect(await at(25_801)).toBe(false)
  })

  test('a digit cannot move from the time to the nonce, or back', async () => {
    const { headers, rawBody } = toRequest(toBody(event), { at: String(seconds - 30_000), nonce: '99' })
    const time = headers['x-lark-request-timestamp'] ?? ''
    const moved = [
      { 'x-lark-request-timestamp': `${time}9`, 'x-lark-request-nonce': '9' },
      { 'x-lark-request-timestamp': time.slice(0, -1), 'x-lark-request-nonce': `${time.at(-1)}99` },
    ]
    for (const changed of moved)
      expect(await isProven(signed, requestOf({ ...headers, ...changed }, rawBody.toString()))).toBe(false)
  })

  test('a body that is signed, and neither JSON nor encrypted with the key, is refused', async () => {
    for (const body of [JSON.stringify(event), '{"encrypt":7}', toBody(event, 'the-encrypt-key-of-others')])
      expect(reasonOf(await verifierOf(signed).verify(toRequest(body)))).toMatch(/no "encrypt" that this Encrypt Key/)
    // what an extension of the hash appends begins with this byte
    const rawBody = Buffer.concat([Buffer.from(toBody(event)), Buffer.from([0x80, 0]), Buffer.from('{}')])
    const { headers } = toRequest(toBody(event))
    const signature = toHash([String(seconds), '950646929', encryptKey, rawBody])
    const extended = { ...requestOf({ ...headers, 'x-lark-signature': signature }), rawBody }
    expect(await isProven(signed, extended)).toBe(false)
  })

  test('verify.verifyToken is compared, if it is set', async () => {
    expect(await isProven({ ...signed, verifyToken: token }, toRequest(toBody(event)))).toBe(true)
    expect(await isProven({ ...signed, verifyToken: 'another-token' }, toRequest(toBody(event)))).toBe(false)
  })
})

test('an event with the Verification Token passes, and an encrypted one names the scheme that it needs', async () => {
  const settings = { scheme: 'lark-token', secret: token }
  expect(await isProven(settings, requestOf(json, JSON.stringify(event)))).toBe(true)
  expect(await isProven(settings, requestOf(json, JSON.stringify({ uuid: 'old-1', token })))).toBe(true)
  expect(await isProven(settings, requestOf(json, JSON.stringify({ header: {}, token: 'x' })))).toBe(false)
  expect(await isProven(settings, requestOf(json, '{}'))).toBe(false)
  expect(reasonOf(await verifierOf(settings).verify(requestOf(json, toBody(event))))).toMatch(
    /set verify.scheme to "lark"/,
  )
  expect(() => verifierOf({ ...settings, toleranceSeconds: 5 })).toThrow(/does not sign a time/)
})

describe('the check of a URL', () => {
  const before = { verified: false, armed: false }
  const check = { type: 'url_verification', challenge: '1b6aef1a-401f-406a-be41-f48911eabcef', token }
  const answer = { status: 200, body: JSON.stringify({ challenge: check.challenge }) }
  const ask = (settings: Parameters<typeof verifierOf>[0], body: string) =>
    verifierOf(settings).handshake(requestOf(json, body), before)

  test('only a check that the key decrypts is answered', async () => {
    expect(await ask(signed, toBody(check))).toMatchObject(answer)
    expect(await ask({ ...signed, verifyToken: token }, toBody(check))).toMatchObject(answer)
    expect(await ask({ ...signed, verifyToken: 'another-token' }, toBody(check))).toMatchObject({ status: 401 })
    expect(await ask(signed, toBody(check, 'the-encrypt-key-of-others'))).toBeUndefined()
    expect(await ask(signed, JSON.stringify(check))).toBeUndefined()
    expect(await ask(signed, toBody(event))).toBeUndefined()
  })

  test('only a check with the token is answered, and its text has no markup', async () => {
    const settings = { scheme: 'lark-token', secret: token }
    expect(await ask(settings, JSON.stringify(check))).toMatchObject(answer)
    expect(await ask(settings, JSON.stringify({ ...check, token: 'x' }))).toMatchObject({ status: 401 })
    expect(await ask(settings, JSON.stringify({ ...check, challenge: '<b>' }))).toBeUndefined()
    expect(await ask(settings, JSON.stringify(event))).toBeUndefined()
  })
})

test('a robot of DingTalk proves its time for an hour', async () => {
  const secret = 'an-app-secret-of-dingtalk'
  const request = (at: number, key = secret) => {
    const sign = createHmac('sha256', key).update(`${at}\n${key}`).digest('base64')
    return requestOf({ timestamp: String(at), sign }, '{"msgtype":"text"}')
  }
  const settings = { scheme: 'dingtalk', secret }
  expect(await isProven(settings, request(now - 3_600_000))).toBe(true)
  expect(await isProven(settings, request(now - 3_601_000))).toBe(false)
  expect(await isProven(settings, request(now, 'an-app-secret-of-others'))).toBe(false)
  expect(await isProven(settings, requestOf({ sign: 'AAAA' }))).toBe(false)
  expect(await isProven(settings, requestOf({ timestamp: String(now) }))).toBe(false)
})

test('a notification of Cloudinary is proved by SHA-256 too, and for two hours', async () => {
  const secret = 'an-api-secret-of-cloudinary'
  const body = '{"notification_type":"upload"}'
  const sends = (algorithm: string, at: number) => {
    const signature = createHash(algorithm).update(`${body}${at}${secret}`).digest('hex')
    const headers = { 'x-cld-timestamp': String(at), 'x-cld-signature': signature }
    return isProven({ scheme: 'cloudinary', secret }, requestOf(headers, body))
  }
  expect(await sends('sha256', seconds)).toBe(true)
  expect(await sends('sha1', seconds - 7_200)).toBe(true)
  expect(await sends('sha1', seconds - 7_201)).toBe(false)
  expect(await sends('sha512', seconds)).toBe(false)
})
