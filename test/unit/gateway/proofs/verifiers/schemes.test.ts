import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { credentialHeaders, isSecretHeader } from '../../../../../src/core/model/delivery.ts'
import * as handshakes from '../../../../../src/plugins/senders/handshakes.ts'
import type { AsymmetricScheme } from '../../../../../src/model/scheme.ts'
import { isProven, now, reasonOf, requestOf, toTimeText, verifierOf, withHeader } from './stage.ts'
import { builtInSenders } from '../../../../../src/gateway/built-in.ts'

const { find: findSender, schemes, schemeNames } = builtInSenders

describe('table of schemes', () => {
  test('each name in the table of schemes belongs to one row', () => {
    expect(schemeNames.length).toBe(new Set(schemeNames).size)
    expect(schemeNames.length).toBeGreaterThan(130)
  })

  test('the source of every scheme has a row in the table of senders', () => {
    const unknown = schemes.filter(({ source }) => source !== undefined && findSender(source) === undefined)
    expect(unknown.map(({ id }) => id)).toEqual([])
  })

  test('every scheme names the page that documents the scheme', () => {
    expect(schemes.filter(({ docs }) => !docs.startsWith('https://')).map(({ id }) => id)).toEqual([])
  })

  test('header names in the table of schemes are lower-case, like the header names of a request in Node', () => {
    const names = schemes.flatMap((scheme) =>
      'header' in scheme && scheme.header !== undefined ? [scheme.header] : [],
    )
    expect(names.filter((name) => name !== name.toLowerCase())).toEqual([])
  })

  test('every handshake belongs to at least one scheme', () => {
    const used = new Set(schemes.flatMap((scheme) => scheme.handshakes ?? []))
    const names = Object.entries(handshakes).flatMap(([name, handshake]) => (used.has(handshake) ? [] : name))
    expect(names).toEqual([])
  })
})

function catchMessage(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return String(error)
  }
  return ''
}

describe('invalid settings', () => {
  test.each([
    [{ scheme: 'githb', secret: 's' }, /scheme "githb" does not exist.*"github"/],
    [{ scheme: 'quite-unknown', secret: 's' }, /generic-hmac/],
    [{ scheme: 'github' }, /"github" needs verify\.secret/],
    [{ scheme: 'github', secret: 'a', secrets: ['b'] }, /both verify\.secret and verify\.secrets/],
    [{ scheme: 'github', secret: 'a', toleranceSeconds: 5 }, /does not sign a time/],
    [{ scheme: 'gitlab-token', secret: 'a', toleranceSeconds: 5 }, /does not sign a time/],
    [{ scheme: 'adyen', secret: 'aa', toleranceSeconds: 5 }, /does not sign a time/],
    [{ scheme: 'twilio', secret: 's' }, /needs verify\.publicUrl/],
    [{ scheme: 'square', secret: 's' }, /needs verify\.publicUrl/],
    [{ scheme: 'trello', secret: 's' }, /needs verify\.publicUrl/],
    [{ scheme: 'hubspot-v2', secret: 's' }, /needs verify\.publicUrl/],
    [{ scheme: 'svix', secret: 'whsec_not base64!' }, /a secret in base64, with or without whsec_/],
    [{ scheme: 'adyen', secret: 'nothex' }, /a secret in hex/],
    [{ scheme: 'discord' }, /needs verify\.publicKey/],
    [{ scheme: 'discord', publicKey: 'abc' }, /64 hex digits/],
    [{ scheme: 'telnyx', publicKey: 'abc' }, /32 bytes in base64/],
    [{ scheme: 'sendgrid', publicKey: 'abc' }, /P-256 key/],
    [{ scheme: 'datadog', secret: 's' }, /needs verify\.header/],
    [{ scheme: 'postmark', secret: 'no-colon' }, /user:password/],
    [{ scheme: 'paypal' }, /needs verify\.webhookId/],
    [{ scheme: 'aws-sns' }, /needs verify\.topicArn/],
    [{ scheme: 'google-pubsub', audience: 'a' }, /needs verify\.email/],
    [{ scheme: 'google-pubsub', email: 'a@b' }, /needs verify\.audience/],
    [{ scheme: 'plaid' }, /verify\.publicKey .* or verify\.jwksUrl/],
    [{ scheme: 'generic-hmac', secret: 's' }, /needs verify\.header/],
  ])('the settings %j are refused when they are loaded', (settings, message) => {
    expect(() => verifierOf(settings)).toThrow(expect.objectContaining({ code: 'config-invalid' }))
    expect(() => verifierOf(settings)).toThrow(message)
  })

  test('no message about invalid settings shows a secret', () => {
    for (const scheme of ['adyen', 'svix', 'postmark', 'trello', 'githb']) {
      const text = catchMessage(() => verifierOf({ scheme, secret: 'hunter2 hunter2' }))
      expect(text).not.toBe('')
      expect(text).not.toContain('hunter2')
    }
  })

  test('a sender that gives its secret in a handshake needs no secret in the configuration, and is refused before the handshake', async () => {
    const request = requestOf({ 'x-hook-signature': 'ab'.repeat(32) }, '{}')
    const verified = await verifierOf({ scheme: 'asana' }).verify(request)
    expect(reasonOf(verified)).toMatch(/not sent its secret/)
  })
})

describe('tokens', () => {
  test.each(schemes.flatMap((scheme) => (scheme.kind === 'token' ? [[scheme.id, scheme.header] as const] : [])))(
    'only the exact token of %s is proven, and its header counts as secret',
    async (id, header = 'x-mine') => {
      const settings = { scheme: id, secret: 'tok-1', ...(header === 'x-mine' ? { header } : {}) }
      const sends = (value: string) => isProven(settings, requestOf({ [header]: value }))
      expect(await sends('tok-1')).toBe(true)
      for (const value of ['TOK-1', 'tok-', 'tok-1x', ' tok-1', '', 'tok-1, tok-1'])
        expect(await sends(value)).toBe(false)
      expect(await isProven(settings, requestOf({}))).toBe(false)
      expect(verifierOf(settings).secretHeaders).toContain(header)
      expect(
        await isProven({ ...settings, secret: undefined, secrets: ['new', 'tok-1'] }, requestOf({ [header]: 'tok-1' })),
      ).toBe(true)
    },
  )

  test('the header of each token counts as secret, even if no mapping uses the scheme', () => {
    const headers = schemes.flatMap((scheme) => (scheme.kind === 'token' ? (scheme.header ?? []) : []))
    expect(headers.length).toBeGreaterThan(5)
    expect(headers.filter((name) => !isSecretHeader(name) && !credentialHeaders.has(name))).toEqual([])
  })

  test('the word Bearer before a token is optional in authorization, and part of the token in other headers', async () => {
    const bearer = { authorization: 'Bearer t' }
    expect(await isProven({ scheme: 'alertmanager', secret: 't' }, requestOf(bearer))).toBe(true)
    expect(await isProven({ scheme: 'gitlab-token', secret: 't' }, requestOf({ 'x-gitlab-token': 'Bearer t' }))).toBe(
      false,
    )
  })

  test('a header with the name of an inherited property is an ordinary header', async () => {
    const settings = { scheme: 'datadog', secret: 's', header: 'constructor' }
    expect(verifierOf(settings).isClaimed({})).toBe(false)
    expect(await isProven(settings, requestOf({}))).toBe(false)
  })

  test('the header of the plain token that GitLab sends next to its signature counts as secret', () => {
    expect(verifierOf({ scheme: 'gitlab-signing', secret: 'whsec_c2VjcmV0' }).secretHeaders).toEqual(['x-gitlab-token'])
  })

  test('a request with Basic credentials is proven by the configured user and password', async () => {
    const settings = { scheme: 'postmark', secret: 'user:pass:word' }
    const buildBasicRequest = (text: string) =>
      requestOf({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
    expect(await isProven(settings, buildBasicRequest('user:pass:word'))).toBe(true)
    expect(await isProven(settings, buildBasicRequest('user:pass'))).toBe(false)
    expect(await isProven(settings, requestOf({ authorization: 'Bearer user:pass:word' }))).toBe(false)
    expect(verifierOf(settings).isClaimed({ authorization: 'Bearer x' })).toBe(false)
  })
})

describe('the client state of a sender', () => {
  const settings = { scheme: 'microsoft-graph', secret: 'state-1' }
  const notify = (...states: unknown[]) =>
    requestOf({}, JSON.stringify({ value: states.map((clientState) => ({ clientState })) }))

  test('every item of a notification by Microsoft Graph must repeat the client state', async () => {
    expect(await isProven(settings, notify('state-1', 'state-1'))).toBe(true)
    expect(await isProven(settings, notify('state-1', 'forged'))).toBe(false)
    expect(await isProven(settings, notify('state-1', null))).toBe(false)
    expect(await isProven(settings, notify())).toBe(false)
    expect(await isProven(settings, requestOf({}, 'not json'))).toBe(false)
    expect(await isProven(settings, requestOf({}, '{"__proto__":{"value":[{"clientState":"state-1"}]}}'))).toBe(false)
  })

  test('the client state of Strava is the number of its subscription', async () => {
    const strava = { scheme: 'strava', secret: '120475' }
    expect(await isProven(strava, requestOf({}, '{"subscription_id":120475,"object_id":1}'))).toBe(true)
    expect(await isProven(strava, requestOf({}, '{"subscription_id":120476,"object_id":1}'))).toBe(false)
  })
})

describe('Ed25519 and ECDSA', () => {
  const seed = '302e020100300506032b657004220420' + '9d'.repeat(32)
  const edwards = createPrivateKey({ key: Buffer.from(seed, 'hex'), format: 'der', type: 'pkcs8' })
  const raw = Buffer.from(createPublicKey(edwards).export({ format: 'jwk' }).x ?? '', 'base64url')
  const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const body = '{"a":1}'
  const rows = schemes.filter(
    (scheme): scheme is AsymmetricScheme => scheme.kind === 'ed25519' || scheme.kind === 'ecdsa',
  )

  function findPublicKey(scheme: AsymmetricScheme): string {
    if (scheme.keyForm === 'spki-base64')
      return curve.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
    return (scheme.keyPrefix ?? '') + raw.toString(scheme.keyForm === 'raw-hex' ? 'hex' : 'base64')
  }

  function signedBy(scheme: AsymmetricScheme, at = now) {
    const time = toTimeText(at, scheme.timestamp.unit)
    const text = scheme.template.replace('{timestamp}', time).replace('{id}', 'msg_1').replace('{body}', body)
    const key = scheme.kind === 'ed25519' ? edwards : curve.privateKey
    const signature = sign(scheme.kind === 'ed25519' ? null : 'sha256', Buffer.from(text), key).toString(
      scheme.encoding,
    )
    const { syntax } = scheme
    const value =
      syntax !== undefined && 'field' in syntax ? `v1,x ${syntax.field}${syntax.joint}${signature}` : signature
    return requestOf(
      {
        [scheme.header]: value,
        [scheme.timestamp.name]: time,
        ...(scheme.idHeader === undefined ? {} : { [scheme.idHeader]: 'msg_1' }),
      },
      body,
    )
  }

  test.each(rows.map((scheme) => [scheme.id, scheme] as const))(
    'a signature of %s proves only the bytes that were signed',
    async (id, scheme) => {
      const settings = { scheme: id, publicKey: findPublicKey(scheme) }
      const request = signedBy(scheme)
      expect(await isProven(settings, request)).toBe(true)
      expect(await isProven(settings, { ...request, rawBody: Buffer.from(`${body} `) })).toBe(false)
      expect(await isProven(settings, withHeader(request, scheme.header, undefined))).toBe(false)
      expect(await isProven(settings, withHeader(request, scheme.timestamp.name, undefined))).toBe(false)
      const value = request.headers[scheme.header] ?? ''
      expect(await isProven(settings, withHeader(request, scheme.header, value.slice(0, -4)))).toBe(false)
      // decoders skip invalid digits: such a signature must be refused
      expect(await isProven(settings, withHeader(request, scheme.header, `${value}!`))).toBe(false)
    },
  )

  test.each(rows.map((scheme) => [scheme.id, scheme] as const))(
    'an old or a future time of %s is refused, and the operator can set the tolerance',
    async (id, scheme) => {
      const settings = { scheme: id, publicKey: findPublicKey(scheme) }
      const tolerance = scheme.toleranceSeconds
      const signAt = (seconds: number) => signedBy(scheme, now + seconds * 1000)
      const ahead = Math.min(tolerance, 300)
      for (const seconds of [-tolerance, ahead]) expect(await isProven(settings, signAt(seconds))).toBe(true)
      for (const seconds of [-tolerance - 1, ahead + 1]) {
        expect(await isProven(settings, signAt(seconds))).toBe(false)
      }
      expect(await isProven({ ...settings, toleranceSeconds: 3_600 }, signAt(-3_600))).toBe(true)
      expect(await isProven({ ...settings, toleranceSeconds: 3_600 }, signAt(-3_601))).toBe(false)
    },
  )
})

describe('HMAC inside the body', () => {
  test('a digit cannot be moved from the time of Mailgun into its token, which is the delivery id', async () => {
    const sends = (timestamp: string, token: string) => {
      const signature = createHmac('sha256', 's').update('1700000000token').digest('hex')
      return isProven(
        { scheme: 'mailgun', secret: 's' },
        requestOf({}, JSON.stringify({ signature: { timestamp, token, signature } })),
      )
    }
    expect(await sends('1700000000', 'token')).toBe(true)
    expect(await sends('170000000', '0token')).toBe(false)
    expect(await sends('1700000000', 'token2')).toBe(false)
  })

  test('a Mailgun delivery that is older than a day is refused, because tokens are not remembered forever', async () => {
    const sends = (seconds: number) => {
      const [timestamp, token] = [String(now / 1000 - seconds), 'token']
      const signature = createHmac('sha256', 's')
        .update(timestamp + token)
        .digest('hex')
      const body = JSON.stringify({ signature: { timestamp, token, signature } })
      return isProven({ scheme: 'mailgun', secret: 's' }, requestOf({}, body))
    }
    expect(await sends(86_400)).toBe(true)
    expect(await sends(86_401)).toBe(false)
  })

  test('every item of Adyen must be proven, and a signature of another length is refused', async () => {
    const secret = '44'.repeat(32)
    const buildItem = (eventCode: string, hmacSignature?: string) => ({
      NotificationRequestItem: {
        pspReference: 'p',
        merchantAccountCode: 'm',
        merchantReference: 'r',
        amount: { value: 10, currency: 'EUR' },
        eventCode,
        success: 'true',
        additionalData: {
          hmacSignature:
            hmacSignature ??
            createHmac('sha256', Buffer.from(secret, 'hex')).update(`p::m:r:10:EUR:${eventCode}:true`).digest('base64'),
        },
      },
    })
    const sends = (...notificationItems: unknown[]) =>
      isProven({ scheme: 'adyen', secret }, requestOf({}, JSON.stringify({ notificationItems })))
    expect(await sends(buildItem('REFUND'), buildItem('CAPTURE'))).toBe(true)
    expect(await sends(buildItem('REFUND'), buildItem('CAPTURE', 'A'.repeat(44)))).toBe(false)
    expect(await sends(buildItem('REFUND', 'AAAA'))).toBe(false)
    expect(await sends()).toBe(false)
  })
})
