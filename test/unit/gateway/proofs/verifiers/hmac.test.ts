import { createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { HmacScheme } from '../../../../../src/model/scheme.ts'
import {
  hmacSchemes,
  isProven,
  now,
  publicUrl,
  reasonOf,
  requestOf,
  secretOf,
  settingsOf,
  signed,
  verifierOf,
  withBrokenSignature,
  withHeader,
} from './stage.ts'

function findScheme(id: string): HmacScheme {
  const found = hmacSchemes.find((scheme) => scheme.id === id)
  if (found === undefined) throw new Error(`no row ${id}`)
  return found
}

describe.each(hmacSchemes.map((scheme) => [scheme.id, scheme] as const))('the scheme %s', (_, scheme) => {
  const settings = settingsOf(scheme)

  test('a request that its sender signed is verified, and isClaimed recognises its headers', async () => {
    const request = signed(scheme)
    expect(await verifierOf(settings).verify(request)).toMatchObject({ ok: true })
    expect(verifierOf(settings).isClaimed(request.headers)).toBe(true)
  })

  test('a request with one changed character in the signature is refused', async () => {
    expect(await isProven(settings, withBrokenSignature(signed(scheme), scheme.header))).toBe(false)
  })

  test('a request with an added space in the body is refused', async () => {
    const request = signed(scheme)
    expect(await isProven(settings, { ...request, rawBody: Buffer.concat([request.rawBody, Buffer.from(' ')]) })).toBe(
      false,
    )
  })

  test('a request without the header of the signature is refused, and isClaimed does not recognise it', async () => {
    const request = withHeader(signed(scheme), scheme.header, undefined)
    expect(await isProven(settings, request)).toBe(false)
    expect(verifierOf(settings).isClaimed(request.headers)).toBe(false)
  })

  test('a request that is signed with another secret is proven only if that secret is configured as well', async () => {
    const request = signed(scheme, { which: 'other' })
    expect(await isProven(settings, request)).toBe(false)
    const { secret: _secret, ...rest } = settings
    const both = { ...rest, secrets: [secretOf(scheme), secretOf(scheme, 'other')] }
    expect(await isProven(both, request)).toBe(true)
    expect(await isProven(both, signed(scheme))).toBe(true)
  })
})

const timed = hmacSchemes.flatMap((scheme) =>
  // no row is left out: a row that signs a time without a tolerance fails here
  scheme.timestamp === undefined ? [] : [[scheme.id, scheme, scheme.toleranceSeconds ?? 300] as const],
)

describe.each(timed)('the time tolerance of %s', (_, scheme, tolerance) => {
  const settings = settingsOf(scheme)
  const signAt = (seconds: number) => signed(scheme, { at: now + seconds * 1000 })

  test('the tolerance of a signed time is exact to the second, and at most five minutes in the future', async () => {
    const ahead = Math.min(tolerance, 300)
    expect(await isProven(settings, signAt(-tolerance))).toBe(true)
    expect(await isProven(settings, signAt(ahead))).toBe(true)
    expect(await isProven(settings, signAt(-tolerance - 1))).toBe(false)
    expect(await isProven(settings, signAt(ahead + 1))).toBe(false)
    expect(await isProven({ ...settings, toleranceSeconds: 86_400 }, signAt(301))).toBe(false)
  })

  test('the operator can make the tolerance of a signed time smaller', async () => {
    expect(await isProven({ ...settings, toleranceSeconds: 2 }, signAt(-3))).toBe(false)
    expect(await isProven({ ...settings, toleranceSeconds: 2 }, signAt(-2))).toBe(true)
  })
})

describe('signed times in a header', () => {
  const stamped = hmacSchemes.flatMap((scheme) =>
    scheme.timestamp?.in === 'header' ? [[scheme.id, scheme, scheme.timestamp.name] as const] : [],
  )

  test.each(stamped)(
    'a request of %s with a changed time is refused, because the time is signed',
    async (_, scheme, name) => {
      const old = signed(scheme, { at: now - 7_200_000 })
      const moved = withHeader(old, name, signed(scheme).headers[name])
      expect(await isProven(settingsOf(scheme), moved)).toBe(false)
    },
  )
})

describe('lists with several signatures', () => {
  const lists = hmacSchemes.flatMap((scheme) =>
    scheme.syntax !== undefined && 'separator' in scheme.syntax ? [[scheme.id, scheme, scheme.syntax] as const] : [],
  )

  test.each(lists)(
    'a malformed or unknown entry in a header of %s does not hide the valid signature after it',
    async (_, scheme, { separator, joint, field }) => {
      const request = signed(scheme)
      const good = request.headers[scheme.header] ?? ''
      const noise = ['', 'nonsense', joint, `${field}${joint}`, `${field}${joint}AAAA`, `v9${joint}x`].join(separator)
      const settings = settingsOf(scheme)
      expect(await isProven(settings, withHeader(request, scheme.header, `${noise}${separator}${good}`))).toBe(true)
      expect(await isProven(settings, withHeader(request, scheme.header, noise))).toBe(false)
    },
  )

  test.each(lists)('a valid signature of %s under another name in the list is refused', async (_, scheme) => {
    expect(await isProven(settingsOf(scheme), signed(scheme, { field: 'v0x' }))).toBe(false)
  })
})

describe('schemes with a second header', () => {
  const body = '{"a":1}'
  const signHex = (algorithm: string, secret: string) => createHmac(algorithm, secret).update(body).digest('hex')

  test('a valid sha1 signature does not make up for an invalid sha256 signature', async () => {
    const sha1 = `sha1=${signHex('sha1', 's')}`
    const both = requestOf(
      { 'x-hub-signature': sha1, 'x-hub-signature-256': `sha256=${signHex('sha256', 'wrong')}` },
      body,
    )
    expect(await isProven({ scheme: 'github', secret: 's' }, both)).toBe(false)
    expect(await isProven({ scheme: 'github', secret: 's' }, requestOf({ 'x-hub-signature': sha1 }, body))).toBe(false)
    const good = withHeader(both, 'x-hub-signature-256', `sha256=${signHex('sha256', 's')}`)
    expect(await isProven({ scheme: 'github', secret: 's' }, good)).toBe(true)
  })

  test('a valid Gitea signature does not make up for an invalid Forgejo signature', async () => {
    const headers = { 'x-gitea-signature': signHex('sha256', 's'), 'x-forgejo-signature': signHex('sha256', 'wrong') }
    expect(await isProven({ scheme: 'forgejo', secret: 's' }, requestOf(headers, body))).toBe(false)
    expect(await isProven({ scheme: 'gitea', secret: 's' }, requestOf(headers, body))).toBe(true)
  })

  test('a Svix signature under the names of Standard Webhooks is proven, unless its own header is present and invalid', async () => {
    const svix = findScheme('svix')
    const own = signed(svix)
    const renamed = Object.fromEntries(
      Object.entries(own.headers).map(([name, value]) => [name.replace('svix-', 'webhook-'), value]),
    )
    expect(await isProven(settingsOf(svix), { ...own, headers: renamed })).toBe(true)
    const bad = withBrokenSignature(own, 'svix-signature').headers
    expect(await isProven(settingsOf(svix), { ...own, headers: { ...renamed, ...bad } })).toBe(false)
  })

  test('either signature of Box, and any numbered signature of DocuSign, proves the request', async () => {
    for (const [id, more] of [
      ['box', 'box-signature-secondary'],
      ['docusign', 'x-docusign-signature-2'],
    ] as const) {
      const scheme = findScheme(id)
      const request = signed(scheme)
      const broken = withBrokenSignature(request, scheme.header)
      expect(await isProven(settingsOf(scheme), broken)).toBe(false)
      expect(await isProven(settingsOf(scheme), withHeader(broken, more, request.headers[scheme.header]))).toBe(true)
    }
  })
})

describe('signed URLs', () => {
  const body = '{"a":1}'
  const sign = (text: string) => createHmac('sha256', 's').update(text).digest('base64')
  const signSquare = (url: string) => requestOf({ 'x-square-hmacsha256-signature': sign(url + body) }, body)

  test('the signed URL is the public URL with the query of the request', async () => {
    const request = { ...signSquare(`${publicUrl}?a=1`), url: '/somewhere?a=1' }
    expect(await isProven({ scheme: 'square', secret: 's', publicUrl }, request)).toBe(true)
    expect(await isProven({ scheme: 'square', secret: 's', publicUrl: `${publicUrl}x` }, request)).toBe(false)
  })

  test('a public URL without a path gets the path of the request', async () => {
    const request = { ...signSquare('https://gateway.example/hooks/square'), url: '/hooks/square' }
    expect(await isProven({ scheme: 'square', secret: 's', publicUrl: 'https://gateway.example' }, request)).toBe(true)
    expect(await isProven({ scheme: 'square', secret: 's', publicUrl: 'https://gateway.example/' }, request)).toBe(
      false,
    )
  })

  test('Twilio may sign the URL with or without the port, and HubSpot decodes some characters of it', async () => {
    const twilio = createHmac('sha1', 's').update('https://gateway.example:443/hooks/inbounda1').digest('base64')
    const form = { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': twilio }
    expect(await isProven({ scheme: 'twilio', secret: 's', publicUrl }, requestOf(form, 'a=1'))).toBe(true)
    expect(await isProven({ scheme: 'twilio', secret: 's', publicUrl }, requestOf(form, 'a=2'))).toBe(false)
    const time = String(now)
    const hubspot = sign(`POST${publicUrl}?q=a:b%20c${body}${time}`)
    const headers = { 'x-hubspot-signature-v3': hubspot, 'x-hubspot-request-timestamp': time }
    const request = requestOf(headers, body, { url: '/hooks/inbound?q=a%3Ab%20c' })
    expect(await isProven({ scheme: 'hubspot-v3', secret: 's', publicUrl }, request)).toBe(true)
  })

  test('a form of Twilio has at most 1,000 fields, and is read no more often if there are two secrets', async () => {
    const settings = { scheme: 'twilio', secrets: ['other', 's'], publicUrl }
    const toForm = (count: number) => {
      const names = Array.from({ length: count }, (_, index) => `f${String(index).padStart(5, '0')}`)
      const text = `https://gateway.example:443/hooks/inbound${names.map((name) => `${name}1`).join('')}`
      return requestOf(
        {
          'content-type': 'application/x-www-form-urlencoded',
          'x-twilio-signature': createHmac('sha1', 's').update(text).digest('base64'),
        },
        names.map((name) => `${name}=1`).join('&'),
      )
    }
    const countReads = async (secrets: string[]) => {
      let reads = 0
      const { rawBody, ...head } = toForm(1000)
      const counted = Object.defineProperty({ ...head, rawBody }, 'rawBody', { get: () => ((reads += 1), rawBody) })
      expect(await isProven({ ...settings, secrets }, counted)).toBe(true)
      return reads
    }
    expect(await countReads(['other', 's'])).toBe(await countReads(['s']))
    const verified = await verifierOf(settings).verify(toForm(1001))
    expect(reasonOf(verified)).toMatch(/1,000 fields/)
  })
})

describe('generic-hmac', () => {
  const body = '{"a":1}'
  const time = String(now)
  const settings = {
    scheme: 'generic-hmac',
    secret: Buffer.from('key').toString('base64'),
    secretEncoding: 'base64',
    header: 'X-Acme-Signature',
    algorithm: 'sha512',
    encoding: 'base64url',
    prefix: 'acme ',
    template: '{method}|{header:X-Acme-Id}|{timestamp}|{body}',
    timestamp: { header: 'X-Acme-Time', unit: 'ms' },
  } as const
  const signature = createHmac('sha512', 'key').update(`POST|7|${time}|${body}`).digest('base64url')
  const headers = { 'x-acme-signature': `acme ${signature}`, 'x-acme-id': '7', 'x-acme-time': time }

  test('generic-hmac verifies requests according to its settings', async () => {
    expect(await isProven(settings, requestOf(headers, body))).toBe(true)
    expect(await isProven(settings, requestOf({ ...headers, 'x-acme-id': '8' }, body))).toBe(false)
    expect(await isProven(settings, requestOf({ ...headers, 'x-acme-signature': signature }, body))).toBe(false)
    expect(await isProven(settings, requestOf({ ...headers, 'x-acme-time': String(now - 301_000) }, body))).toBe(false)
  })

  test('a template of generic-hmac without the body, or with an unsigned time, is refused when it is loaded', () => {
    const { timestamp: _, ...untimed } = settings
    expect(() => verifierOf({ ...settings, template: '{timestamp}' })).toThrow(/needs \{body\}/)
    expect(() => verifierOf({ ...settings, template: '{body}' })).toThrow(/needs both verify.timestamp/)
    expect(() => verifierOf(untimed)).toThrow(/needs both verify.timestamp/)
    expect(() => verifierOf({ ...settings, template: '{timestamp}{body}{nonsense}' })).toThrow(/\{nonsense\}/)
  })
})

describe('a list of signatures for generic-hmac', () => {
  const body = '{"a":1}'
  const settings = { scheme: 'generic-hmac', secret: 'the new secret', header: 'X-Sig', prefix: 'sha256=' } as const
  const sign = (secret: string) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const [fresh, old, wrong] = [sign('the new secret'), sign('the old secret'), sign('another secret')]
  const isListProven = (value: string) => isProven(settings, requestOf({ 'x-sig': value }, body))

  test.each([`${fresh},${old}`, `${old}, ${fresh}`, `${wrong}; ${old} ; ${fresh}`, `,${fresh},`])(
    'a request is proven if any signature of its list is valid: %#',
    async (value) => {
      expect(await isListProven(value)).toBe(true)
    },
  )

  test('a request is refused if no signature of its list is valid, or if only one without the prefix is', async () => {
    for (const value of [`${old},${wrong}`, `${old},${fresh.slice('sha256='.length)}`, ',;,', `${fresh} ${old}`])
      expect(await isListProven(value)).toBe(false)
  })

  test('a list in a header without a prefix is read too', async () => {
    const { prefix: _, ...bare } = settings
    const value = [old, fresh].map((one) => one.slice('sha256='.length)).join(',')
    expect(await isProven(bare, requestOf({ 'x-sig': value }, body))).toBe(true)
  })

  test('a signature is found if its prefix has a comma, and then the header is no list', async () => {
    const request = (value: string) => requestOf({ 'x-sig': value }, body)
    const own = { ...settings, prefix: 'v=1,s=' }
    const value = `v=1,s=${fresh.slice('sha256='.length)}`
    expect(await isProven(own, request(value))).toBe(true)
    expect(await isProven(own, request(`${old},${value}`))).toBe(false)
  })

  test('only the first 100 of thousands of signatures are read, and the body is hashed once for each secret', async () => {
    const { secret: _, ...rest } = settings
    const both = { ...rest, secrets: ['the new secret', 'the old secret'] }
    let reads = 0
    const count = async (value: string) => {
      const request = requestOf({ 'x-sig': value }, body)
      reads = 0
      const counted = new Proxy(request, {
        get: (target, key) => {
          if (key === 'rawBody') reads += 1
          return Reflect.get(target, key) as unknown
        },
      })
      return [await isProven(both, counted), reads]
    }
    const one = await count(wrong)
    expect(one[0]).toBe(false)
    expect(await count(Array.from({ length: 5000 }, () => wrong).join(','))).toEqual(one)
    expect((await count([...Array.from({ length: 99 }, () => wrong), fresh].join(',')))[0]).toBe(true)
    expect((await count([...Array.from({ length: 100 }, () => wrong), fresh].join(',')))[0]).toBe(false)
  })

  test('a list is not read for the schemes whose sender sends one signature', async () => {
    const scheme = findScheme('github')
    const request = signed(scheme)
    const value = request.headers[scheme.header] ?? ''
    expect(await isProven(settingsOf(scheme), withHeader(request, scheme.header, `${value}, ${value}`))).toBe(false)
  })

  test('a signed header that is sent twice is not one of its lines', async () => {
    const timed = {
      ...settings,
      template: '{timestamp}.{body}',
      timestamp: { header: 'X-Time', unit: 's' },
    } as const
    const time = String(now / 1000)
    const value = `sha256=${createHmac('sha256', settings.secret).update(`${time}.${body}`).digest('hex')}`
    const isTimeProven = (text: string) => isProven(timed, requestOf({ 'x-sig': value, 'x-time': text }, body))
    expect(await isTimeProven(time)).toBe(true)
    expect(await isTimeProven(`${time}, ${time}`)).toBe(false)
  })
})

describe('a signature of generic-hmac over the body before compression', () => {
  const text = '{"a":1}'
  const secret = 'the secret of the sender'
  const settings = { scheme: 'generic-hmac', secret, header: 'X-Sig' } as const
  const sign = (bytes: string | Uint8Array) => createHmac('sha256', secret).update(bytes).digest('hex')
  const gzip = { 'content-encoding': 'gzip' }
  const send = (rawBody: Uint8Array, signature: string, headers: Record<string, string> = gzip) =>
    requestOf({ 'x-sig': signature, ...headers }, '', { rawBody })
  const verify = async (request: ReturnType<typeof requestOf>) =>
    verifierOf({ ...settings, decompressed: true }).verify(request)

  test('a gzip body that is signed as plain text is proven with verify.decompressed, and refused without', async () => {
    const request = send(gzipSync(text), sign(text))
    expect((await verify(request)).ok).toBe(true)
    expect(await isProven(settings, request)).toBe(false)
    expect(verifierOf({ ...settings, decompressed: true }).explain(request)).toBe(text)
  })

  test('with verify.decompressed, a signature over the bytes that were sent, or over a plain body, is proven too', async () => {
    const packed = gzipSync(text)
    expect((await verify(send(packed, sign(packed)))).ok).toBe(true)
    expect((await verify(send(Buffer.from(text), sign(text), {}))).ok).toBe(true)
  })

  test('the bytes decide whether a body is compressed, and not the header, which no sender signs', async () => {
    expect((await verify(send(gzipSync(text), sign(text), {}))).ok).toBe(true)
    expect((await verify(send(Buffer.from(text), sign(text)))).ok).toBe(true)
  })

  test('another text in gzip, a cut body and a text that is compressed twice are refused', async () => {
    expect((await verify(send(gzipSync('{"a":2}'), sign(text)))).ok).toBe(false)
    expect((await verify(send(gzipSync(text).subarray(0, -4), sign(text)))).ok).toBe(false)
    expect((await verify(send(gzipSync(gzipSync(text)), sign(text)))).ok).toBe(false)
  })

  test('a body that inflates to more than 1 MiB is refused with the limit as its reason', async () => {
    const most = Buffer.alloc(1_048_576, ' ')
    expect((await verify(send(gzipSync(most), sign(most)))).ok).toBe(true)
    const bomb = Buffer.alloc(1_048_577, ' ')
    expect(reasonOf(await verify(send(gzipSync(bomb), sign(bomb))))).toContain('at most 1 MiB')
  })

  test('verify.decompressed is refused for a scheme that does not have it', () => {
    expect(() => verifierOf({ scheme: 'github', secret, decompressed: true })).toThrow(/verify\.decompressed/)
  })
})

describe('reasons for the operator', () => {
  const scheme = findScheme('slack')

  test('a missing header, an old time and a wrong signature have different reasons, and the reason for a wrong signature quotes neither a signature nor the body', async () => {
    const findReason = async (request: Parameters<typeof isProven>[1]) =>
      reasonOf(await verifierOf(settingsOf(scheme)).verify(request))
    expect(await findReason(withHeader(signed(scheme), scheme.header, undefined))).toMatch(
      /x-slack-signature.* missing/,
    )
    expect(await findReason(signed(scheme, { at: now - 361_000 }))).toBe(
      'The signed time is 361 s behind the clock of the gateway; 300 s are allowed (verify.toleranceSeconds).',
    )
    const wrong = await findReason(signed(scheme, { which: 'other' }))
    expect(wrong).toMatch(/another secret/)
    expect(wrong).not.toMatch(/[0-9a-f]{8}|event/)
  })

  test('the explanation of a signature shows the signed text, without the secret', () => {
    const text = verifierOf(settingsOf(scheme)).explain(signed(scheme))
    expect(text).toBe(`v0:${now / 1000}:{"event":"x","n":1}`)
  })
})
