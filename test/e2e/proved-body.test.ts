// The proved bytes are the parsed bytes: a captured request with other headers has the same payload, or it is refused.
import { createHash, createHmac, generateKeyPairSync, sign as signWith } from 'node:crypto'
import { deflateSync, gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import type { MappingInput } from '../../src/define.ts'
import { VerifySettings } from '../../src/core/model/verify.ts'
import type { Scheme } from '../../src/model/scheme.ts'
import { signRequest, stampPayload } from '../../src/gateway/proofs/verifiers/sign.ts'
import { readDeliveryId, readVerdict } from './answers.ts'
import { type SignedGateway, startSignedGateway } from './proving.ts'
import { bearer, type Headers, type Reply } from './wire.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const { schemes } = builtInSenders
const known = { senders: builtInSenders }

const secret = '0123456789abcdef0123456789abcdef'
const form = 'application/x-www-form-urlencoded'
const publicUrl = 'https://gateway.example'

const all: readonly Scheme[] = schemes
// the other proofs need a certificate, keys that are fetched, or an encrypted body: test/unit/gateway/http/proved-body.test.ts has every scheme
const signable = all.filter((row) => !('jwksUrl' in row) && !['aws-sns', 'lark', 'paypal', 'plaid'].includes(row.id))
const isForm = (scheme: Scheme) => ['mandrill', 'twilio'].includes(scheme.id)
/** Klaviyo signs its time as text. */
const timeText = { 'klaviyo-timestamp': 'Tue, 14 Nov 2023 22:13:20 GMT' }
const edwards = generateKeyPairSync('ed25519')
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' })

function settingsOf(scheme: Scheme) {
  const raw = Buffer.from(String(edwards.publicKey.export({ format: 'jwk' })['x']), 'base64url')
  const keys = {
    'raw-hex': raw.toString('hex'),
    'raw-base64': raw.toString('base64'),
    'spki-base64': curve.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  }
  return VerifySettings.parse({
    scheme: scheme.id,
    secret: scheme.kind === 'basic' ? `user:${secret}` : secret,
    publicUrl,
    ...(scheme.kind === 'token' && scheme.header === undefined ? { header: 'x-named' } : {}),
    ...('keyForm' in scheme ? { publicKey: keys[scheme.keyForm] } : {}),
  })
}

/** A text in a JSON body. With it, the body can also be read as a form that has another payload. */
const forged = '&payload=%7B%22forged%22%3Atrue%7D&'

let gateway: SignedGateway
beforeAll(async () => {
  const own: MappingInput[] = [
    { match: { path: 'hmac' }, verify: { scheme: 'generic-hmac', secret, header: 'x-sum' } },
    { match: { path: 'text' }, accept: ['text', 'xml'], verify: { scheme: 'generic-hmac', secret, header: 'x-sum' } },
    { match: { path: 'text', payload: { never: true } }, verify: { scheme: 'token', secret, header: 'x-other' } },
    { match: { path: 'open' } },
  ]
  gateway = await startSignedGateway([
    ...own,
    ...signable.map((scheme) => ({ match: { path: scheme.id }, verify: settingsOf(scheme) })),
  ])
})

type Signed = { readonly url: string; readonly proof: Headers; readonly body: Buffer }

let deliveries = 0

/** A new delivery of a scheme, signed, with a text from an outsider. It is new, so that it is parsed and not answered as a duplicate. */
function buildDelivery(scheme: Scheme): Signed {
  deliveries += 1
  gateway.time.now += 1_000
  const now = gateway.time.now
  const settings = settingsOf(scheme)
  const given = { id: `evt_${deliveries}`, text: forged }
  const url = `/hooks/${scheme.id}`
  if (scheme.kind === 'code' || scheme.kind === 'client-state') {
    const body = Buffer.from(JSON.stringify(toOwnProof(scheme, given)))
    return { url, proof: toOwnHeaders(scheme.id, body), body }
  }
  if (isForm(scheme)) {
    const body = Buffer.from(new URLSearchParams({ Body: '{"a":"&payload={}&"}', MessageSid: given.id }).toString())
    const signed = { body, now, method: 'POST', url, headers: { 'content-type': form } }
    return { url, proof: Object.entries(signRequest(settings, signed, known)), body }
  }
  const body = Buffer.from(JSON.stringify(stampPayload(settings, given, now, known)))
  if (scheme.kind === 'ed25519' || scheme.kind === 'ecdsa') return { url, proof: toKeyProof(scheme, body), body }
  const headers = scheme.id === 'klaviyo' ? timeText : {}
  const proof = signRequest(settings, { body, now, method: 'POST', url, headers }, known)
  return { url, proof: Object.entries({ ...headers, ...proof }), body }
}

/** The proofs that stand in headers and are no scheme of their own. */
function toOwnHeaders(id: string, body: Buffer): Headers {
  const { now } = gateway.time
  if (id === 'dingtalk') {
    const sign = createHmac('sha256', secret).update(`${now}\n${secret}`).digest('base64')
    return Object.entries({ timestamp: String(now), sign })
  }
  if (id !== 'cloudinary') return []
  const at = String(now / 1000)
  const signature = createHash('sha256')
    .update(body)
    .update(at + secret)
    .digest('hex')
  return Object.entries({ 'x-cld-timestamp': at, 'x-cld-signature': signature })
}

function toOwnProof(scheme: Extract<Scheme, { kind: 'code' | 'client-state' }>, given: object): object {
  const at = String(gateway.time.now / 1000)
  if (scheme.kind === 'client-state') {
    const item = { ...given, [scheme.field]: secret }
    return scheme.list === undefined ? item : { [scheme.list]: [item] }
  }
  if (scheme.id === 'mailgun') {
    const signature = createHmac('sha256', secret).update(`${at}token-${deliveries}`).digest('hex')
    return { ...given, signature: { timestamp: at, token: `token-${deliveries}`, signature } }
  }
  if (scheme.id === 'lark-token') return { ...given, token: secret }
  if (scheme.id !== 'adyen') return given
  const hmacSignature = createHmac('sha256', Buffer.from(secret, 'hex')).update('p:::::::').digest('base64')
  return {
    ...given,
    notificationItems: [{ NotificationRequestItem: { pspReference: 'p', additionalData: { hmacSignature } } }],
  }
}

function toKeyProof(scheme: Extract<Scheme, { kind: 'ed25519' | 'ecdsa' }>, body: Buffer): Headers {
  const at = String(gateway.time.now / 1000)
  const text = scheme.template
    .replace('{timestamp}', at)
    .replace('{id}', `msg_${deliveries}`)
    .replace('{body}', body.toString())
  const key = scheme.kind === 'ed25519' ? edwards.privateKey : curve.privateKey
  const signature = signWith(scheme.kind === 'ed25519' ? null : 'sha256', Buffer.from(text), key)
  const { syntax } = scheme
  const entry = syntax !== undefined && 'field' in syntax ? `${syntax.field}${syntax.joint}` : ''
  return [
    [scheme.timestamp.name, at],
    ...(scheme.idHeader === undefined ? [] : [[scheme.idHeader, `msg_${deliveries}`] as const]),
    [scheme.header, entry + signature.toString(scheme.encoding)],
  ]
}

function send({ url, proof, body }: Signed, headers: Headers): Promise<Reply> {
  return gateway.ask({ target: url, headers: [...proof, ...headers], body })
}

/** The resulting payload of a request; undefined if it was refused because of its headers. */
async function readPayload(reply: Reply): Promise<string | undefined> {
  const verdict = readVerdict(reply)
  if (verdict === 'media-type-unsupported' || verdict === 'encoding-unsupported') return undefined
  expect(verdict).toBe('accepted')
  return gateway.readEvent(readDeliveryId(reply))
}

const unsigned: readonly (readonly [string, Headers])[] = [
  ['no media type', []],
  ['the media type of JSON', [['content-type', 'application/json']]],
  ['the media type of a form', [['content-type', form]]],
  ['the media type of a multipart form', [['content-type', 'multipart/form-data; boundary="&payload"']]],
  ['the media type of text', [['content-type', 'text/plain']]],
  ['the media type of XML', [['content-type', 'application/xml']]],
  ['a media type that nobody takes', [['content-type', 'image/png']]],
  ['another charset', [['content-type', 'application/json; charset=utf-16']]],
  ['an encoding', [['content-encoding', 'gzip']]],
  ['another encoding', [['content-encoding', 'deflate']]],
  [
    'an encoding and the media type of a form',
    [
      ['content-encoding', 'br'],
      ['content-type', form],
    ],
  ],
  ['the credential of the hook', bearer],
]

test.each(signable.map((scheme) => [scheme.id, scheme] as const))(
  'a captured request of %s has the same payload under other headers, or is refused',
  async (_, scheme) => {
    for (const [name, headers] of unsigned) {
      const signed = buildDelivery(scheme)
      if (headers === bearer && signed.proof.some(([own]) => own === 'authorization')) continue
      const payload = isForm(scheme)
        ? JSON.stringify(Object.fromEntries(new URLSearchParams(signed.body.toString())))
        : signed.body.toString()
      const read = await readPayload(await send(signed, headers))
      expect([name, [payload, undefined].includes(read), read]).toEqual([name, true, read])
    }
    expect(await readPayload(await send(buildDelivery(scheme), []))).toBeDefined()
  },
)

describe('signed bodies', () => {
  const signBody = (body: string | Buffer): Headers => [
    ['x-sum', createHmac('sha256', secret).update(body).digest('hex')],
  ]
  const post = (path: string, body: string | Buffer, headers: Headers = []) =>
    send({ url: `/hooks/${path}`, proof: signBody(body), body: Buffer.from(body) }, headers)
  const read = async (...args: Parameters<typeof post>) => readPayload(await post(...args))

  test('a signed JSON body is read as JSON, even if it looks like deflate', async () => {
    // 0x09 begins a stored block of deflate and is a blank in JSON; its length and the complement are the bytes of "A and U+077E
    const inner = `a=1${forged}`
    const body = Buffer.concat([
      Buffer.from('\t"A\u077e'),
      Buffer.from(`${inner}${'b'.repeat(0x4122)}`),
      Buffer.from('"'),
    ])
    const first = await read('hmac', body)
    expect(first).toContain(inner)
    for (const type of [form, 'application/json']) {
      expect([first, undefined]).toContain(
        await read('hmac', body, [
          ['content-encoding', 'deflate'],
          ['content-type', type],
        ]),
      )
    }
  })

  test('a signed body compressed with gzip is inflated, whatever the headers say', async () => {
    const body = gzipSync('{"a":1}')
    for (const headers of [[], [['content-encoding', 'gzip']], [['content-encoding', 'identity']]] as const) {
      expect(await read('hmac', body, headers)).toBe('{"a":1}')
    }
  })

  test('a signed body in another compression is refused, and the error names gzip', async () => {
    const reply = await post('hmac', deflateSync('{"a":1}'), [['content-encoding', 'deflate']])
    expect([readVerdict(reply), reply.body]).toEqual(['encoding-unsupported', expect.stringContaining('gzip')])
  })

  test.each([
    ['a=1&b=2', '{"a":"1","b":"2"}'],
    ['payload=%7B%22a%22%3A1%7D', '{"a":1}'],
    ['text=hello world', '{"text":"hello world"}'],
    ['--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n', '{"a":"1"}'],
    [' \n[1]', '[1]'],
    ['\ufeff{"a":1}', '{"a":1}'],
    ['"a=1"', '"a=1"'],
    ['17', '17'],
  ])('a signed body %j has the same payload under every media type', async (body, payload) => {
    for (const type of ['application/json', form, 'text/plain', 'multipart/form-data; boundary=y']) {
      expect(await read('hmac', body, [['content-type', type]])).toBe(payload)
    }
  })

  test.each([
    ['the disk is full: a=1 &b', 'the disk is full: a=1 &b'],
    ['[error] the disk is full', '[error] the disk is full'],
    ['<a>1</a>', '<a>1</a>'],
    ['{"a":1}', '{"a":1}'],
    ['a=1&b=2', '{"a":"1","b":"2"}'],
  ])(
    'a signed body %j on a hook that accepts text has the same payload under every media type',
    async (body, payload) => {
      for (const type of ['application/json', form, 'text/plain', 'application/xml']) {
        expect(await read('text', body, [['content-type', type]])).toBe(payload)
      }
    },
  )

  test('a signed body that the hook does not accept is refused as invalid JSON', async () => {
    expect(readVerdict(await post('hmac', 'Hello, World!', [['content-type', 'text/plain']]))).toBe('body-invalid')
    expect(readVerdict(await post('hmac', Buffer.from([0x7b, 0xff])))).toBe('body-invalid')
  })
})

test('without a proof, the media type decides how a body is read, and a form that is complete JSON is JSON', async () => {
  const read = async (body: string, type: string) => {
    const headers: Headers = [...bearer, ['content-type', type]]
    return readPayload(await gateway.ask({ target: '/hooks/open', headers, body }))
  }
  expect(await read('a={"b":1}', form)).toBe('{"a":"{\\"b\\":1}"}')
  expect(await read('{"b":1}', form)).toBe('{"b":1}')
  expect(await read('{"b":1}', 'text/plain')).toBeUndefined()
})
