import { describe, expect, test } from 'vitest'
import { removedMark, redactRequest as redact } from '../../../../src/gateway/replay/redact.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { schemes } = builtInSenders
const redactRequest = (request: Parameters<typeof redact>[0], secrets: readonly string[]) =>
  redact(request, secrets, builtInSenders)

const clean = (payload: string) => redactRequest({ headers: {}, query: {}, payload: { text: payload } }, [])

describe('URLs in kept requests', () => {
  test.each([
    ['https://ada:s3cret@ci.example/build', 'https://[removed]@ci.example/build'],
    ['https://s3cret@ci.example/build', 'https://[removed]@ci.example/build'],
    ['postgres://ada:p@s3cret@db.example:5432/app', 'postgres://[removed]@db.example:5432/app'],
    ['https://a.example/?page=2&token=s3cret&x=1', 'https://a.example/?page=2&token=[removed]&x=1'],
    ['https://a.example/?X-Amz-Signature=s3cret#part', 'https://a.example/?X-Amz-Signature=[removed]#part'],
    ['https://a.example/cb#access_token=s3cret&state=1', 'https://a.example/cb#access_token=[removed]&state=1'],
    ['https://a.example/?api%5Fkey=s3cret', 'https://a.example/?api%5Fkey=[removed]'],
    ['https://blob.example/f?sv=1&sig=s3cret', 'https://blob.example/f?sv=1&sig=[removed]'],
    ['https://maps.example/js?key=s3cret', 'https://maps.example/js?key=[removed]'],
    ['https://a.example/?to=https%3A%2F%2Fu%3As3cret%40b.example', 'https://a.example/?to=[removed]'],
    ['https://hooks.slack.com/services/T01/B02/s3cret', 'https://hooks.slack.com/services/[removed]'],
    ['https://discord.com/api/webhooks/42/s3cret?wait=true', 'https://discord.com/api/webhooks/[removed]?wait=true'],
    ['https://api.telegram.org/bot42:s3cret/sendMessage', 'https://api.telegram.org/bot[removed]/sendMessage'],
    [
      'see (https://u:s3cret@x.example), or\nhttps://y.example',
      'see (https://[removed]@x.example), or\nhttps://y.example',
    ],
  ])('the URL %s loses its secret', (url, safe) => {
    const { payload, removed } = clean(url)
    expect(payload).toEqual({ text: safe })
    expect(removed).toEqual(['payload.text'])
  })

  test.each([
    'https://github.com/ada/weaver/pull/7?diff=split#issuecomment-1',
    'ssh://git@github.com/ada/weaver.git',
    'https://a.example/@ada/notes?page_token_type=x',
    'https://a.example:8080/a@b?to=https%3A%2F%2Fb.example%2Fc',
    'mailto:ada@example.org',
  ])('the URL %s does not change', (url) => {
    expect(clean(url)).toMatchObject({ payload: { text: url }, removed: [] })
  })

  test('a hostile URL exhausts neither the stack nor the time limit', () => {
    const nested = 'https://a.example/?u='.repeat(50_000)
    expect(clean(nested).removed).toEqual(['payload.text'])
    expect(clean(`${'a.'.repeat(200_000)}x`).removed).toEqual([])
    for (const mark of '?&#;:/@=') expect(clean(`https://a.example/${mark.repeat(500_000)}`).payload).toBeDefined()
  })

  test('URLs in headers and in the query lose their secrets', () => {
    const url = 'https://ada:s3cret@ci.example/'
    const { headers, query } = redactRequest({ headers: { referer: url }, query: { from: url }, payload: null }, [])
    expect(headers).toEqual({ referer: 'https://[removed]@ci.example/' })
    expect(query).toEqual({ from: 'https://[removed]@ci.example/' })
  })
})

describe('proofs of senders', () => {
  const headers = schemes.flatMap((scheme) => {
    const { secretHeaders = [] } = scheme
    const named = 'header' in scheme && scheme.header !== undefined ? [scheme.header] : []
    return [...named, ...secretHeaders]
  })

  test.each([...new Set(headers)])('the proof in the header %s is removed', (name) => {
    const kept = redactRequest({ headers: { [name]: 's3cret-proof' }, query: {}, payload: null }, [])
    expect(kept.removed).toEqual([`headers.${name}`])
    expect([undefined, removedMark]).toContain(kept.headers[name])
  })
})

describe('known secrets', () => {
  test('a secret that begins with another secret is removed completely', () => {
    const secrets = ['abcdef', 'abcdef123456']
    const { payload } = redactRequest({ headers: {}, query: {}, payload: 'abcdef123456, abcdef' }, secrets)
    expect(payload).toBe(`${removedMark}, ${removedMark}`)
  })

  test('a secret is removed from the names of fields and parameters', () => {
    const request = { headers: {}, query: { 'q-abcdef': '1' }, payload: { 'p-abcdef': 'see abcdef' } }
    expect(redactRequest(request, ['abcdef'])).toMatchObject({
      query: { [`q-${removedMark}`]: '1' },
      payload: { [`p-${removedMark}`]: `see ${removedMark}` },
      removed: expect.arrayContaining([`query.q-${removedMark}`, `payload.p-${removedMark}`]),
    })
  })
})

describe('other forms of known secrets', () => {
  const secret = 'p?ss~word>>é "7"'
  const redactText = (text: string) => redactRequest({ headers: {}, query: {}, payload: text }, [secret]).payload

  test.each(['base64', 'base64url'] as const)(
    'a secret is removed from a text in %s, alone and after other words',
    (form) => {
      expect(redactText(`see ${Buffer.from(secret).toString(form)}.`)).toBe('see [removed].')
      for (const before of ['a:', 'ab:', 'abc:', 'abcd:']) {
        const coded = Buffer.from(`${before}${secret}!`).toString(form)
        const left = String(redactText(coded))
        expect(left).toContain(removedMark)
        expect(Buffer.from(left, form).toString()).not.toContain('word')
      }
    },
  )

  test('a secret is removed from JSON and from a URL within a text', () => {
    expect(redactText(JSON.stringify({ a: secret }))).toBe('{"a":"[removed]"}')
    expect(redactText(`x=${encodeURIComponent(secret)}`)).toBe('x=[removed]')
  })

  test('a secret with half of an emoji causes no exception', () => {
    expect(redactRequest({ headers: {}, query: {}, payload: 'a' }, ['secret-\ud83d']).payload).toBe('a')
  })
})

describe('header lines within a text', () => {
  test.each([
    ['X-Api-Key: s3cret', 'X-Api-Key: [removed]'],
    ['x-api-key:s3cret and more', 'x-api-key:[removed]'],
    ['Host: a.example\r\nX-Auth-Token: s3cret\r\nAccept: x', 'Host: a.example\r\nX-Auth-Token: [removed]\r\nAccept: x'],
    [`curl -H 'X-Api-Key: s3cret' https://a.example`, `curl -H 'X-Api-Key: [removed]' https://a.example`],
    ['{"x-api-key": "s3cret", "id": 7}', '{"x-api-key": "[removed]", "id": 7}'],
    ['{\\"x-api-key\\":\\"s3cret\\"}', '{\\"x-api-key\\":\\"[removed]\\"}'],
    ['- **X-Gitlab-Token**: s3cret', '- **X-Gitlab-Token**: [removed]'],
    ['X-Hub-Signature-256: sha256=s3cret', 'X-Hub-Signature-256: [removed]'],
    ['Authorization: Basic s3cret', 'Authorization: Basic [removed]'],
    ['Cookie: a=s3cret; b=1', 'Cookie: [removed]'],
    ['Set-Cookie: a=s3cret', 'Set-Cookie: [removed]'],
  ])('the secret of %j is removed', (text, safe) => {
    expect(clean(text)).toMatchObject({ payload: { text: safe }, removed: ['payload.text'] })
  })

  test.each([
    'Authorization: how it works',
    'Content-Type: application/json',
    'X-Event-Key: repo:push',
    'The X-Api-Key is missing',
    'Signature: Ada',
    'a:b-token:',
  ])('%j does not change', (text) => {
    expect(clean(text)).toMatchObject({ payload: { text }, removed: [] })
  })

  test('a text with many beginnings of header lines is redacted before the test times out', () => {
    for (const part of ['a-', 'x-api-key', 'x-api-key:', 'x-api-key: "', 'a-token \t '])
      expect(clean(part.repeat(200_000)).payload).toBeDefined()
  })
})

describe('tokens of unknown owners', () => {
  const word = (length: number) => 'a1B2c3D4'.repeat(20).slice(0, length)
  const hex = (length: number) => '0123456789abcdef'.repeat(8).slice(0, length)
  const tokens = [
    `ghp_${word(36)}`,
    `ghs_${word(36)}`,
    `github_pat_${word(22)}_${word(59)}`,
    `glpat-${word(20)}`,
    `npm_${word(36)}`,
    `pypi-${word(100)}`,
    `xoxb-123456789012-${word(24)}`,
    `xoxe.xoxp-1-${word(40)}`,
    `xapp-1-A0123456789-${word(40)}`,
    `1234567890:${word(35)}`,
    `M${word(23)}.${word(6)}.${word(38)}`,
    `sk_live_${word(24)}`,
    `rk_test_${word(24)}`,
    `whsec_${word(32)}=`,
    `shpat_${hex(32)}`,
    `AKIA${'A1B2'.repeat(4)}`,
    `AIza${word(35)}`,
    `ya29.${word(60)}`,
    `GOCSPX-${word(28)}`,
    `SG.${word(22)}.${word(43)}`,
    `key-${hex(32)}`,
    `sk-proj-${word(48)}`,
    `sk-ant-api03-${word(90)}`,
    `hf_${'aBcD'.repeat(9)}`,
    `ATATT3x${word(100)}`,
    `lin_api_${word(40)}`,
    `eyJ${word(20)}.eyJ${word(40)}.${word(43)}`,
    `-----BEGIN RSA PRIVATE KEY-----\n${word(64)}\n${word(64)}\n-----END RSA PRIVATE KEY-----`,
    `-----BEGIN PRIVATE KEY-----\n${word(64)} and no end`,
  ]

  test.each(tokens)('the token %s is removed from texts, headers, queries and names of fields', (token) => {
    expect(clean(`see "${token}"`).payload).toEqual({ text: expect.stringMatching(/^see "\[removed\]"?$/) })
    const elsewhere = { headers: { 'x-note': token }, query: { note: token }, payload: { [token]: [token] } }
    expect(JSON.stringify(redactRequest(elsewhere, []))).not.toContain(token.slice(10, 30))
  })

  test('a token in a quoted header is removed, but not the word before it', () => {
    expect(clean(`curl -H 'Authorization: Bearer ${word(20)}'`).payload).toEqual({
      text: `curl -H 'Authorization: Bearer [removed]'`,
    })
    expect(clean(`Basic ${word(20)}==`).payload).toEqual({ text: 'Basic [removed]' })
  })

  test.each([
    'Bearer of bad news',
    'Basic internationalization is done',
    'the task-force-one-two-three-four-five-six 7',
    'sk-fading-circle-with-a-long-name',
    'https://github.com/ada/weaver/commit/0123456789abcdef0123456789abcdef01234567',
    'AKIA is a prefix, and so is ghp_',
    '01a1fb45-0fdd-7713-8f98-02441594b06c',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
  ])('no token is found in %j', (text) => {
    expect(clean(text)).toMatchObject({ payload: { text }, removed: [] })
  })

  test('a text with many beginnings of tokens is redacted before the test times out', () => {
    for (const start of [
      'eyJ',
      'eyJaaaaaaaaaa.',
      'sk-',
      '-----BEGIN PRIVATE KEY-----',
      'Bearer ',
      '1234567',
      'xoxb-',
      'M.',
    ])
      expect(clean(start.repeat(Math.ceil(500_000 / start.length))).payload).toBeDefined()
  })
})
