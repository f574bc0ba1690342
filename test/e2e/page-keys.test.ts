// Attacks on the page and its keys: another site, another user of the machine, a leaked link, an expired key.
import { createHmac } from 'node:crypto'
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { createPageKeys } from '../../src/gateway/http/api/page-keys.ts'
import { runCommand } from './command.ts'
import { gatewayToken, makeFolder } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { type Headers, send } from './wire.ts'

let gateway: Inside
let port: number
beforeAll(async () => {
  gateway = await startInside()
  port = Number(new URL(gateway.adminUrl).port)
})

const toBearer = (token: string): Headers => [['authorization', `Bearer ${token}`]]
const ask = async (method: string, target: string, headers: Headers = []) => {
  const { status, body } = await send(port, { method, target, headers })
  return { status, body: JSON.parse(body) as Record<string, string> }
}
const issueCode = async () => (await ask('POST', '/api/page/code', toBearer(gatewayToken))).body['code'] ?? ''
const exchangeCode = (given: string) => ask('POST', '/api/page/key', toBearer(given))

describe('codes that open the page', () => {
  test('a code is exchanged once for a key, and the key opens the API', async () => {
    const given = await issueCode()
    expect(given).toMatch(/^[\w-]{43}$/)
    const { status, body } = await exchangeCode(given)
    expect([status, body['key']]).toEqual([200, expect.stringMatching(/^hlk_[\w-]{64}$/)])
    expect((await ask('GET', '/api/deliveries', toBearer(body['key'] ?? ''))).status).toBe(200)
    const again = await exchangeCode(given)
    expect([again.status, again.body['error']]).toEqual([401, expect.stringContaining('hookloom open')])
  })

  test('a code does not open the API, and the gateway token and a key are not codes', async () => {
    const given = await issueCode()
    expect((await ask('GET', '/api/deliveries', toBearer(given))).status).toBe(401)
    expect((await exchangeCode(gatewayToken)).status).toBe(401)
    const { body } = await exchangeCode(given)
    expect((await exchangeCode(body['key'] ?? '')).status).toBe(401)
    expect((await ask('POST', `/api/page/key?code=${await issueCode()}`)).status).toBe(401)
  })

  test('a key of the page gets no code, so that it cannot renew itself', async () => {
    const { body } = await exchangeCode(await issueCode())
    expect((await ask('POST', '/api/page/code', toBearer(body['key'] ?? ''))).status).toBe(401)
    expect((await ask('POST', '/api/page/code')).status).toBe(401)
  })
})

describe('tokens that open the page', () => {
  const makeToken = async (name: string, body: object) => {
    const headers = toBearer(gatewayToken)
    const answer = await send(port, {
      method: 'POST',
      target: '/api/tokens',
      headers,
      body: JSON.stringify({ name, ...body }),
    })
    return (JSON.parse(answer.body) as { token: string }).token
  }
  const statusOf = async (method: string, target: string, key: string) =>
    (await ask(method, target, toBearer(key))).status

  test('a key that was exchanged for a token has the rights of the token, and ends when the token is revoked', async () => {
    const token = await makeToken('ada', { may: ['read'] })
    const { status, body } = await exchangeCode(token)
    const key = body['key'] ?? ''
    expect([status, key]).toEqual([200, expect.stringMatching(/^hlk_[\w-]{65,128}$/)])
    expect(await statusOf('GET', '/api/deliveries', key)).toBe(200)
    expect(await statusOf('POST', '/api/parked/retry', key)).toBe(401)
    // no further key, and no longer life
    expect(await statusOf('POST', '/api/page/key', key)).toBe(401)
    expect(await statusOf('POST', '/api/page/code', key)).toBe(401)
    // the name of another token, or none, needs another signature
    const bytes = Buffer.from(key.slice(4), 'base64url')
    const withoutId = Buffer.concat([bytes.subarray(0, 16), bytes.subarray(-32)])
    expect(await statusOf('GET', '/api/deliveries', `hlk_${withoutId.toString('base64url')}`)).toBe(401)
    await ask('POST', '/api/tokens/ada/revoke', toBearer(gatewayToken))
    expect(await statusOf('GET', '/api/deliveries', key)).toBe(401)
  })

  test('a token without the right to read opens no page, and wrong tokens are throttled', async () => {
    const sender = await makeToken('sender', { may: ['send:plain'] })
    expect((await exchangeCode(sender)).status).toBe(401)
    const guessed: number[] = []
    const other = await startInside()
    const exchangeThere = async (code: string) => {
      const headers = { authorization: `Bearer ${code}` }
      return (await fetch(`${other.adminUrl}/api/page/key`, { method: 'POST', headers })).status
    }
    for (let n = 0; n < 40; n++) guessed.push(await exchangeThere(`guess ${n}`))
    expect(guessed.at(-1)).toBe(429)
    // the operator is never locked out
    const headers = { authorization: `Bearer ${gatewayToken}` }
    const answer = await fetch(`${other.adminUrl}/api/page/code`, { method: 'POST', headers })
    expect(await exchangeThere(((await answer.json()) as { code: string }).code)).toBe(200)
    await other.stop()
  })
})

describe('keys of the page', () => {
  const createStage = () => {
    const now = { at: 1_000, token: 'one' }
    return { now, keys: createPageKeys({ clock: () => now.at, token: () => now.token }) }
  }

  test('a code expires after a minute, and a key after twelve hours', () => {
    const { now, keys } = createStage()
    const [late, used] = [keys.issueCode(), keys.issueCode()]
    now.at += 59_999
    const key = keys.exchange(used.text)?.text ?? ''
    now.at += 1
    expect(keys.exchange(late.text)).toBeUndefined()
    now.at += 12 * 3_600_000 - 2
    expect(keys.read(key)).toEqual({ tokenId: undefined })
    now.at += 1
    expect(keys.read(key)).toBeUndefined()
  })

  test('a new gateway token ends all codes and keys', () => {
    const { now, keys } = createStage()
    const key = keys.exchange(keys.issueCode().text)?.text ?? ''
    const other = keys.issueCode().text
    now.token = 'two'
    expect([keys.read(key), keys.exchange(other)]).toEqual([undefined, undefined])
  })

  test('the number of codes for the page is limited, and the oldest codes are forgotten', () => {
    const { keys } = createStage()
    const codes = Array.from({ length: 21 }, () => keys.issueCode().text)
    expect([keys.exchange(codes[0] ?? ''), keys.exchange(codes[1] ?? '')?.text]).toEqual([
      undefined,
      expect.any(String),
    ])
  })

  test('a key of the page outlives a restart of the gateway, but not a change of the gateway token', async () => {
    const readStatus = async ({ adminUrl }: Inside, key: string) =>
      (await fetch(`${adminUrl}/api/health`, { headers: { authorization: `Bearer ${key}` } })).status
    const issueKey = async ({ adminUrl }: Inside) => {
      const post = async (path: string, token: string) => {
        const headers = { authorization: `Bearer ${token}` }
        return (await (await fetch(`${adminUrl}${path}`, { method: 'POST', headers })).json()) as Record<string, string>
      }
      const { code: given = '' } = await post('/api/page/code', gatewayToken)
      return (await post('/api/page/key', given))['key'] ?? ''
    }
    const before = await startInside()
    const key = await issueKey(before)
    await before.stop()
    const after = await startInside({ dir: before.dir })
    expect([await readStatus(after, key), await readStatus(after, `${key.slice(0, -1)}!`)]).toEqual([200, 401])
    await after.stop()
    const other = await startInside({ config: { gateway: { token: 'another-gateway-token-of-32-bytes' } } })
    expect(await readStatus(other, key)).toBe(401)
  })

  test('a key of the page expires at its time, whichever gateway checks it', () => {
    const [before, after] = [createStage(), createStage()]
    const key = before.keys.exchange(before.keys.issueCode().text)?.text ?? ''
    expect(after.keys.read(key)).toEqual({ tokenId: undefined })
    after.now.at += 12 * 3_600_000
    expect(after.keys.read(key)).toBeUndefined()
  })

  test('a key of the page with any changed byte is invalid', () => {
    const { keys } = createStage()
    const key = keys.exchange(keys.issueCode().text)?.text ?? ''
    const bytes = Buffer.from(key.slice(4), 'base64url')
    for (let at = 0; at < bytes.length; at++) {
      const forged = Buffer.from(bytes)
      forged[at] = (forged[at] ?? 0) ^ 1
      expect(keys.read(`hlk_${forged.toString('base64url')}`)).toBeUndefined()
    }
    for (const odd of ['', 'hlk_', `${key}A`, key.slice(0, -1), `hlk_${'A'.repeat(64)}`])
      expect(keys.read(odd)).toBeUndefined()
    expect(keys.read(key)).toEqual({ tokenId: undefined })
  })

  test('the proof of a gateway depends on the challenge and on its token, and needs only the public part of the key', () => {
    const { keys, now } = createStage()
    const bytes = Buffer.from((keys.exchange(keys.issueCode().text)?.text ?? '').slice(4), 'base64url')
    const [publicPart, signature] = [bytes.subarray(0, 16), bytes.subarray(16)]
    const expected = createHmac('sha256', signature).update('proof c').digest('hex')
    expect(keys.prove(publicPart, 'c')).toBe(expected)
    expect(keys.prove(publicPart, 'd')).not.toBe(expected)
    now.token = 'two'
    expect(keys.prove(publicPart, 'c')).not.toBe(expected)
  })

  test('a gateway proves itself only to a well-formed challenge, and the challenge needs no key', async () => {
    const askProof = async (body: object) => {
      const answer = await fetch(`${gateway.adminUrl}/api/page/proof`, { method: 'POST', body: JSON.stringify(body) })
      return [answer.status, await answer.json()]
    }
    const asked = { key: '0'.repeat(32), challenge: '0'.repeat(64) }
    expect(await askProof(asked)).toEqual([200, { ok: true, proof: expect.stringMatching(/^[\da-f]{64}$/) }])
    for (const wrong of [
      {},
      { ...asked, key: 'x' },
      { ...asked, challenge: 'proof' },
      { ...asked, more: 'x'.repeat(2_000) },
    ]) {
      expect(await askProof(wrong)).toMatchObject([400, { code: 'usage-invalid' }])
    }
  })

  test('thirty requests with an invalid key of the page do not lock the operator out', async () => {
    for (let n = 0; n < 30; n++) {
      expect((await ask('GET', '/api/deliveries', toBearer(`hlk_${'x'.repeat(43)}`))).status).toBe(401)
    }
    expect((await ask('GET', '/api/deliveries', toBearer(gatewayToken))).status).toBe(200)
  })
})

describe('files of the page', () => {
  const get = (target: string, headers: Headers = []) => send(port, { method: 'GET', target, headers })

  test('the files of the page have a policy that allows nothing from other origins and no markup from text', async () => {
    for (const target of ['/', '/inspector/page.js', '/inspector/page.css', '/inspector/icon.svg']) {
      const { status, headers } = await get(target)
      expect(status).toBe(200)
      expect(headers).toMatchObject({
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
          "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
      })
      expect(headers['set-cookie']).toBeUndefined()
    }
    expect((await get('/')).body).not.toMatch(/<script>|style=|onload/)
  })

  test('the files of the page are refused to another host name and to another site, except for a link that opens the page', async () => {
    const site: Headers = [['sec-fetch-site', 'cross-site']]
    const opens: Headers = [...site, ['sec-fetch-mode', 'navigate'], ['sec-fetch-dest', 'document']]
    const framed: Headers = [...site, ['sec-fetch-mode', 'navigate'], ['sec-fetch-dest', 'iframe']]
    expect((await get('/', [['host', 'evil.test']])).status).toBe(403)
    expect((await get('/', [['origin', 'http://evil.test']])).status).toBe(403)
    expect((await get('/', site)).status).toBe(403)
    expect((await get('/', framed)).status).toBe(403)
    expect((await get('/', opens)).status).toBe(200)
    for (const target of ['/inspector/page.js', '/api/deliveries', '/metrics']) {
      expect((await get(target, opens)).status).toBe(403)
    }
    const post = await send(port, {
      method: 'POST',
      target: '/api/page/key',
      headers: [...opens, ...toBearer(await issueCode())],
    })
    expect(post.status).toBe(403)
  })

  /** Every file of the page, as a client of this `Accept-Encoding` gets it. */
  const pageFiles = [
    '/',
    '/inspector/page.js',
    '/inspector/page.css',
    '/inspector/icon.svg',
    '/inspector/icon-alert.svg',
  ]
  const load = async (target: string, headers: Record<string, string> = {}, method = 'GET') => {
    const answer = await new Promise<IncomingMessage>((resolve, reject) =>
      request({ port, path: target, method, headers }, resolve).once('error', reject).end(),
    )
    const parts: Buffer[] = []
    for await (const part of answer) parts.push(part as Buffer)
    return { status: answer.statusCode, headers: answer.headers, bytes: Buffer.concat(parts) }
  }

  test('the page is at most 150 kB, as a browser gets it', async () => {
    const sizes = await Promise.all(
      pageFiles.map(async (file) => (await load(file, { 'accept-encoding': 'gzip, deflate, br, zstd' })).bytes.length),
    )
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(150_000)
  })

  test('the files of the page come in the best coding that a client accepts, and are the same text in each', async () => {
    for (const file of pageFiles) {
      const plain = await load(file)
      const brotli = await load(file, { 'accept-encoding': 'gzip, deflate, br, zstd' })
      const gzip = await load(file, { 'accept-encoding': 'gzip, br;q=0' })
      const refusing = await load(file, { 'accept-encoding': 'zstd, identity;q=0' })
      const codings = [plain, brotli, gzip, refusing].map(({ headers }) => headers['content-encoding'])
      expect(codings).toEqual([undefined, 'br', 'gzip', undefined])
      expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes)).toBe(true)
      expect(gunzipSync(gzip.bytes).equals(plain.bytes)).toBe(true)
      for (const { headers, bytes } of [plain, brotli, gzip]) {
        expect(headers).toMatchObject({ 'content-length': `${bytes.length}`, vary: 'accept-encoding' })
      }
      // one tag for two codings would let a cache combine them
      expect(new Set([plain, brotli, gzip].map(({ headers }) => headers.etag)).size).toBe(3)
    }
  })

  test('a file of the page that a browser has already gets 304 without a body, with the policy of the page', async () => {
    for (const file of pageFiles) {
      const accepts = { 'accept-encoding': 'br' }
      const { etag = '' } = (await load(file, accepts)).headers
      const again = await load(file, { ...accepts, 'if-none-match': `W/"other", ${etag}` })
      expect([again.status, again.bytes.length]).toEqual([304, 0])
      expect(again.headers).toMatchObject({
        etag,
        vary: 'accept-encoding',
        'cache-control': 'no-cache',
        'content-security-policy': expect.stringContaining("default-src 'none'"),
        'x-content-type-options': 'nosniff',
      })
      expect(again.headers).not.toHaveProperty('content-encoding')
      // the tag of another coding, and that of an older build
      expect((await load(file, { 'if-none-match': etag })).status).toBe(200)
      expect((await load(file, { ...accepts, 'if-none-match': '"older"' })).status).toBe(200)
      const head = await load(file, accepts, 'HEAD')
      expect([head.status, head.headers.etag, head.bytes.length]).toEqual([200, etag, 0])
    }
  })
})

describe('hookloom open', () => {
  test('hookloom open prints a link that works once', async () => {
    const { code: exit, stdout } = await runCommand(['open', '--no-browser'], { dir: gateway.dir })
    const [, given = ''] = /^http:\/\/127\.0\.0\.1:\d+\/#k=([\w-]{43})\n$/.exec(stdout) ?? []
    expect([exit, (await exchangeCode(given)).status, (await exchangeCode(given)).status]).toEqual([0, 200, 401])
  })

  test('hookloom open gives the browser the link in a private file, not as an argument', async () => {
    const folder = makeFolder()
    const [browser, seen] = [join(folder, 'browser'), join(folder, 'seen')]
    writeFileSync(browser, `#!/bin/sh\nprintf %s "$*" > ${seen}.part && mv ${seen}.part ${seen}\n`)
    chmodSync(browser, 0o755)
    const { stdout } = await runCommand(['open', '--json'], { dir: gateway.dir, env: { BROWSER: browser } })
    await expect.poll(() => readFileSync(seen, 'utf8')).toMatch(/^file:\/\/.*\/state\/open\.html$/)
    const file = join(gateway.dir, 'state/open.html')
    expect(statSync(file).mode & 0o077).toBe(0)
    expect(readFileSync(file, 'utf8')).toContain((JSON.parse(stdout) as { url: string }).url)
  })

  test('hookloom open fails without a gateway', async () => {
    expect((await runCommand(['open'], { dir: makeFolder() })).code).not.toBe(0)
  })
})
